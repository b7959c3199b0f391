"""What an index computes from its chunks or its graph alone, in files that the processes of a machine share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index.linker import Linker
from hopbench.retrieval.search.approximate import VERSION as APPROXIMATE_VERSION
from hopbench.retrieval.search.approximate import ApproximateSearch
from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.kept_files import kept
from hopbench.retrieval.support.mapped_arrays import mapped_array
from hopbench.retrieval.text import ENGLISH, Language, Tagger

FORMAT = 2  # of the files: it grows with each change of what BM25 or tagger compute, and they are made again
LINKER = "linker-3"  # the same of the linker
CHUNK_VECTORS = "chunk-vectors-1"  # the same of vectors
TAGGER, VECTORS = "tagger.json", "vectors.npy"
T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class KeptSearch:
    """The folder of one corpus. It is safe to delete: what is missing or cut is computed again."""

    folder: Path

    def lexical(self, compute: Callable[[], LexicalIndex], language: Language = ENGLISH) -> LexicalIndex:
        """BM25, memory-mapped."""
        return self._kept(
            "bm25",
            lambda place: compute().save(place),
            lambda place: LexicalIndex.load(place, language),
            of=_version(language),
        )

    def tagger(self, compute: Callable[[], Tagger], language: Language = ENGLISH) -> Tagger:
        """The tagger."""
        return self._kept(
            "tagger",
            lambda place: compute().save(place / TAGGER),
            lambda place: Tagger.load(place / TAGGER),
            of=_version(language),
        )

    def approximate(self, compute: Callable[[], ApproximateSearch]) -> ApproximateSearch:
        """The graph of near chunks by which dense search finds them, memory-mapped."""
        return self._kept(
            "near-chunks",
            lambda place: compute().save(place),
            ApproximateSearch.load,
            of=f"{APPROXIMATE_VERSION} faiss {version('faiss-cpu')}",
            content=True,
        )

    def vectors(self, compute: Callable[[], Vectors]) -> Vectors:
        """The chunks' vectors on the grid, memory-mapped, for a store that has none of its own."""
        return self.arrays("chunk-vectors", CHUNK_VECTORS, lambda: {"vectors": on_grid(compute())})["vectors"]

    def linker(self, stamp: str, compute: Callable[[], Linker]) -> Linker:
        """The linker of the graph that has this stamp."""
        return self._kept(
            "linker",
            lambda place: compute().save(place),
            Linker.load,
            of=f"{LINKER} of {stamp}",
        )

    def names(self, stamp: str, compute: Callable[[], Vectors]) -> Vectors:
        """The vectors of the names of the graph that has this stamp, memory-mapped."""
        return self._kept(
            "name-vectors",
            lambda place: np.save(place / VECTORS, compute()),
            lambda place: mapped_array(place / VECTORS),
            of=f"{_version()} of {stamp}",
        )

    def arrays(self, name: str, of: str, compute: Callable[[], Arrays]) -> Arrays:
        """Arrays by name, memory-mapped; `of` says of which graph, and of which version of the code, they are."""

        def write(place: Path) -> None:
            for array, values in compute().items():
                np.save(place / f"{array}.npy", values)

        def read(place: Path) -> Arrays:
            return {file.stem: mapped_array(file) for file in place.glob("*.npy")}

        return self._kept(name, write, read, of=of)

    def _kept(
        self, name: str, write: Callable[[Path], None], read: Callable[[Path], T], of: str = "", content: bool = False
    ) -> T:
        return kept(self.folder / name, of or _version(), write, read, content=content)


def _version(language: Language = ENGLISH) -> str:
    """Of the code that computes what is kept."""
    own = "" if language.english else f" {language.code} stop-words {version('stop-words')}"
    return f"{FORMAT} bm25s {version('bm25s')}{own}"
