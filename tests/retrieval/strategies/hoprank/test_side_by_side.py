"""Several questions side by side are ranked as each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import ASKED, WORLD, built_index, corpora, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank, strategy
from hopbench.retrieval.strategies.hoprank.corpus import corpus_index, sums_by_key
from hopbench.retrieval.strategies.hoprank.questions import UNKNOWN, Questions, ReadQuestion, parts_of
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.types import Counters, Passage, Question, Ranking, Triple


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def ranked(index: Index, *texts: str, label: str = "hoprank") -> list[Ranking]:
    return make(label).rank(Batch(index, [Question(text, text) for text in texts]), Counters())


QUESTIONS = (
    "the first one",
    "Where was Ada Krell born?",
    "Did Bo Marn live in Tolva?",
    "who",
    "",
    "Which river flows through the town that Bo Marn and Corin Vell of Tolva left for the Ohio River?",
    "Zyzzyva quux?",
)


@settings(max_examples=10)
@given(
    passages=corpora(),
    stated=st.booleans(),
    label=st.sampled_from(["hoprank", "hoprank[depth=1,walked=0,anchors=2]", "hoprank[anchors=0,model=linear]"]),
)
def test_side_by_side_and_alone_questions_are_ranked_alike(
    tmp_path_factory: pytest.TempPathFactory, passages: list[Passage], stated: bool, label: str
) -> None:
    """With a pool of few chunks, what edges lead to is no candidate yet, and the second pass has other anchors."""
    triples = [Triple(passages[0].id, "Ada Krell", "born in", "Tolva")] if stated else []
    plan = plan_of(passages, triples=triples, extractor="rules+triples" if stated else "rules")
    index = built_index(plan, tmp_path_factory.mktemp("side"))

    together = ranked(index, *QUESTIONS, label=label)

    for text, found in zip(QUESTIONS, together, strict=True):
        (alone,) = ranked(index, text, label=label)
        assert repr(alone) == repr(found)


def test_long_questions_are_ranked_by_themselves(index: Index) -> None:
    long = [False, True, False, False, True, True, False]

    assert [[0], [1], [2, 3], [4], [5], [6]] == list(strategy.batches_of(long))
    texts = ["who", *(one.text for one in ASKED), "Who directed Ed Wood? " * 60, ASKED[0].text]
    assert [len(text) > strategy.MAX_BATCHED_LENGTH for text in texts].count(True) == 1
    for text, found in zip(texts, ranked(index, *texts), strict=True):
        assert repr(found) == repr(ranked(index, text)[0])


def test_sums_by_key_are_added_in_their_order() -> None:
    keys, values = np.array([7, 2, 7, 2, 7]), np.array([1e16, 0.5, 1.0, 0.25, -1e16])

    found, sums = sums_by_key(keys, values)

    assert ([2, 7], [0.75, 0.0]) == (found.tolist(), sums.tolist())  # 1e16 + 1 is 1e16


def test_walks_side_by_side_are_those_alone(index: Index) -> None:
    corpus, _ = corpus_index(Batch(index, []), Counters())
    entities = len(corpus.graph.entities)
    starts = [np.array([entities]), np.array([0, entities + 3])]
    alone = [corpus.walk_mass(seeds, np.full(len(seeds), 0.5)) for seeds in starts]

    keys = np.concatenate([seeds + number * corpus.nodes for number, seeds in enumerate(starts)])
    chunks, held, touched = corpus.walk_mass(keys, np.full(len(keys), 0.5))

    assert [one + number * len(WORLD) for number, (met, _, _) in enumerate(alone) for one in met] == chunks.tolist()
    assert [share for _, shares, _ in alone for share in shares] == held.tolist()
    assert sum(edges for _, _, edges in alone) == touched


def test_words_of_several_questions_are_told_apart(index: Index) -> None:
    """Word numbers that leave the same remainder, a word of two questions, ranges without words, and a long one."""
    numbers = [np.array([5, 1029, UNKNOWN]), np.array([5]), np.zeros(0, np.int64)]
    no = [np.zeros(len(one), bool) for one in numbers]
    questions = Questions(
        [
            ReadQuestion(
                tuple(map(str, one)), one, np.ones(len(one)), np.ones(len(one), np.int64), blank, blank, {}, {}
            )
            for one, blank in zip(numbers, no, strict=True)
        ]
    )
    text = np.array([5, 1029, 6, 2053, 1029], np.int32)
    begin, end, of = np.array([0, 1, 3, 0, 0]), np.array([2, 1, 5, 5, 5]), np.array([0, 0, 0, 1, 2])

    covered = questions.covered(text, begin, end, of)

    assert [
        [True, True, False],
        [False] * 3,
        [False, True, False],
        [True, False, False],
        [False] * 3,
    ] == covered.tolist()
    assert [True, True, False, False] == questions.asks(np.array([5, 1029, 1029, 6]), np.array([0, 0, 1, 1])).tolist()
    assert [slice(0, 3), slice(3, 4), slice(4, 5), slice(5, 5)] == parts_of(of, 4)


def test_words_in_parts_are_those_at_once(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = HopRank().candidates(Batch(index, ASKED[:1]), Counters())
    monkeypatch.setattr("hopbench.retrieval.strategies.hoprank.questions.VALUE_BATCH", 7)
    (again,) = HopRank().candidates(Batch(index, ASKED[:1]), Counters())

    assert one.covered.tolist() == again.covered.tolist()
    assert one.base.tolist() == again.base.tolist()


def test_edges_are_touched_as_often_side_by_side(index: Index) -> None:
    together, alone = Counters(), Counters()
    make("hoprank").rank(Batch(index, ASKED), together)
    for one in ASKED:
        make("hoprank").rank(Batch(index, [one]), alone)

    assert together.edges_touched == alone.edges_touched
    assert together.observed["chunks in the pool"] == alone.observed["chunks in the pool"]


@given(count=st.integers(0, 1000))
def test_questions_are_ranked_in_parts(count: int) -> None:
    parts = list(strategy.batches_of([False] * count))

    assert list(range(count)) == [number for part in parts for number in part]
    assert all(len(part) == strategy.QUESTION_BATCH for part in parts[:-1])
    assert [] == parts or len(parts[-1]) <= strategy.QUESTION_BATCH
