"""What an index computes from its chunks or its graph alone, in files that the processes of a machine share."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
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
from hopbench.retrieval.support.checksum import file_sum
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.text import Tagger

SIZES = "sizes.json"  # written last: without it, or where another file has another size, the folder is made again
SUMS = "sums"  # SHA-256 of each file, beside its size: reading all is left to `damaged`, but for what would crash faiss
FORMAT = 1  # of the files: it grows with each change of what BM25, tagger or linker compute, and they are made again
TAGGER, NAMES, VECTORS = "tagger.json", "names.json", "vectors.npy"
T = TypeVar("T")


@dataclass(frozen=True)
class KeptSearch:
    """The folder of one corpus. It is safe to delete: what is missing or cut is computed again."""

    folder: Path

    def lexical(self, compute: Callable[[], LexicalIndex]) -> LexicalIndex:
        """BM25, memory-mapped."""
        return self._kept("bm25", lambda place: compute().save(place), LexicalIndex.load)

    def tagger(self, compute: Callable[[], Tagger]) -> Tagger:
        """The tagger."""
        return self._kept(
            "tagger", lambda place: compute().save(place / TAGGER), lambda place: Tagger.load(place / TAGGER)
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

    def linker(self, stamp: str, compute: Callable[[], Linker]) -> Linker:
        """The linker of the graph that has this stamp."""
        return self._kept(
            "linker",
            lambda place: compute().save(place / NAMES),
            lambda place: Linker.load(place / NAMES),
            of=f"{_version()} of {stamp}",
        )

    def names(self, stamp: str, compute: Callable[[], Vectors]) -> Vectors:
        """The vectors of the names of the graph that has this stamp, memory-mapped."""
        return self._kept(
            "name-vectors",
            lambda place: np.save(place / VECTORS, compute()),
            lambda place: _mapped(place / VECTORS),
            of=f"{_version()} of {stamp}",
        )

    def arrays(self, name: str, of: str, compute: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Arrays by name, memory-mapped; `of` says of which graph, and of which version of the code, they are."""

        def write(place: Path) -> None:
            for array, values in compute().items():
                np.save(place / f"{array}.npy", values)

        return self._kept(name, write, lambda place: {file.stem: _mapped(file) for file in place.glob("*.npy")}, of=of)

    def damaged(self) -> list[Path]:
        """The parts of which a file is not as it was written; all files are read for it."""
        parts = [part for part in sorted(self.folder.iterdir()) if part.is_dir() and not part.name.startswith(".")]
        return [part for part in parts if not _as_written(part, content=True)]

    def _kept(
        self, name: str, write: Callable[[Path], None], read: Callable[[Path], T], of: str = "", content: bool = False
    ) -> T:
        place, of = self.folder / name, of or _version()
        if _intact(place, of, content=content):
            with suppress(OSError, ValueError, TypeError, KeyError):  # damaged, whatever its size
                return read(place)
        if place.exists():
            if not _of_other(place, of):
                notice(f"{place} does not read as it was written: it is made again")
            shutil.rmtree(place, ignore_errors=True)
        self._make(place, write, of)
        return read(place)

    def _make(self, place: Path, write: Callable[[Path], None], of: str) -> None:
        """Write a folder whole or not at all; where another process was faster, its folder stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=self.folder, prefix=f".{place.name}-"))
        try:
            write(made)
            files = sorted(made.iterdir())
            sizes, sums = ({file.name: of_file(file) for file in files} for of_file in (_size, file_sum))
            (made / SIZES).write_text(json.dumps({"version": of, "sizes": sizes, SUMS: sums}), encoding="utf-8")
            if not _intact(place, of):
                shutil.rmtree(place, ignore_errors=True)
            try:
                os.rename(made, place)
            except OSError:
                if not _intact(place, of):
                    raise
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _mapped(file: Path) -> NDArray[Any]:
    """A plain array over the mapped file: slices of `np.memmap` are slow. A file of objects raises ValueError."""
    return np.asarray(np.lib.format.open_memmap(file, mode="r"))


def _written(place: Path) -> dict[str, Any]:
    """What the folder says of itself, {} where that does not read."""
    try:
        written = json.loads((place / SIZES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def _of_other(place: Path, of: str) -> bool:
    """Whether a folder says that it is of other code or another graph."""
    return bool(_written(place).get("version", of) != of)


def _intact(place: Path, of: str, *, content: bool = False) -> bool:
    return bool(_written(place).get("version") == of) and _as_written(place, content=content)


def _as_written(place: Path, *, content: bool) -> bool:
    """Whether all files are as long as they were written, and with `content` the same."""
    written = _written(place)
    try:
        fits = all(_size(place / name) == size for name, size in written["sizes"].items())
        sums = written.get(SUMS, {}) if content else {}  # folders of earlier versions have none
        return fits and all(file_sum(place / name) == known for name, known in sums.items())
    except (OSError, TypeError, KeyError, AttributeError):
        return False


def _size(file: Path) -> int:
    return file.stat().st_size


def _version() -> str:
    """Of the code that computes what is kept."""
    return f"{FORMAT} bm25s {version('bm25s')}"
