"""BM25 and exact cosine, fused: the rankings that every strategy starts from."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopbench.retrieval.search import candidates as neighbours
from hopbench.retrieval.search import exact
from hopbench.retrieval.search.exact import LexicalIndex, best_rows, cosines, dense_top
from hopbench.retrieval.search.fusion import min_max, ordered, reciprocal_rank, weighted


def test_a_total_order_is_by_rounded_score_then_id() -> None:
    scores = {"b": 0.5, "a": 0.5 + 1e-12, "c": 0.7, "d": -1.0}

    assert [("c", 0.7), ("a", 0.5), ("b", 0.5), ("d", -1.0)] == ordered(scores)


@pytest.mark.parametrize(
    ("scored", "expected"),
    [
        ([], {}),
        ([("a", 3.0)], {"a": 1.0}),
        ([("a", 3.0), ("b", 3.0)], {"a": 1.0, "b": 1.0}),
        ([("a", 4.0), ("b", 2.0), ("c", 0.0)], {"a": 1.0, "b": 0.5, "c": 0.0}),
        ([("a", -1.0), ("b", -3.0)], {"a": 1.0, "b": 0.0}),
    ],
)
def test_min_max_stretches_to_zero_and_one(scored: list[tuple[str, float]], expected: dict[str, float]) -> None:
    assert expected == min_max(scored)


def test_the_weighted_hybrid_counts_what_is_absent_as_zero() -> None:
    dense, lexical = [("a", 0.9), ("b", 0.5), ("c", 0.1)], [("b", 12.0), ("d", 2.0)]

    # a: .7·1; b: .7·(.5 − .1)/(.9 − .1) + .3·1 = .35 + .3; c: .7·0; d: .3·0
    expected = {"a": 0.7, "b": 0.65, "c": 0.0, "d": 0.0}
    assert expected == pytest.approx(weighted([(0.7, dense), (0.3, lexical)]))


def test_reciprocal_rank_fusion_by_hand() -> None:
    # a: first and third; b: second and first; c: only second
    expected = {"a": 1 / 61 + 1 / 63, "b": 1 / 62 + 1 / 61, "c": 1 / 62, "d": 1 / 63}

    assert expected == pytest.approx(reciprocal_rank([["a", "b", "d"], ["b", "c", "a"]]))


def lucene(document: Sequence[str], corpus: Sequence[Sequence[str]], query: Sequence[str]) -> float:
    """BM25 as Lucene computes it, from Kamphuis et al. (ECIR 2020), with k1 1.5 and b .75."""
    mean = sum(map(len, corpus)) / len(corpus)
    total = 0.0
    for term in query:
        found = sum(term in other for other in corpus)
        idf = math.log(1 + (len(corpus) - found + 0.5) / (found + 0.5))
        frequency = document.count(term)
        total += idf * frequency / (frequency + 1.5 * (1 - 0.75 + 0.75 * len(document) / mean))
    return total


CONTENTS = ["river stone river", "The river and the film", "film music", "", "stone stone stone music"]


def test_bm25_is_lucene_s_without_stop_words() -> None:
    corpus = [["river", "stone", "river"], ["river", "film"], ["film", "music"], [], ["stone"] * 3 + ["music"]]
    index = LexicalIndex(CONTENTS)

    (found,) = index.top(["The rivers? river of stone"])

    expected = [lucene(document, corpus, ["river", "stone"]) for document in corpus]
    best = sorted((row for row in range(5) if expected[row] > 0), key=lambda row: -expected[row])
    assert best == found.rows.tolist()
    assert [expected[row] for row in best] == pytest.approx(found.scores.tolist(), abs=2e-6)


@pytest.mark.parametrize("question", ["", "the of", "unknown", "?!"])
def test_a_question_of_no_known_word_finds_nothing(question: str) -> None:
    (found,) = LexicalIndex(CONTENTS).top([question])

    assert [] == found.rows.tolist()


def test_a_corpus_without_words_finds_nothing() -> None:
    (found,) = LexicalIndex(["", "the"]).top(["river"])

    assert [] == found.rows.tolist()
    assert [] == LexicalIndex(CONTENTS).top([])


def test_equal_scores_go_to_the_earlier_chunk_and_depth_cuts() -> None:
    (found,) = LexicalIndex(["x", "river", "river", "river", "y"]).top(["river"], depth=2)

    assert [1, 2] == found.rows.tolist()


def test_bm25_scores_a_question_the_same_in_any_company() -> None:
    index = LexicalIndex(CONTENTS)
    alone = [index.top([question])[0] for question in ("river", "stone music")]

    for one, together in zip(alone, index.top(["river", "stone music"]), strict=True):
        assert one.rows.tolist() == together.rows.tolist()
        assert one.scores.tolist() == together.scores.tolist()


@pytest.mark.parametrize("question", ["river", "stone music stone", "the film of the river", "unknown", ""])
def test_bm25_of_some_chunks_is_that_of_all(question: str) -> None:
    index, rows = LexicalIndex(CONTENTS), np.array([4, 0, 2, 3])

    assert index.scores(question)[rows].tolist() == index.scorer(question)(rows).tolist()


def test_chunks_that_share_a_rare_word() -> None:
    index = LexicalIndex(["Ohio River", "Ohio flows", "Ohio, Iowa", "the"])

    found = index.sharing(["the River of Iowa", "Ohio", "Iowa Iowa", ""], 2)

    assert [[0, 2], [], [2], []] == [sorted(set(rows.tolist())) for rows in found]
    assert [0, 1, 2] == index.sharing(["Ohio"], 3)[0].tolist()
    assert [[]] == [rows.tolist() for rows in LexicalIndex(["the"]).sharing(["Ohio"], 2)]  # a corpus without a token


def random_vectors(seed: int, rows: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(rows, 16))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 40), st.integers(1, 50))
def test_dense_search_equals_brute_force(seed: int, questions: int, chunks: int, depth: int) -> None:
    asked, known = random_vectors(seed, questions), random_vectors(seed + 1, chunks)
    exact = np.round(asked.astype(np.float64) @ known.T.astype(np.float64), 6)

    for number, found in enumerate(dense_top(asked, known, depth)):
        best = sorted(range(chunks), key=lambda row: (-exact[number, row], row))[:depth]
        assert best == found.rows.tolist()
        assert exact[number, best].tolist() == found.scores.tolist()


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 400), st.integers(1, 50), st.booleans())
def test_dense_search_in_blocks_finds_the_same(
    seed: int, questions: int, chunks: int, depth: int, copies: bool
) -> None:
    """Blocks of a few rows, and few questions together: a search of many rows goes through hundreds of blocks."""
    asked, known = random_vectors(seed, questions), random_vectors(seed + 1, chunks)
    known = known[np.arange(chunks) % 7] if copies and chunks > 7 else known
    whole = dense_top(asked, known, depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "QUESTION_BATCH", 4)
        patch.setattr(exact, "MAX_PRODUCTS", 1)
        patch.setattr(exact, "MIN_ROWS", 16)
        blocks = dense_top(asked, known, depth)

    assert [found.rows.tolist() for found in whole] == [found.rows.tolist() for found in blocks]
    assert [found.scores.tolist() for found in whole] == [found.scores.tolist() for found in blocks]


def test_a_search_of_many_rows_holds_few_products() -> None:
    """Products of all rows at once would take 200 MB here."""
    asked, known = random_vectors(1, 500), random_vectors(2, 100_000)
    tracemalloc.start()
    dense_top(asked, known, 10)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 60e6


def test_questions_that_tie_with_every_row_hold_few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector of zeros, as of words that the embedder does not know: 2 M equal cells here, 48 MB as candidates."""
    monkeypatch.setattr(exact, "MAX_PRODUCTS", 1)
    monkeypatch.setattr(exact, "MIN_ROWS", 128)
    monkeypatch.setattr(neighbours, "MIN_HELD", 1)
    known = random_vectors(2, 10_000)
    tracemalloc.start()
    found = dense_top(np.zeros((200, 16), np.float32), known, 10)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [list(range(10))] * 200 == [each.rows.tolist() for each in found]
    assert most < 20e6


def test_a_cosine_does_not_depend_on_the_batch_or_on_which_chunks_are_asked_for() -> None:
    """Min-max fusion stretches equal scores to 1 and scores that differ by a rounding error to 0..1."""
    asked, known = random_vectors(1, 200), np.repeat(random_vectors(2, 1), 130, axis=0)
    together = dense_top(asked, known)

    for number, found in enumerate(together):
        (alone,) = dense_top(asked[number : number + 1], known)
        assert list(range(100)) == found.rows.tolist() == alone.rows.tolist()
        assert 1 == len(set(found.scores.tolist()))
        assert found.scores.tolist() == alone.scores.tolist()
        assert found.scores[7] == cosines(known, [7], asked[number])[0]


def test_no_question_finds_nothing() -> None:
    assert [] == dense_top(np.zeros((0, 16), np.float32), random_vectors(1, 3))


def test_best_rows_of_several_rows() -> None:
    found = best_rows(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]]), 2)

    assert [[1, 2], [0, 1]] == [row.tolist() for row in found]


@given(text=st.text(max_size=60) | st.sampled_from(["The Ohio River's 3rd bridge, IT is", "naïve CAFÉ a_b x 12"]))
def test_words_are_those_of_bm25s(text: str) -> None:
    """BM25 reads questions without bm25s's progress bar, and no otherwise."""
    import bm25s

    index = LexicalIndex(CONTENTS)
    (expected,) = bm25s.tokenize([text], stopwords="en", show_progress=False, return_ids=False)

    assert expected == index._tokens(text)
