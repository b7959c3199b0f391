"""hoprank as a whole: words, mentions, the walk, path values, hits, and corpora of every kind."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import ASKED, WORLD, PlainGraph, built_index, corpora, hand_index, plain_graphs, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.index.cache import IndexCache
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex, corpus_index
from hopbench.retrieval.strategies.hoprank.edges import FORWARD, SHARED
from hopbench.retrieval.strategies.hoprank.paths import OVER_TRIPLES, PATH_FEATURES, best_anchors, path_features
from hopbench.retrieval.strategies.hoprank.words import Words, read_words
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.arrays import compact
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.traversal.random_walk import power_iteration, transitions
from hopbench.retrieval.types import Chunk, Counters, Passage, Question, Ranking, Triple


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def seen_of(index: Index) -> CorpusIndex:
    return corpus_index(Batch(index, []), Counters())[0]


def ranked(index: Index, *texts: str, label: str = "hoprank") -> list[Ranking]:
    return make(label).rank(Batch(index, [Question(text, text) for text in texts]), Counters())


def test_words_count_chunks_and_know_sentences() -> None:
    chunks = [Chunk("a", "a", 0, "Ed Wood", "Ed sang. He won."), Chunk("b", "b", 0, "", "Sang it?")]
    words = Words.of_arrays(read_words(chunks))

    assert ["ed", "wood", "sang", "he", "won", "it"] == list(words.vocabulary)
    assert [0, 1, 0, 2, 3, 4, 2, 5] == words.numbers.tolist()
    assert [0, 2, 4, 6, 6, 8] == words.sentence_start.tolist()  # the second title is an empty sentence
    assert [0, 3, 5] == words.chunk_start.tolist()
    assert [1, 1, 2, 1, 1, 1] == words.frequency.tolist()
    assert math.log1p((2 - 2 + 0.5) / (2 + 0.5)) == pytest.approx(words.idf[2])


def test_what_is_read_of_the_texts_comes_back_from_files(index: Index, tmp_path: Path) -> None:
    seen = seen_of(index)
    written = read_words(index.chunks) | vars(seen.mentions)
    IndexCache(tmp_path).arrays("hoprank", "x", lambda: written)
    arrays = IndexCache(tmp_path).arrays("hoprank", "x", dict)  # `dict` would write none

    assert list(seen.words.vocabulary.items()) == list(Words.of_arrays(arrays).vocabulary.items())
    assert {"vocabulary", "own_weight", "sentence_lengths"} < {*arrays}
    for name, values in written.items():
        assert (values.dtype, values.tolist()) == (arrays[name].dtype, arrays[name].tolist()), name


def test_texts_without_words_come_back_from_files(tmp_path: Path) -> None:
    arrays = IndexCache(tmp_path).arrays("hoprank", "x", lambda: read_words([Chunk("a", "a", 0, "", "")]))
    assert Words.of_arrays(arrays).vocabulary == {}


def places(seen: CorpusIndex, chunk: int) -> list[tuple[str, str]]:
    """Each mention of a chunk: the entity, and the words that stand there."""
    spelled = list(seen.words.vocabulary)
    rows = np.flatnonzero(seen.mentions.chunk == chunk)
    return [
        (
            seen.graph.entities[seen.mentions.entity[row]],
            " ".join(spelled[n] for n in seen.words.numbers[start : start + seen.mentions.length[row]]),
        )
        for row in rows
        for start in [seen.mentions.start[row]]
    ]


def test_mentions_stand_where_the_name_or_its_alias_does(index: Index) -> None:
    seen = seen_of(index)

    assert [("e:tim burton", "tim burton"), ("e:johnny depp", "johnny depp")] == places(seen, 0)
    # Its own title, Owensboro, is left out; Kentucky stands in the title.
    assert [("e:kentucky", "kentucky"), ("e:ohio river", "ohio river")] == places(seen, 4)
    # The alias alone and the whole name, which holds the alias, are one mention each.
    assert [
        ("e:coraopolis", "coraopolis"),
        ("e:owensboro kentucky", "owensboro kentucky"),
        ("e:kentucky", "kentucky"),
    ] == places(seen, 7)
    assert NOWHERE == seen.mentions.own[11]  # no title
    assert "e:ed wood" == seen.graph.entities[seen.mentions.own[0]]


@settings(max_examples=25)
@given(graph=plain_graphs(), seed=st.integers(0, 100))
def test_a_walk_that_drops_nothing_is_the_power_iteration(
    tmp_path_factory: pytest.TempPathFactory, graph: PlainGraph, seed: int
) -> None:
    index = hand_index(graph.tables(), tmp_path_factory.mktemp("walk"), dict.fromkeys(graph.chunks, 0.5))
    whole = adjacency(Batch(index, []), Counters())
    nodes = len(whole.entities) + len(graph.chunks)
    seeds = np.random.default_rng(seed).dirichlet(np.ones(nodes))

    met, held, _ = seen_of(index).walk_mass(np.arange(nodes), seeds, restart=0.3, steps=5, least=0.0)

    expected = power_iteration(transitions(whole, 1.0, 0.0, 0.0), seeds[:, None], 0.3, 5)[:, 0]
    assert expected[len(whole.entities) :].tolist() == pytest.approx(held.tolist(), abs=1e-12)
    assert list(range(len(graph.chunks))) == met.tolist()


def test_a_walk_touches_at_most_one_edge_per_least_mass(index: Index) -> None:
    seen = seen_of(index)
    seeds = np.array([len(seen.graph.entities)])

    for least in (1e-3, 0.05, 0.3):
        assert seen.walk_mass(seeds, np.ones(1), steps=8, least=least)[2] <= 8 / least


def test_the_top_four_do_not_compete() -> None:
    """P = σ(z − logsumexp of z from the fifth on), of each question: of ln(e¹ + e⁰), and of −9 without a fifth."""
    scores = np.array([4.0, 5.0, 0.0, 3.0, 2.0, 1.0, 7.0, 8.0])

    first, probability = best_anchors(scores, [slice(0, 6), slice(6, 8)], 5)

    assert [1, 0, 3, 4, 5, 7, 6] == first.tolist()
    exponents = [math.log(math.e + 1) - z for z in (5, 4, 3, 2, 1)] + [-9.0 - z for z in (8, 7)]
    assert [1 / (1 + math.exp(exponent)) for exponent in exponents] == pytest.approx(probability.tolist())


def test_path_features_by_hand() -> None:
    """Candidate 0 is reached from anchor 0 (.5 forward, .2 shared) and from anchor 1 (.4 shared); 1 not at all."""
    zero = np.zeros(3, np.int64)
    kinds, anchors = np.array([FORWARD, SHARED, SHARED]), np.array([0, 0, 1])

    values = path_features(kinds, anchors, zero, np.array([0.5, 0.2, 0.4]), 2)

    several = 1 - (1 - 0.5) * (1 - 0.4)  # the best of each anchor
    plain = [0.5, 0.0, 0.4, 0.0, 0.5, several]  # forward, reverse, shared, same title, any, several
    assert [*plain, *(math.log(x + 0.001) for x in plain)] == pytest.approx(values[0].tolist())
    assert [*[0.0] * 6, *[math.log(0.001)] * 6] == pytest.approx(values[1].tolist())
    assert len(PATH_FEATURES) == values.shape[1] + len(OVER_TRIPLES)


def test_linear_components_are_those_of_the_coefficients(index: Index) -> None:
    for label in ("hoprank[model=linear]", "hoprank[anchors=0]"):
        coefficients = make(label).coefficients()
        for ranking in ranked(index, *(one.text for one in ASKED), label=label):
            for hit in ranking.hits:
                if hit.origin != "fill":
                    assert list(coefficients)[: len(hit.components)] == list(hit.components)  # those of triples last
                    assert hit.score == pytest.approx(sum(hit.components.values()), abs=1e-6)


def test_the_bridge_is_found_by_its_path(index: Index) -> None:
    (ranking,) = ranked(index, "Where was the director of Ed Wood born?")
    hits = {hit.chunk_id: hit for hit in ranking.hits}

    assert {"p01", "p02"} <= {hit.chunk_id for hit in ranking.hits[:3]}
    assert ["p01", "e:tim burton", "p02"] == [hits["p02"].path[0].source, *(step.target for step in hits["p02"].path)]
    for hit in ranking.hits:
        for first, second in pairwise(hit.path):
            assert first.target == second.source


def test_two_runs_say_the_same_and_count_the_same(index: Index) -> None:
    spent = Counters(), Counters()
    first, second = (make("hoprank").rank(Batch(index, ASKED), counters) for counters in spent)

    assert list(map(repr, first)) == list(map(repr, second))
    assert spent[0] == spent[1]
    pools = [len(one.pool) for one in HopRank().candidates(Batch(index, ASKED), Counters())]
    assert sum(pools) == spent[0].observed["chunks in the pool"]


def test_without_anchors_no_edge_is_followed(index: Index) -> None:
    for ranking in ranked(index, *(one.text for one in ASKED), label="hoprank[anchors=0]"):
        assert all(not hit.path for hit in ranking.hits)


def test_duplicate_passages_say_the_same(tmp_path: Path) -> None:
    """Only what the graph adds may differ: an anchor leads to its twin, not to itself."""
    twice = [*WORLD, *(Passage(f"twin-{one.id}", one.title, one.text) for one in WORLD)]
    index = built_index(plan_of(twice), tmp_path)
    by_words = [name != "walk" for name in BASE_FEATURES]

    for candidates in HopRank().candidates(Batch(index, ASKED), Counters()):
        first, second = candidates.features(np.arange(12)), candidates.features(np.arange(12, 24))
        assert first[:, by_words].tolist() == second[:, by_words].tolist()


@settings(max_examples=10)
@given(passages=corpora())
def test_titles_are_no_condition(tmp_path_factory: pytest.TempPathFactory, passages: list[Passage]) -> None:
    bare = [Passage(one.id, "", f"{one.title}. {one.text}") for one in passages]
    index = built_index(plan_of(bare), tmp_path_factory.mktemp("bare"))

    for ranking in ranked(index, "Where was Ada Krell born?", "who"):
        assert ranking.failure is None
        assert len(bare) == len(ranking.hits)


@pytest.mark.parametrize("text", ["Zyzzyva?", "", "?", "the of it", "Who directed Ed Wood?"])
def test_one_passage_and_any_question(tmp_path: Path, text: str) -> None:
    (ranking,) = ranked(built_index(plan_of(WORLD[:1]), tmp_path), text)

    assert (ranking.failure, ["p01"]) == (None, [hit.chunk_id for hit in ranking.hits])
    assert math.isfinite(ranking.hits[0].score)


def test_a_question_with_no_known_word_is_ranked_by_meaning_alone(index: Index) -> None:
    """No word of it is in the corpus: BM25, names and coverage say nothing, and every chunk is ranked all the same."""
    (ranking,) = ranked(index, "Zyzzyva quux?", label="hoprank[model=linear]")  # to trees a 0 says something, too

    assert (ranking.failure, len(WORLD)) == (None, len(ranking.hits))
    for name in ("bm25", "link", "title_found", "coverage", "sentence", "open_coverage", "rare", "capitals"):
        assert {0.0} == {hit.components[name] for hit in ranking.hits if hit.origin != "fill"}


def test_phrases_alone_make_paths(tmp_path: Path) -> None:
    bare = [Passage(one.id, "", one.text) for one in WORLD]
    (ranking,) = ranked(built_index(plan_of(bare), tmp_path), "Who played Batman for the director of Beetlejuice?")

    assert any(step.source.startswith("e:") for hit in ranking.hits for step in hit.path)


def test_ready_triples_serve_as_the_graph(tmp_path: Path) -> None:
    triples = [Triple("p01", "Ed Wood", "directed by", "Tim Burton"), Triple("p02", "Tim Burton", "born in", "Burbank")]
    (ranking,) = ranked(built_index(plan_of(WORLD, triples=triples), tmp_path), "Who directed Ed Wood?")
    hits = {hit.chunk_id: hit for hit in ranking.hits}

    assert ["e:tim burton", "p02"] == [step.target for step in hits["p02"].path]


@pytest.mark.parametrize(("most", "bits"), [(2**31 - 1, 32), (2**31, 64)])
def test_whole_numbers_are_kept_in_as_few_bits_as_hold_them(most: int, bits: int) -> None:
    values = np.array([NOWHERE, 0, most])

    assert values.tolist() == compact(values).tolist()
    assert np.dtype(f"i{bits // 8}") == compact(values).dtype
