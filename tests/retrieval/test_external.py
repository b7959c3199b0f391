"""External retrievers as strategies: their ids, functions in a run, and what parsing a reply must not set off."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pytest
from tests.support.graphs import WordEmbedder

from hopbench.eval.trials.trial import rank_batch
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.external import SEEDS, Answer, Function, Recorded, ReplyError, Retrieve, read_reply
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.registry import kind_of
from hopbench.retrieval.support.errors import InputError, ParameterError
from hopbench.retrieval.types import Counters, Passage, Question, Ranking

LONG = " ".join(f"Sentence number {number} stands here." for number in range(400))
PASSAGES = [*(Passage(f"p{n:03}", "", f"text {n}") for n in range(150)), Passage("long", "Long", LONG)]
QUESTIONS = [Question("a", "first question"), Question("b", "second question")]


@pytest.fixture(scope="module")
def index() -> Index:
    chunks, embedder = chunk_passages(PASSAGES), WordEmbedder()
    return Index(chunks, embedder.embed([c.content for c in chunks]), cast("GraphStore", None), embedder)


def run(index: Index, answers: dict[str, Answer]) -> list[Ranking]:
    return Recorded(rankings=answers).rank(Batch(index, QUESTIONS), Counters())


def test_passages_become_hits_in_their_order_and_the_first_ten_are_seeds(index: Index) -> None:
    ids = [f"p{n:03}" for n in range(30)]
    first, second = run(index, {"a": Answer(ids, [1.0] * 30), "b": Answer(ids[:2])})

    assert ids == [hit.chunk_id for hit in first.hits]
    assert ids[:SEEDS] == list(first.seeds)
    assert [1.0, 0.5] == [hit.score for hit in second.hits]  # no scores: 1/rank
    assert {"foreign"} == {hit.origin for hit in first.hits}


def test_a_short_ranking_is_not_completed_and_an_empty_one_is_an_answer(index: Index) -> None:
    first, second = run(index, {"a": Answer(["p001"]), "b": Answer()})

    assert 1 == len(first.hits)
    assert (0, None) == (len(second.hits), second.failure)


def test_a_passage_that_was_split_stands_for_its_first_part(index: Index) -> None:
    first, _ = run(index, {"a": Answer(["long"])})

    assert ["long#0"] == [hit.chunk_id for hit in first.hits]


def test_a_ranking_counts_to_its_end(index: Index) -> None:
    ids = [chunk.passage_id for chunk in index.chunks if chunk.index == 0]
    whole, broken = run(index, {"a": Answer(ids), "b": Answer([*ids, "nowhere"])})

    assert len(whole.hits) == len(ids) > 100
    assert f"1 of {len(ids) + 1} passages are not in the corpus, such as 'nowhere'" == broken.failure


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(["p001", "x", "y"]), "2 of 3 passages are not in the corpus, such as 'x'"),
        (Answer(["p001", "long#0"]), "1 of 2 passages are not in the corpus, such as 'long#0'"),
        (Answer(["p001", "p002", "p001"]), "passage 'p001' is returned twice"),
        (Answer(["\x1b[2J" + "z" * 500]), "1 of 1 passages are not in the corpus, such as '\\x1b[2J" + "z" * 76 + "…'"),
        (Answer(failure="the server burned down"), "the server burned down"),
    ],
)
def test_what_cannot_be_scored_fails_its_question(index: Index, answer: Answer, expected: str) -> None:
    first, second = run(index, {"a": answer, "b": Answer(["p001"])})

    assert (expected, 0) == (first.failure, len(first.hits))
    assert second.failure is None


def test_a_question_that_a_run_leaves_out_has_failed(index: Index) -> None:
    _, second = run(index, {"a": Answer(["p001"])})

    assert "the run has no ranking for this question" == second.failure


def test_two_runs_are_two_strategies_in_one_batch(index: Index) -> None:
    batch = Batch(index, QUESTIONS[:1])
    found = [
        Recorded(rankings={"a": Answer([p])}).rank(batch, Counters())[0].hits[0].chunk_id for p in ("p001", "p002")
    ]

    assert ["p001", "p002"] == found


def test_a_foreign_label_is_of_a_kind_of_its_own_whatever_it_is_called() -> None:
    assert "foreign" == kind_of("mine:tuned[k=3]", Recorded()).kind
    assert "foreign" == kind_of("pagerank", Recorded()).kind


def test_a_run_is_identified_by_what_its_file_holds() -> None:
    expected = {"format": "TREC run", "digest": "abc"}
    assert expected == Recorded(form="TREC run", digest="abc").identity()


def by_words(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
    return [[f"p{len(text):03}", "p000"][:k] for text in questions]


def test_a_function_gets_texts_and_k(index: Index) -> None:
    rankings = Function(retrieve=by_words, k=2).rank(Batch(index, QUESTIONS), Counters())

    assert [["p014", "p000"], ["p015", "p000"]] == [[hit.chunk_id for hit in one.hits] for one in rankings]


def test_a_function_may_return_arrays_and_generators(index: Index) -> None:
    def arrays(questions: Sequence[str], k: int) -> Any:
        return (iter(np.array(["p003", "p001"])) for _ in questions)

    first, _ = Function(retrieve=arrays).rank(Batch(index, QUESTIONS), Counters())

    assert ["p003", "p001"] == [hit.chunk_id for hit in first.hits]


def broken(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
    if any("second" in text for text in questions):
        raise KeyError("no such thing")
    return by_words(questions, k)


def refusing(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
    raise InputError("a file of mine is missing")


def leaving(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (broken, [None, "KeyError: 'no such thing'"]),
        (refusing, ["RuntimeError: InputError: a file of mine is missing"] * 2),
        (leaving, ["RuntimeError: SystemExit: 3"] * 2),
        (lambda questions, k: [], ["ValueError: returned 0 rankings for 1 questions"] * 2),
        (lambda questions, k: None, ["TypeError: 'NoneType' object is not iterable"] * 2),
        (lambda questions, k: [5 for _ in questions], ["the ranking is the number 5, not a list of passage ids"] * 2),
    ],
)
def test_whatever_a_function_raises_or_returns_is_a_reason(
    index: Index, function: Retrieve, expected: Sequence[str | None]
) -> None:
    rankings = rank_batch(Function(retrieve=function), Batch(index, QUESTIONS), Counters())

    assert list(expected) == [one.failure for one in rankings]


def test_a_function_is_known_by_name_and_version_and_without_one_by_this_process_too() -> None:
    name = f"{__name__}.by_words"
    stated = Function(retrieve=by_words, version="3")

    assert {"function": name, "version": "3", "k": 100} == stated.spec() == stated.identity()
    assert {"process"} == set(Function(retrieve=by_words).identity()) - set(stated.spec())


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"function\.retrieve = 'bm25' cannot be called"):
        Function(retrieve=cast("Retrieve", "bm25"))
    with pytest.raises(ParameterError, match="cannot be called"):
        Function()


class Cyclic:
    """Garbage for the collector, with a finalizer that needs room on the stack."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        vars(self).clear()


@pytest.fixture
def thresholds() -> Iterator[None]:
    gc.freeze()  # what tests before this one left would be looked at hundreds of times
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_no_finalizer_runs_at_the_depth_of_a_reply_that_is_nested_without_end(
    thresholds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)

    for allocations in range(10, sys.getrecursionlimit(), 10):  # one of them ends at the greatest depth
        gc.collect()
        Cyclic()
        gc.set_threshold(allocations)
        with pytest.raises(ReplyError, match="the reply is not JSON"):
            read_reply(b"[" * 200_000, "", 1, 10)

    assert [] == failed
