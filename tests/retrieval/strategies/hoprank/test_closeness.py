"""Words compared in meaning, and candidates two by two, against their definitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.links import (
    CLOSENESS_STEPS,
    LINKED,
    MIN_CLOSENESS,
    PARTNERS,
    Closeness,
    ListFacts,
)
from hopbench.retrieval.strategies.hoprank.tree_features import GROUPS, READ, list_facts
from hopbench.retrieval.strategies.hoprank.weights import passes, shipped
from hopbench.retrieval.strategies.hoprank.words import VECTOR_STEPS as UNIT
from hopbench.retrieval.strategies.hoprank.words import (
    ListedWords,
    vector_lengths,
    weighted_vectors,
    word_cosines,
    word_vectors,
)
from hopbench.retrieval.types import Counters, Passage, Question


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def listed(index: Index) -> list[ListFacts]:
    found = HopRank().candidates(Batch(index, ASKED), Counters())
    return [one for each in found for one in list_facts(each, [list(passes(each, shipped(), 8))])]


def feature(name: str, facts: ListFacts) -> NDArray[np.float64]:
    """A feature of the only list."""
    (computed,) = (group[name] for group in GROUPS.values() if name in group)
    return np.asarray(computed(facts)[0])


def closeness_of(candidates: Candidates, chunks: list[int]) -> Closeness:
    """Of chunks read for the only question."""
    read = ListedWords.read(candidates.corpus.words, np.array(chunks), np.zeros(len(chunks), np.int64))
    return Closeness.of(candidates.corpus, candidates.questions, read, candidates.word_vectors)


def test_words_of_like_meaning_are_close() -> None:
    asked, told = word_vectors(["founded", "birth", "banana"]), word_vectors(["established", "born", "1912"])
    alike = word_cosines(asked, told)

    assert alike[0, 0] > MIN_CLOSENESS
    assert alike[1, 1] > MIN_CLOSENESS
    assert alike[2].max() < MIN_CLOSENESS


def test_cosines_are_exact_products_of_whole_numbers() -> None:
    """So no kernel and no order of summation changes them."""
    first, second = word_vectors(["river", "film", "1988"]), word_vectors(["rivers", "movie", "Ohio", "1989"])

    exact = first.astype(np.int64) @ second.astype(np.int64).T

    assert exact.tolist() == (word_cosines(first, second).astype(np.float64) * 2**22).tolist()


def test_the_length_of_a_text_is_that_of_the_weighted_sum_of_its_words() -> None:
    vectors = word_vectors(["ohio", "river", "flows"])
    weights = np.array([2.0, 0.5, 0.0])
    found = vector_lengths(vectors, weights, np.array([0, 1, 1, 2, 2]), np.array([0, 3, 3, 5]))
    wanted = np.linalg.norm(2.0 * vectors[0].astype(np.float64) + 2 * 0.5 * vectors[1])

    assert [wanted / UNIT, 0.0, 0.0] == pytest.approx(found.tolist())  # an empty one, and one of stop words


def test_the_question_is_the_weighted_sum_of_its_words() -> None:
    vectors = word_vectors(["ohio", "river"])
    wanted = 2.0 * vectors[0].astype(np.float64) + 0.5 * vectors[1]
    both, none = weighted_vectors(vectors, np.array([[2.0, 0.5], [0.0, 0.0]]))

    assert (wanted / np.linalg.norm(wanted) * UNIT).tolist() == pytest.approx(both.tolist(), abs=0.51)
    assert not none.any()


def test_sentences_are_compared_with_the_question_as_sums_of_their_words(index: Index) -> None:
    asked = Question("q", "Where was the director of Ed Wood born?")
    (candidates,) = HopRank().candidates(Batch(index, [asked]), Counters())
    (question,), words = candidates.questions, candidates.corpus.words
    found = closeness_of(candidates, [4, 0, 11])
    both = weighted_vectors(candidates.word_vectors[0], np.array([question.idf, question.open_idf]))
    wanted = []
    for sentence in found.read.sentences.tolist():
        numbers = words.numbers[slice(*words.sentence_start[sentence : sentence + 2])]
        vector = words.weights[numbers] @ words.word_vectors[numbers].astype(np.float64)
        length = np.linalg.norm(vector) or 1.0
        wanted.append([vector @ one / length / UNIT for one in both])

    assert np.array(wanted).T.ravel() == pytest.approx([*found.dense, *found.dense_open])
    assert np.abs(wanted).max(axis=0).min() > 0.1


def of_one(candidates: Candidates, chunk: int) -> NDArray[np.float64]:
    """How close each of the question's words comes to a word of a chunk, a pair of words after the other."""
    words, asked = candidates.corpus.words, candidates.questions[0].words
    spelled = list(words.vocabulary)
    ends = words.sentence_start[words.chunk_start[chunk : chunk + 2]]
    inside = [number for number in words.numbers[ends[0] : ends[1]].tolist() if not words.stop[number]]
    best = np.zeros(len(asked))
    for place, one in enumerate(asked):
        for number in inside:
            (alike,) = (
                np.rint(word_cosines(word_vectors([one]), word_vectors([spelled[number]]))[0] * CLOSENESS_STEPS)
                / CLOSENESS_STEPS
            )
            alike = 1.0 if one == spelled[number] else min(alike, 1.0)
            best[place] = max(best[place], alike if alike >= MIN_CLOSENESS else 0.0)
    return best


def test_closeness_is_that_of_the_closest_words(listed: list[ListFacts]) -> None:
    for facts in listed:
        close = facts.closeness
        for row, chunk in enumerate(facts.chunks[0, :READ].tolist()):
            wanted = of_one(facts.candidates, chunk)
            assert wanted.tolist() == pytest.approx(close.chunk[row].tolist())
            sentences = close.sentence[close.read.first[row] : close.read.first[row + 1]]
            assert sentences.max(axis=0).tolist() == close.chunk[row].tolist()


def test_a_paraphrase_is_read(index: Index) -> None:
    """ "established" is no word of the tiny world: only its meaning leads to the passage that says "founded"."""
    asked = [Question("q", "Who established Geffen Company?")]
    candidates = next(HopRank().candidates(Batch(index, asked), Counters()))
    place = candidates.questions[0].words.index("established")
    close = closeness_of(candidates, [9, 8])

    assert close.chunk[0, place] > MIN_CLOSENESS
    assert close.chunk[1, place] == 0.0


def test_pairs_by_their_definition(listed: list[ListFacts]) -> None:
    for facts in listed:
        pairs, close, question = facts.pairs, facts.close[0], facts.candidates.questions[0]
        mentions = facts.candidates.corpus.mentions
        chunks = facts.chunks[0, :READ].tolist()
        assert (1, len(chunks), min(PARTNERS, len(chunks))) == pairs.together.shape
        for one, chunk in enumerate(chunks):
            for other, partner in enumerate(chunks[:PARTNERS]):
                both = np.maximum(close[one], close[other])
                assert both @ question.shares == pairs.together[0, one, other]
                assert both @ question.open_shares == pairs.open_together[0, one, other]
                assert (one != other) == pairs.others[one, other]
                named = [
                    mentions.own[second] != -1 and mentions.own[second] in mentions.entity[mentions.chunk == first]
                    for first, second in ((chunk, partner), (partner, chunk))
                ]
                assert (one != other and any(named)) == pairs.titled[0, one, other]
                edge = max(facts.edge[0, one, other], facts.edge[0, other, one])
                assert (0.0 if one == other else edge) == pairs.edge[0, one, other]


def test_two_by_two_in_parts_is_the_same_as_at_once(listed: list[ListFacts], monkeypatch: pytest.MonkeyPatch) -> None:
    question, close = listed[0].candidates.questions[0], listed[0].close[0]
    at_once, of_open = question.together(close, close)
    monkeypatch.setattr("hopbench.retrieval.strategies.hoprank.questions.VALUE_BATCH", 2 * close.size + 1)

    assert (np.maximum(close[:, None], close) @ question.shares).tolist() == at_once.tolist()
    assert (np.maximum(close[:, None], close) @ question.open_shares).tolist() == of_open.tolist()
    assert [at_once.tolist(), of_open.tolist()] == question.together(close, close).tolist()


def test_what_partners_say_by_their_definition(listed: list[ListFacts]) -> None:
    for facts in listed:
        together, edge, alone = facts.pairs.together[0], facts.pairs.edge[0], facts.pairs.own[0]
        value, adds, gain = [], [], []
        for one, own in enumerate(alone.tolist()):
            linked = [other for other in range(edge.shape[1]) if edge[one, other] > LINKED]
            value.append(max([own, *(together[one, other] for other in linked)]))
            adds.append(max([-1.0, *(together[one, other] - alone[other] for other in linked)]))
            gain.append(max([0.0, *((together[one, other] - own) * edge[one, other] for other in linked)]))
        assert [each - max(value) for each in value] == pytest.approx(feature("pair_edge", facts).tolist())
        assert adds == pytest.approx(feature("pair_edge_adds", facts).tolist())
        assert gain == pytest.approx(feature("pair_edge_gain", facts).tolist())
        assert feature("pair_any", facts).max() == 0.0


def test_what_those_above_lack(listed: list[ListFacts]) -> None:
    facts = listed[0]
    close, shares = facts.close[0], facts.candidates.questions[0].shares
    added = [
        np.maximum(row - close[: min(place, 4)].max(axis=0, initial=0.0), 0.0) @ shares
        for place, row in enumerate(close)
    ]

    assert added == pytest.approx(feature("close_adds", facts).tolist())
    assert feature("close_gain", facts)[0] == 0.0


def test_length_is_measured_against_the_corpus(listed: list[ListFacts]) -> None:
    facts = listed[0]
    sizes = [len(f"{passage.title} {passage.text}".split()) for passage in WORLD]
    wanted = [sizes[chunk] / np.mean(sizes) for chunk in facts.chunks[0].tolist()]

    # Its words are not split at spaces only.
    assert wanted == pytest.approx(feature("length", facts).tolist(), rel=0.15)


def test_a_corpus_of_stop_words_is_close_to_nothing(tmp_path: Path) -> None:
    index = built_index(plan_of([Passage("a", "", "it is."), Passage("b", "", "that was the.")]), tmp_path)
    candidates = next(HopRank().candidates(Batch(index, ASKED[:1]), Counters()))

    assert not closeness_of(candidates, [0, 1]).chunk.any()
