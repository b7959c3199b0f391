"""Caches of an index and of a batch: what strategies computed, and what was read from the store.

Both keep the cost of a value beside it. Whoever uses a cached value is charged what it would have cost alone, so a
strategy's figures do not depend on which strategies ran before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, TypeVar

from cachetools import LRUCache

from hopbench.retrieval.graph.stores.base import GraphStore, Record, rows_of
from hopbench.retrieval.types import Counters

MAX_ROWS = 20_000_000
T = TypeVar("T")


class Memo:
    """A least-recently-used cache of at most `limit` computed values, safe for threads.

    A key names the computation and all its parameters, so that equal keys mean equal values of one type. Two threads
    that miss the same key both compute it; the first result is kept, and both get that one.
    """

    def __init__(self, limit: int, timed: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """`timed` surrounds the computation of each value."""
        self._timed = timed
        self._values: LRUCache[Hashable, tuple[Any, Counters]] = LRUCache(limit)
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of `key`, computed on the first call; nobody is charged."""
        value: T = self._entry(key, lambda _: compute())[0]
        return value

    def charged(self, key: Hashable, counters: Counters, compute: Callable[[Counters], T]) -> T:
        """The value of `key`; `counters` are charged what `compute` charged the counters it was given."""
        entry = self._entry(key, compute)
        counters.add(entry[1])
        value: T = entry[0]
        return value

    def _entry(self, key: Hashable, compute: Callable[[Counters], T]) -> tuple[Any, Counters]:
        """The value of `key` and what it cost."""
        with self._lock:
            entry = self._values.get(key)
        if entry is None:
            spent = Counters()
            with self._timed():
                computed = compute(spent), spent
            with self._lock:
                entry = self._values.setdefault(key, computed)
        return entry

    def clear(self) -> None:
        """Let go of all values."""
        with self._lock:
            self._values.clear()

    def __iter__(self) -> Iterator[Hashable]:
        """The keys of the values that are in the cache."""
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
