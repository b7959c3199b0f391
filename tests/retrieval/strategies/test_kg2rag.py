"""KG²RAG on hand-made graphs: every expected value is derived beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.graphs import graph_tables, hand_index

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import GraphTables
from hopbench.retrieval.index import Batch, Index, Services
from hopbench.retrieval.strategies.kg2rag import KG2RAG
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Counters, Question, Ranking, Step

ASKED = [Question("q", "anything")]
COSINES = {"c1": 0.8, "c2": 0.6, "c3": 0.5, "c4": 0.4, "c5": 0.7, "c6": 0.3}


def chain() -> GraphTables:
    """c1 states a-b, c2 b-x, c3 a-x (which closes a triangle), c4 x-y; c5 mentions the lonely z, c6 nothing."""
    mentions = {"c1": "ab", "c2": "bx", "c3": "ax", "c4": "xy", "c5": "z"}
    return graph_tables(
        {chunk: f"text of {chunk}" for chunk in COSINES},
        entities=[f"e:{name}" for name in "abxyz"],
        mentions=[(f"e:{name}", chunk) for chunk, names in mentions.items() for name in names],
        related=[("e:a", "e:b", 0.9), ("e:b", "e:x", 0.8), ("e:a", "e:x", 0.7), ("e:x", "e:y", 0.6)],
    )


def rank(index: Index, counters: Counters | None = None, **parameters: Any) -> Ranking:
    (ranking,) = KG2RAG(**{"fill": False, **parameters}).rank(Batch(index, ASKED), counters or Counters())
    return ranking


def ids(ranking: Ranking) -> list[str]:
    return [hit.chunk_id for hit in ranking.hits]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return hand_index(chain(), tmp_path, COSINES)


def test_one_hop_expands_to_the_chunks_of_the_seeds_triples_and_the_tree_filters(index: Index) -> None:
    """Seed c1 (a, b) reaches c2 by b-x and c3 by a-x. Weights .8, .6, .5: a-x closes a cycle, so c3 is filtered out."""
    ranking = rank(index, seed_k=1)

    assert ["c1", "c2"] == ids(ranking)
    assert ["c1"] == list(ranking.seeds)
    told = {"trees": 1, "whole_trees": 1, "tree_sizes": [2], "expanded": 2, "filtered_out": 1}
    assert told | {"kept": sum(hit.origin == "graph" for hit in ranking.hits)} == ranking.notes
    assert ["seed", "graph"] == [hit.origin for hit in ranking.hits]
    # 61/(60 + rank)
    assert [1.0, round(61 / 62, 9)] == [hit.score for hit in ranking.hits]


def test_a_second_hop_goes_on_from_the_far_ends(index: Index) -> None:
    """x is reached by b-x (.8 · .8 = .64) rather than a-x (.8 · .7 = .56); then x-y leads to c4: .64 · .6 = .384."""
    ranking = rank(index, seed_k=1, hops=2)

    assert ["c1", "c2", "c4"] == ids(ranking)
    assert (
        Step("MENTIONED_IN", "c1", "e:b", 1.0, 0.8),
        Step("RELATED_TO", "e:b", "e:x", 0.8, 0.64),
        Step("RELATED_TO", "e:x", "e:y", 0.6, 0.384),
        Step("MENTIONED_IN", "e:y", "c4", 1.0, 0.4),
    ) == ranking.hits[2].path


def test_inheriting_weighs_a_chunk_by_its_path_too(index: Index) -> None:
    """c2: half of its cosine .6 and half of the path's .8 · .8; c3: half of .5 and of .8 · .7."""
    ranking = rank(index, seed_k=1, inherit=0.5)

    assert {"c1": 0.8, "c2": 0.62} == {hit.chunk_id: hit.components["weight"] for hit in ranking.hits}
    path_alone = rank(index, seed_k=1, inherit=1.0)
    assert {"c1": 0.8, "c2": 0.64} == {hit.chunk_id: hit.components["weight"] for hit in path_alone.hits}


def test_the_relevance_of_a_tree_is_the_cosine_of_its_mean_vector(index: Index) -> None:
    """Chunks are c·e0 + √(1−c²)·ei, so c1 + c2 has cosine 1.4/√(1.4² + .36 + .64) with e0."""
    ranking = rank(index, seed_k=1)

    expected = 1.4 / math.sqrt(1.4**2 + (1 - 0.8**2) + (1 - 0.6**2))
    assert ranking.hits[0].components["relevance"] == pytest.approx(expected, abs=2e-6)
    assert 0.8 == rank(index, seed_k=1, relevance="best").hits[0].components["relevance"]


def test_hubs_are_not_expanded_from(index: Index) -> None:
    """b stands in two chunks, a too, x in three: at a limit of 1 no entity of c1 may be left."""
    assert ["c1"] == ids(rank(index, seed_k=1, max_fan=1))
    assert ["c1", "c2"] == ids(rank(index, seed_k=1, max_fan=2, hops=2))


def test_each_hop_keeps_the_heaviest_chunks(index: Index) -> None:
    ranking = rank(index, seed_k=1, max_chunks=1)

    assert ["c1", "c2"] == ids(ranking)
    assert 1 == ranking.notes["expanded"]
    assert 0 == rank(index, seed_k=1, max_chunks=0).notes["expanded"]


def test_weak_relations_are_no_triples(index: Index) -> None:
    """Without b-x (.8) and a-x (.7) nothing leads on from a-b (.9)."""
    assert ["c1"] == ids(rank(index, seed_k=1, min_strength=0.85))


def test_seeds_without_a_triple_leave_the_initial_ranking(tmp_path: Path) -> None:
    index = hand_index(chain(), tmp_path, {**COSINES, "c5": 0.95})
    ranking = rank(index, seed_k=1)

    assert ["c5", "c1", "c2", "c3", "c4", "c6"] == ids(ranking)
    assert {"seed"} == {hit.origin for hit in ranking.hits}
    assert "fallback" in ranking.notes


def test_an_empty_graph_leaves_the_vector_ranking(tmp_path: Path) -> None:
    index = hand_index(graph_tables({"c1": "text of c1", "c2": "text of c2"}), tmp_path, {"c1": 0.1, "c2": 0.4})
    ranking = rank(index)

    assert ["c2", "c1"] == ids(ranking)
    assert "fallback" in ranking.notes


def test_what_the_tree_left_out_comes_back_as_fill(index: Index) -> None:
    ranking = rank(index, seed_k=1, fill=True)

    assert ["c1", "c2", "c5", "c3", "c4", "c6"] == ids(ranking)
    assert ["seed", "graph", *["fill"] * 4] == [hit.origin for hit in ranking.hits]


def two_trees() -> tuple[GraphTables, dict[str, float]]:
    """Tree 1: s1 (.9) states a-b and n1 (.1) b-c. Tree 2: s2 (.7) d-e, n2 (.6) e-f, n3 (.65) f-g is two hops away."""
    mentions = {"s1": "ab", "n1": "bc", "s2": "de", "n2": "ef", "n3": "fg"}
    tables = graph_tables(
        {chunk: f"text of {chunk}" for chunk in mentions},
        entities=[f"e:{name}" for name in "abcdefg"],
        mentions=[(f"e:{name}", chunk) for chunk, names in mentions.items() for name in names],
        related=[(f"e:{first}", f"e:{second}", 0.5) for first, second in ("ab", "bc", "de", "ef", "fg")],
    )
    return tables, {"s1": 0.9, "n1": 0.1, "s2": 0.7, "n2": 0.6, "n3": 0.65}


def test_trees_stand_by_their_relevance(tmp_path: Path) -> None:
    """Mean vectors: tree 1 has 1/√(1 + .19 + .99) = .677, tree 2 1.3/√(1.69 + .51 + .64) = .771; best chunks .9, .7."""
    tables, cosines = two_trees()
    index = hand_index(tables, tmp_path, cosines)

    by_text = rank(index, seed_k=2)
    assert ["s2", "n2", "s1", "n1"] == ids(by_text)
    assert [1, 1, 2, 2] == [hit.components["tree"] for hit in by_text.hits]
    assert by_text.hits[0].components["relevance"] == pytest.approx(1.3 / math.sqrt(1.69 + 0.51 + 0.64), abs=2e-6)
    assert ["s1", "n1", "s2", "n2"] == ids(rank(index, seed_k=2, relevance="best"))


def test_trees_are_whole_up_to_top_k_and_then_by_weight(tmp_path: Path) -> None:
    """Three chunks of room: tree 2 fits, tree 1 would make four, so its chunks stand by weight behind it."""
    tables, cosines = two_trees()
    index = hand_index(tables, tmp_path, {**cosines, "n1": 0.95, "s1": 0.9, "s2": 0.97, "n2": 0.93})

    # Relevance: tree 1 (.9 + .95), tree 2 (.97 + .93); both walks begin with their heavier chunk.
    assert ["s2", "n2", "n1", "s1"] == ids(rank(index, seed_k=4, top_k=3, max_chunks=0))
    assert ["s2", "n1", "n2", "s1"] == ids(rank(index, seed_k=4, top_k=1, max_chunks=0))
    assert ["s2", "n1", "n2", "s1"] == ids(rank(index, seed_k=4, arrange="weight", max_chunks=0))
    assert ["s2", "n2", "n1", "s1"] == ids(rank(index, seed_k=4, top_k=1, arrange="walk", max_chunks=0))


def test_a_tree_is_walked_depth_first_from_its_heaviest_edge(tmp_path: Path) -> None:
    """Root a of a-b (.9); from a the branch a-c (.5), c-d (.2) is walked to its end only after b-e (.3), under a-b."""
    mentions = {"k1": "ab", "k2": "ac", "k3": "cd", "k4": "be"}
    tables = graph_tables(
        {chunk: f"text of {chunk}" for chunk in mentions},
        entities=[f"e:{name}" for name in "abcde"],
        mentions=[(f"e:{name}", chunk) for chunk, names in mentions.items() for name in names],
        related=[(f"e:{first}", f"e:{second}", 0.5) for first, second in mentions.values()],
    )
    index = hand_index(tables, tmp_path, {"k1": 0.9, "k2": 0.5, "k3": 0.2, "k4": 0.3})

    assert ["k1", "k4", "k2", "k3"] == ids(rank(index, seed_k=4))
    assert ["k1", "k2", "k4", "k3"] == ids(rank(index, seed_k=4, arrange="weight"))


def test_the_initial_ranking_can_have_a_share(index: Index) -> None:
    """Trees: c1, c2. Vector: c1, c5, c2, c3, …; half each: c2 .5 · (61/62 + 61/63), c5 .5 · 61/62, c3 .5 · 61/64."""
    ranking = rank(index, seed_k=1, initial_weight=0.5)

    assert ["c1", "c2", "c5", "c3", "c4", "c6"] == ids(ranking)
    assert round(0.5 * (61 / 62 + 61 / 63), 9) == ranking.hits[1].score
    assert round(0.5 * 61 / 62, 9) == ranking.hits[2].score


def test_a_reranker_may_judge_the_trees(tmp_path: Path) -> None:
    tables, cosines = two_trees()
    index = hand_index(tables, tmp_path, cosines)
    seen: list[tuple[int, str]] = []

    def judge(questions: Sequence[Question], counters: Counters, pairs: Sequence[tuple[int, str]]) -> list[float]:
        seen.extend(pairs)
        counters.llm_calls += 1
        return [5.0 if "s1" in text else -5.0 for _, text in pairs]

    index.services = Services(tree_relevance=judge)
    counters = Counters()

    assert ["s1", "n1", "s2", "n2"] == ids(rank(index, counters, seed_k=2))
    assert [(0, "text of s1 text of n1"), (0, "text of s2 text of n2")] == seen
    assert 1 == counters.llm_calls


def test_the_adjacency_is_read_once_and_charged_to_each_batch(index: Index) -> None:
    first, second = Counters(), Counters()
    rank(index, first, seed_k=1)
    rank(index, second, seed_k=1)

    assert [cypher.ADJACENCY] == index.store.queries  # type: ignore[attr-defined]
    for counters in (first, second):
        assert 1 == counters.round_trips
        assert 9 + 4 == counters.rows  # mentions and relations
        # c1's own triple, then a's (a-b in c1, a-x in c3) and b's (a-b in c1, b-x in c2).
        assert 1 + 4 == counters.edges_touched
        assert {"graph", "expansion", "trees", "ordering"} == set(counters.stage_seconds)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("seed_k", 0),
        ("hops", 4),
        ("max_fan", 0),
        ("max_chunks", -1),
        ("inherit", 1.5),
        ("arrange", "dfs"),
        ("top_k", -1),
    ],
)
def test_values_outside_the_bounds_are_refused(parameter: str, value: object) -> None:
    with pytest.raises(ParameterError, match=rf"kg2rag\.{parameter} = "):
        KG2RAG(**{parameter: value})  # type: ignore[arg-type]
