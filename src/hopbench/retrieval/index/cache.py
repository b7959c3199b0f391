"""Caches of an index and of a batch: computed values and records in memory, and files that processes share."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph.stores.base import GraphStore, Record, rows_of
from hopbench.retrieval.index.linker import Linker
from hopbench.retrieval.search.approximate import VERSION as APPROXIMATE_VERSION
from hopbench.retrieval.search.approximate import ApproximateSearch
from hopbench.retrieval.search.cells import VERSION as CELLS_VERSION
from hopbench.retrieval.search.cells import CellSearch
from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.search.term_counts import VERSION as TERM_COUNTS
from hopbench.retrieval.search.term_counts import LexicalFields, TermCounts
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.arrays import mapped_array
from hopbench.retrieval.support.cached_files import kept
from hopbench.retrieval.text import ENGLISH, Language, Tagger
from hopbench.retrieval.types import Counters

MAX_ROWS = 20_000_000
FORMAT = 2  # of the files: it grows with each change of what BM25 or tagger compute, and they are made again
LINKER = "linker-3"  # the same of the linker
CHUNK_VECTORS = "chunk-vectors-1"  # the same of vectors
T = TypeVar("T")
S = TypeVar("S", LexicalIndex, TermCounts, Tagger, ApproximateSearch, CellSearch, Linker)
Arrays = Mapping[str, NDArray[Any]]


class Memo:
    """A least-recently-used cache of at most `limit` values, each computed within `timed`; safe for threads.

    A key names the computation and all its parameters, so that equal keys mean equal values of one type. Two threads
    that miss the same key both compute it; the first result is kept, and both get that one.
    """

    def __init__(self, limit: int, timed: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._timed = timed
        self._values: LRUCache[Hashable, tuple[Any, Counters]] = LRUCache(limit)
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of `key`, computed on the first call; nobody is charged."""
        return self.charged(key, Counters(), lambda _: compute())

    def charged(self, key: Hashable, counters: Counters, compute: Callable[[Counters], T]) -> T:
        """The value of `key`; `counters` are charged what `compute` charged the counters it was given."""
        with self._lock:
            entry = self._values.get(key)
        if entry is None:
            spent = Counters()
            with self._timed():
                computed = compute(spent), spent
            with self._lock:
                entry = self._values.setdefault(key, computed)
        counters.add(entry[1])
        value: T = entry[0]
        return value

    def clear(self) -> None:
        """Let go of all values."""
        with self._lock:
            self._values.clear()

    def __iter__(self) -> Iterator[Hashable]:
        with self._lock:
            return iter(list(self._values))


class ReadCache:
    """Records by query and parameters; the least recently used go where there are more than `max_rows` rows."""

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._records: LRUCache[str, tuple[list[Record], int]] = LRUCache(max_rows, getsizeof=lambda entry: entry[1])
        self._lock = Lock()

    def read(self, store: GraphStore, query: str, parameters: Mapping[str, object]) -> tuple[list[Record], int]:
        """The records of a query and the number of rows in them."""
        key = query + json.dumps(parameters, sort_keys=True)
        with self._lock:
            entry = self._records.get(key)
        if entry is None:
            records = store.read(query, **parameters)
            entry = records, sum(map(rows_of, records))
            with self._lock:
                if entry[1] <= self._records.maxsize:  # a larger answer would not fit even alone
                    self._records[key] = entry
        return entry


@dataclass(frozen=True)
class IndexCache:
    """The folder of one corpus. It is safe to delete: what is missing or cut is computed again."""

    folder: Path

    def lexical(self, compute: Callable[[], LexicalIndex], language: Language = ENGLISH) -> LexicalIndex:
        """BM25, memory-mapped."""
        return self._cached("bm25", _version(language), compute, lambda place: LexicalIndex.load(place, language))

    def terms(self, compute: Callable[[], TermCounts], language: Language, fields: LexicalFields) -> TermCounts:
        """The counts of terms, memory-mapped; one folder for each way of reading them."""
        name = "".join(("terms", "-stems" * fields.stemmer, "-parts" * fields.parts))
        of = f"{TERM_COUNTS} pystemmer {version('pystemmer')} {_version(language)}"
        return self._cached(name, of, compute, lambda place: TermCounts.load(place, language, fields))

    def tagger(self, compute: Callable[[], Tagger], language: Language = ENGLISH) -> Tagger:
        """The tagger."""
        return self._cached("tagger", _version(language), compute, Tagger.load)

    def approximate(self, compute: Callable[[], ApproximateSearch]) -> ApproximateSearch:
        """The graph of near chunks by which dense search finds them, memory-mapped."""
        of = f"{APPROXIMATE_VERSION} faiss {version('faiss-cpu')}"
        return self._cached("near-chunks", of, compute, ApproximateSearch.load, content=True)

    def cells(self, what: str, stamp: str, vectors: Vectors, compute: Callable[[], CellSearch]) -> CellSearch:
        """The search by cells of `vectors`, which are of the graph that has this stamp, memory-mapped."""
        name, of = f"cells-{what.replace(' ', '-')}", f"{CELLS_VERSION} faiss {version('faiss-cpu')} of {stamp}"
        return self._cached(name, of, compute, lambda place: CellSearch.load(place, vectors), content=True)

    def vectors(self, compute: Callable[[], Vectors]) -> Vectors:
        """The chunks' vectors on the grid, memory-mapped, for a store that has none of its own."""
        return self.arrays("chunk-vectors", CHUNK_VECTORS, lambda: {"vectors": on_grid(compute())})["vectors"]

    def linker(self, stamp: str, compute: Callable[[], Linker]) -> Linker:
        """The linker of the graph that has this stamp."""
        return self._cached("linker", f"{LINKER} of {stamp}", compute, Linker.load)

    def names(self, stamp: str, compute: Callable[[], Vectors]) -> Vectors:
        """The vectors of the names of the graph that has this stamp, memory-mapped."""
        return self.arrays("name-vectors", f"{_version()} of {stamp}", lambda: {"vectors": compute()})["vectors"]

    def arrays(self, name: str, of: str, compute: Callable[[], Arrays]) -> Arrays:
        """Arrays by name, memory-mapped; `of` says of which graph, and of which version of the code, they are."""

        def write(place: Path) -> None:
            for array, values in compute().items():
                np.save(place / f"{array}.npy", values)

        def read(place: Path) -> Arrays:
            return {file.stem: mapped_array(file) for file in place.glob("*.npy")}

        return kept(self.folder / name, of, write, read)

    def _cached(
        self, name: str, of: str, compute: Callable[[], S], load: Callable[[Path], S], *, content: bool = False
    ) -> S:
        return kept(self.folder / name, of, lambda place: compute().save(place), load, content=content)


def _version(language: Language = ENGLISH) -> str:
    own = "" if language.english else f" {language.code} stop-words {version('stop-words')}"
    return f"{FORMAT} bm25s {version('bm25s')}{own}"
