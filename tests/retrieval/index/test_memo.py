"""The caches of an index and of a batch: computed once, charged to each user, bounded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Memo, ReadCache
from hopbench.retrieval.types import Counters


class Store:
    """Answers each query with as many rows as it is asked for, and counts the queries."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, query: str, **parameters: int) -> list[Mapping[str, Any]]:
        self.reads += 1
        return [{"id": list(range(parameters["rows"]))}]


def rows_read(cache: ReadCache, store: Store, rows: int) -> int:
    _, count = cache.read(cast("GraphStore", store), "query", {"rows": rows})
    return count


def test_each_user_of_a_value_is_charged_what_it_cost_once() -> None:
    memo, calls = Memo(4), []

    def compute(spent: Counters) -> str:
        calls.append(1)
        spent.round_trips += 2
        return "value"

    first, second = Counters(), Counters()
    assert ("value", "value") == (memo.charged("key", first, compute), memo.charged("key", second, compute))
    assert [1] == calls
    assert 2 == first.round_trips == second.round_trips


def test_the_least_recently_used_value_goes() -> None:
    memo = Memo(2)
    memo.get("a", lambda: 1)
    memo.get("b", lambda: 2)
    memo.get("a", lambda: 3)  # used again, so "b" is the older one
    memo.get("c", lambda: 4)

    assert {"a", "c"} == set(memo)
    assert 1 == memo.get("a", lambda: 5)
    assert 6 == memo.get("b", lambda: 6)


def test_threads_that_miss_together_get_one_value() -> None:
    memo, both, values = Memo(4), threading.Barrier(2), []

    def compute() -> object:
        both.wait(30)
        return object()

    threads = [threading.Thread(target=lambda: values.append(memo.get("key", compute))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert 2 == len(values)
    assert values[0] is values[1]


def test_none_is_a_value_too() -> None:
    memo, calls = Memo(4), []
    for _ in range(2):
        assert memo.get("key", lambda: calls.append(1)) is None
    assert [1] == calls


def test_reads_are_remembered_up_to_a_number_of_rows() -> None:
    cache, store = ReadCache(max_rows=5), Store()

    assert [3, 3, 2, 3] == [rows_read(cache, store, rows) for rows in (3, 3, 2, 3)]
    assert 2 == store.reads  # 3 + 2 rows fit
    assert 4 == rows_read(cache, store, 4)  # and put out both others
    assert 3 == rows_read(cache, store, 3)
    assert 4 == store.reads


def test_an_answer_larger_than_the_cache_is_read_each_time() -> None:
    cache, store = ReadCache(max_rows=5), Store()

    assert [6, 6] == [rows_read(cache, store, 6), rows_read(cache, store, 6)]
    assert 2 == store.reads


def test_what_was_let_go_is_computed_again() -> None:
    memo = Memo(4)
    memo.get("a", lambda: 1)
    memo.clear()

    assert [] == list(memo)
    assert 2 == memo.get("a", lambda: 2)
