"""Document 1's graph expansion: its numbers, its own example in a real store, and an independent reading of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import PlainGraph, graph_tables, hand_index, plain_graphs

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.graph_expansion import Expansion, GraphExpansion, evidence, hybrid_score, penalty
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Counters, Hit, Question, Ranking, Step

ASKED = [Question("q", "What are the backup procedures for VxRail?")]


@pytest.mark.parametrize(
    ("depth", "linear", "reciprocal"),
    [(1, 1.0, 1 / 1.2), (2, 0.8, 1 / 1.4), (3, 0.6, 1 / 1.6)],  # 1 − .2(d − 1), and 1/(1 + .2d)
)
def test_the_penalty_of_a_depth(depth: int, linear: float, reciprocal: float) -> None:
    assert (linear, reciprocal) == pytest.approx((penalty(depth, "linear"), penalty(depth, "reciprocal")))


@pytest.mark.parametrize(
    ("expected", "similarity", "path", "depth", "kind"),
    [
        (0.82, 0.82, 0.0, 1, "linear"),  # document 1: 0.82 · 1.0
        (0.9, 0.0, 0.9, 1, "linear"),  # 0.9 · 1.0
        (0.6, 0.75, 0.0, 2, "linear"),  # 0.75 · 0.8
        (0.683, 0.82, 0.0, 1, "reciprocal"),  # 0.82 / 1.2
        (0.536, 0.75, 0.0, 2, "reciprocal"),  # 0.75 / 1.4
        (0.9, 0.82, 0.9, 1, "linear"),  # the better of both
    ],
)
def test_the_graph_scores_of_document_1(expected: float, similarity: float, path: float, depth: int, kind: str) -> None:
    reached = Expansion([], {}, strengths=np.array([max(similarity, path)]), depths=np.array([depth]))
    (score,) = evidence(reached, {hop: penalty(hop, kind) for hop in range(1, depth + 1)})
    assert expected == pytest.approx(score, abs=5e-4)


@pytest.mark.parametrize(
    ("expected", "vector", "graph"),
    [
        (0.644, 0.92, 0.0),  # .92·.7 + 0·.3
        (0.616, 0.88, 0.0),
        (0.27, 0.0, 0.9),  # 0·.7 + .9·.3
        (0.246, 0.0, 0.82),
    ],
)
def test_the_hybrid_scores_of_document_1(expected: float, vector: float, graph: float) -> None:
    assert expected == pytest.approx(hybrid_score(vector, graph))


# Document 1's flow diagram, with I and J for its depth 2: I is similar to D at .75, J is named by what RecoverPoint
# is related to at .85, so that its path is 0.9 · 0.85 = 0.765.
COSINES = {"A": 0.92, "B": 0.88, "C": 0.85, "D": 0.1, "E": 0.1, "F": 0.1, "G": 0.1, "H": 0.1, "I": 0.1, "J": 0.1}
DOCUMENT_1 = graph_tables(
    {name: f"chunk {name}" for name in COSINES},
    entities=["VxRail", "Backup", "Data Protection", "RecoverPoint", "Data Protection Suite", "Replication", "Journal"],
    mentions=[
        ("VxRail", "A"),
        ("Backup", "A"),
        ("Data Protection", "A"),
        ("RecoverPoint", "F"),
        ("Data Protection Suite", "G"),
        ("Replication", "H"),
        ("Journal", "J"),
    ],
    related=[
        ("VxRail", "RecoverPoint", 0.9),
        ("Backup", "Data Protection Suite", 0.85),
        ("Data Protection", "Replication", 0.8),
        ("RecoverPoint", "Journal", 0.85),
    ],
    similar=[("A", "D", 0.82), ("A", "E", 0.75), ("D", "I", 0.75), ("B", "E", 0.69)],
)
SMALL = {"initial_k": 3, "fill": False}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return hand_index(DOCUMENT_1, tmp_path_factory.mktemp("document1"), COSINES)


def rank(index: Index, **parameters: Any) -> Ranking:
    (ranking,) = GraphExpansion(**{**SMALL, **parameters}).rank(Batch(index, ASKED), Counters())
    return ranking


def scores(ranking: Ranking) -> dict[str, float]:
    return {hit.chunk_id: round(hit.score, 6) for hit in ranking.hits}


def hit(ranking: Ranking, chunk: str) -> Hit:
    (found,) = (one for one in ranking.hits if one.chunk_id == chunk)
    return found


# .92·.7, .88·.7, .85·.7; then .3 · (F .9, G .85, D .82, H .8, E .75)
DEPTH_1 = {"A": 0.644, "B": 0.616, "C": 0.595, "F": 0.27, "G": 0.255, "D": 0.246, "H": 0.24, "E": 0.225}


def test_document_1_at_depth_1(index: Index) -> None:
    ranking = rank(index)

    assert DEPTH_1 == scores(ranking)
    assert list(DEPTH_1) == [hit.chunk_id for hit in ranking.hits]
    assert ["A", "B", "C"] == list(ranking.seeds)
    assert ["seed"] * 3 + ["graph"] * 5 == [hit.origin for hit in ranking.hits]


def test_document_1_at_depth_2(index: Index) -> None:
    found = scores(rank(index, max_depth=2))

    # I: .3 · .75 · .8 = .18; J: .3 · (.9 · .85 = .765) · .8 = .1836
    assert DEPTH_1 | {"I": 0.18, "J": 0.1836} == found


def test_document_1_with_its_code_s_penalty(index: Index) -> None:
    ranking = rank(index, max_depth=2, depth_penalty="reciprocal")

    assert [0.683, 0.536] == [round(hit(ranking, chunk).components["graph"], 3) for chunk in ("D", "I")]


def test_a_path_is_the_product_of_its_strengths_or_the_last(index: Index) -> None:
    product = hit(rank(index, max_depth=2), "J")
    last = hit(rank(index, max_depth=2, path_strength="max"), "J")

    assert (0.765, 0.85) == pytest.approx((product.components["path"], last.components["path"]))
    assert 0.85 * 0.8 == pytest.approx(last.components["graph"])


def test_the_provenance_of_document_1(index: Index) -> None:
    ranking = rank(index, max_depth=2)

    assert () == hit(ranking, "A").path
    assert (Step("SIMILAR_TO", "A", "D", 0.82, 0.82),) == hit(ranking, "D").path
    entity_hop = (
        Step("MENTIONED_IN", "A", "VxRail", 1.0, 1.0),
        Step("RELATED_TO", "VxRail", "RecoverPoint", 0.9, 0.9),
        Step("MENTIONED_IN", "RecoverPoint", "F", 1.0, 0.9),
    )
    assert entity_hop == hit(ranking, "F").path
    assert [("A", "VxRail"), ("VxRail", "RecoverPoint"), ("RecoverPoint", "F")] == [
        (step.source, step.target) for step in hit(ranking, "J").path[:3]
    ]
    assert 0.765 == pytest.approx(hit(ranking, "J").path[-1].score)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_depth_costs_one_round_trip(tmp_path: Path, depth: int) -> None:
    index = hand_index(DOCUMENT_1, tmp_path, COSINES)
    counters = Counters()

    GraphExpansion(max_depth=depth, initial_k=3).rank(Batch(index, ASKED * 3), counters)

    assert depth == counters.round_trips
    assert [cypher.EXPANSION_HOP] * depth == index.store.queries


def test_no_frontier_costs_no_round_trip(tmp_path: Path) -> None:
    index = hand_index(graph_tables({"a": "x", "b": "y"}), tmp_path, {"a": 0.5, "b": 0.4})
    counters = Counters()

    GraphExpansion(max_depth=3).rank(Batch(index, ASKED), counters)

    assert 1 == counters.round_trips  # the first finds nothing, and nothing is left to go on from


def test_thresholds_are_inclusive(index: Index) -> None:
    assert "D" in scores(rank(index, min_similarity=0.82))
    assert "D" not in scores(rank(index, min_similarity=0.83))
    assert "F" in scores(rank(index, min_strength=0.9))
    assert "F" not in scores(rank(index, min_strength=0.91))


def test_a_kind_of_edge_can_be_left_out(index: Index) -> None:
    assert {"A", "B", "C", "F", "G", "H"} == set(scores(rank(index, use_similar=False)))
    assert {"A", "B", "C", "D", "E"} == set(scores(rank(index, use_related=False)))
    assert {"A", "B", "C"} == set(scores(rank(index, use_similar=False, use_related=False, max_depth=3)))
    zero = {"min_similarity": 0.0, "min_strength": 0.0}
    assert {"A", "B", "C"} == set(scores(rank(index, use_similar=False, use_related=False, **zero)))


def test_max_expanded_keeps_the_best_and_every_initial_chunk(index: Index) -> None:
    assert ["A", "B", "C", "F", "G"] == list(scores(rank(index, max_expanded=2)))
    assert ["A", "B", "C"] == list(scores(rank(index, max_expanded=0)))


def test_expansion_stops_after_the_depth_that_reaches_max_expanded(tmp_path: Path) -> None:
    # Depth 1 finds 5 chunks. With max_expanded 5 depth 2 is not walked; with 6 it is, and the best 6 of 7 are kept.
    for limit, trips, last in ((5, 1, "E"), (6, 2, "J")):
        index = hand_index(DOCUMENT_1, tmp_path / str(limit), COSINES)
        counters = Counters()
        (ranking,) = GraphExpansion(**SMALL, max_depth=2, max_expanded=limit).rank(Batch(index, ASKED), counters)
        assert (trips, last) == (counters.round_trips, ranking.hits[-1].chunk_id)
        assert 3 + limit == len(ranking.hits)


def test_min_score_is_a_matter_of_evidence_or_of_the_hybrid_score(index: Index) -> None:
    # Graph scores: F .9, G .85, D .82, H .8, E .75. On the hybrid score .3 would drop every expanded chunk.
    assert {"A", "B", "C", "F", "G"} == set(scores(rank(index, min_score=0.85)))
    assert {"A", "B", "C"} == set(scores(rank(index, min_score=0.3, min_score_on="hybrid")))
    assert {"A", "B", "C", "F", "G"} == set(scores(rank(index, min_score=0.25, min_score_on="hybrid")))
    assert {"A", "B", "C"} == set(scores(rank(index, min_score=1.0)))  # initial chunks are never dropped


def test_min_score_comes_before_the_limit(index: Index) -> None:
    assert {"A", "B", "C", "F", "G"} == set(scores(rank(index, min_score=0.85, max_expanded=3)))


def test_an_expanded_chunk_s_own_cosine_can_count(index: Index) -> None:
    # F: .7 · .1 + .3 · .9
    assert 0.34 == scores(rank(index, vector_scores="all"))["F"]
    assert 0.0 == hit(rank(index), "F").components["vector"]


def test_fill_completes_from_the_vector_ranking(index: Index) -> None:
    ranking = rank(index, fill=True)

    assert [*DEPTH_1, "I", "J"] == [one.chunk_id for one in ranking.hits]
    assert ["fill", "fill"] == [one.origin for one in ranking.hits[-2:]]


def test_the_last_hop_decides_over_mixed_hops(tmp_path: Path) -> None:
    """Seed -.8 entity hop-> m -SIMILAR .9-> t: .9, not .8·.9; then an entity hop of .5 multiplies .8 only."""
    tables = graph_tables(
        {name: name for name in ("seed", "m", "t", "u")},
        entities=["e1", "e2", "e3", "e4"],
        mentions=[("e1", "seed"), ("e2", "m"), ("e3", "t"), ("e4", "u")],
        related=[("e1", "e2", 0.8), ("e3", "e4", 0.5)],
        similar=[("m", "t", 0.9)],
    )
    index = hand_index(tables, tmp_path, {"seed": 0.9, "m": 0.0, "t": 0.0, "u": 0.0})

    ranking = rank(index, initial_k=1, max_depth=3, min_score=0.0)

    graphs = {one.chunk_id: one.components["graph"] for one in ranking.hits}
    assert {"seed": 0.0, "m": 0.8, "t": 0.9 * 0.8, "u": 0.8 * 0.5 * 0.6} == pytest.approx(graphs)


def test_the_path_shown_is_the_route_that_made_the_score(tmp_path: Path) -> None:
    """m is reached by SIMILAR_TO .7 and by an entity hop of .9: going on from m, the route by SIMILAR_TO is better.

    An entity hop of .6 gives .6 behind the similar route (which multiplies nothing), .54 behind the entity route.
    """
    tables = graph_tables(
        {name: name for name in ("seed", "m", "t")},
        entities=["e1", "e2", "e3"],
        mentions=[("e1", "seed"), ("e2", "m"), ("e3", "t")],
        related=[("e1", "e2", 0.9), ("e2", "e3", 0.6)],
        similar=[("m", "seed", 0.7)],
    )
    index = hand_index(tables, tmp_path, {"seed": 0.9, "m": 0.0, "t": 0.0})

    ranking = rank(index, initial_k=1, max_depth=2)

    assert ["MENTIONED_IN", "RELATED_TO", "MENTIONED_IN"] == [step.edge for step in hit(ranking, "m").path]
    found = hit(ranking, "t")
    assert 0.6 == found.components["path"]
    assert ["SIMILAR_TO", "MENTIONED_IN", "RELATED_TO", "MENTIONED_IN"] == [step.edge for step in found.path]
    assert (0.7, 0.6) == (found.path[0].weight, found.path[-1].score)


def test_edges_of_weight_zero_can_be_followed(tmp_path: Path) -> None:
    tables = graph_tables({"a": "a", "b": "b"}, similar=[("a", "b", 0.0)])
    index = hand_index(tables, tmp_path, {"a": 0.9, "b": 0.0})

    ranking = rank(index, initial_k=1, min_similarity=0.0, min_score=0.0)

    assert (Step("SIMILAR_TO", "a", "b", 0.0, 0.0),) == hit(ranking, "b").path


def test_equal_routes_go_to_the_smaller_ids(tmp_path: Path) -> None:
    tables = graph_tables({c: c for c in "abz"}, similar=[("b", "z", 0.8), ("a", "z", 0.8)])
    index = hand_index(tables, tmp_path, {"a": 0.8, "b": 0.9, "z": 0.0})

    assert "a" == hit(rank(index, initial_k=2), "z").path[0].source


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_depth": 4}, r"graph_expansion\.max_depth = 4 is not allowed: it takes 1\.\.3"),
        ({"max_depth": 1.0}, r"graph_expansion\.max_depth = 1\.0 is not allowed"),
        ({"max_depth": True}, "max_depth = True"),
        ({"min_similarity": -0.1}, r"min_similarity = -0\.1 is not allowed: it takes 0\.\.1"),
        ({"min_score": float("nan")}, "min_score = nan"),
        ({"path_strength": "sum"}, r"path_strength = 'sum' is not allowed: it takes one of product, max"),
        ({"use_similar": 1}, "use_similar = 1 is not allowed: it takes a bool"),
        ({"initial_k": 0}, r"initial_k = 0 is not allowed: it takes 1\.\.100"),
    ],
)
def test_bad_parameters_name_field_value_and_bounds(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        GraphExpansion(**parameters)


def test_the_documented_defaults() -> None:
    expected = {"initial_k": 10, "max_depth": 1, "min_similarity": 0.7, "min_strength": 0.5, "max_expanded": 50}
    expected |= {"chunk_weight": 0.7, "min_score": 0.3, "path_strength": "product", "depth_penalty": "linear"}
    expected |= {"min_score_on": "evidence", "vector_scores": "initial"}

    assert expected.items() <= GraphExpansion().spec().items()


def oracle(graph: PlainGraph, seeds: list[str], strategy: GraphExpansion) -> dict[str, tuple[float, int]]:
    """Document 1 and SPEC section 3 read again, by listing every route: expanded chunk → (graph score, depth).

    A route is a list of hops; it is worth the product of its RELATED_TO strengths. Levels are breadth first: a chunk
    belongs to the first depth that reaches it, and only routes that end there count.
    """
    routes: dict[str, list[float]] = {chunk: [1.0] for chunk in seeds}
    depth_of = dict.fromkeys(seeds, 0)
    found: dict[str, tuple[float, int]] = {}
    for depth in range(1, strategy.max_depth + 1):
        if len(found) >= strategy.max_expanded:
            break
        similar: dict[str, list[tuple[float, float]]] = {}  # chunk → (last similarity, product before)
        paths: dict[str, list[float]] = {}
        for chunk in [c for c, d in depth_of.items() if d == depth - 1]:
            for pair, similarity in graph.similar.items():
                if chunk in pair and similarity >= strategy.min_similarity:
                    (other,) = set(pair) - {chunk}
                    similar.setdefault(other, []).extend((similarity, product) for product in routes[chunk])
            for pair, strength in graph.related.items():
                if strength < strategy.min_strength:
                    continue
                for here, there in (pair, pair[::-1]):
                    if chunk in graph.mentions[here]:
                        for other in graph.mentions[there]:
                            paths.setdefault(other, []).extend(strength * product for product in routes[chunk])
        new = (similar.keys() | paths.keys()) - depth_of.keys()
        for chunk in new:
            last = max((similarity for similarity, _ in similar.get(chunk, [])), default=0.0)
            path = max(paths.get(chunk, []), default=0.0)
            found[chunk] = max(last, path) * (1 - 0.2 * (depth - 1)), depth
            routes[chunk] = [product for _, product in similar.get(chunk, [])] + paths.get(chunk, [])
            depth_of[chunk] = depth
    return found


@settings(max_examples=60)
@given(
    graph=plain_graphs(),
    depth=st.integers(1, 3),
    initial_k=st.integers(1, 3),
    limit=st.sampled_from([0, 1, 2, 3, 50]),
    floor=st.sampled_from([0.0, 0.5, 0.7]),
)
def test_it_agrees_with_an_independent_reading(
    tmp_path_factory: pytest.TempPathFactory, graph: PlainGraph, depth: int, initial_k: int, limit: int, floor: float
) -> None:
    cosines = {chunk: round(0.9 - 0.05 * number, 2) for number, chunk in enumerate(graph.chunks)}
    index = hand_index(
        graph.tables(), tmp_path_factory.mktemp("oracle"), {chunk: cosines[chunk] for chunk in graph.chunks}
    )
    strategy = GraphExpansion(
        max_depth=depth,
        initial_k=initial_k,
        max_expanded=limit,
        min_similarity=floor,
        min_strength=floor,
        min_score=0.35,
        fill=False,
    )
    seeds = list(graph.chunks[:initial_k])
    expanded = {c: (g, d) for c, (g, d) in oracle(graph, seeds, strategy).items() if g >= 0.35}
    best = sorted(expanded, key=lambda chunk: (-round(0.3 * expanded[chunk][0], 9), chunk))[:limit]
    expected: Mapping[str, float] = {chunk: 0.3 * expanded[chunk][0] for chunk in best}

    (ranking,) = strategy.rank(Batch(index, ASKED), Counters())

    graphs = {one.chunk_id: one for one in ranking.hits if one.origin == "graph"}
    assert set(expected) == set(graphs)
    assert seeds == list(ranking.seeds)
    for chunk, one in graphs.items():
        assert expected[chunk] == pytest.approx(one.score, abs=1e-8)
        assert expanded[chunk][1] == one.components["depth"]
        check_path(one, graph, seeds)


def check_path(one: Hit, graph: PlainGraph, seeds: list[str]) -> None:
    """The path is a walk over edges of the graph from a seed, and the score follows from it."""
    assert one.path[0].source in seeds
    product = 1.0
    for step in one.path:
        ends = tuple(sorted((step.source, step.target)))
        if step.edge == "SIMILAR_TO":
            assert graph.similar[ends] == step.weight
        elif step.edge == "RELATED_TO":
            assert graph.related[ends] == step.weight
            product *= step.weight
        else:
            entity, chunk = sorted(ends, key=lambda end: not end.startswith("e:"))
            assert chunk in graph.mentions[entity]
    expected = one.path[-1].weight if one.path[-1].edge == "SIMILAR_TO" else product
    assert expected * (1 - 0.2 * (one.components["depth"] - 1)) == pytest.approx(one.components["graph"], abs=1e-8)


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [
        # (1 − .7)/.7 = .43: the fifth of six initial chunks is below it, a tenth there is not
        ([0.9, 0.8, 0.7, 0.6, 0.42, 0.2], ["initial chunk 5 has a cosine below 0.43, so an expanded one can pass it"]),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.2], []),
    ],
)
def test_how_often_an_expanded_chunk_can_pass_is_counted(
    tmp_path: Path, cosines: list[float], expected: list[str]
) -> None:
    index = hand_index(
        graph_tables({f"c{n}": f"text {n}" for n in range(6)}), tmp_path, {f"c{n}": v for n, v in enumerate(cosines)}
    )
    counters = Counters()
    GraphExpansion().rank(Batch(index, ASKED), counters)
    assert dict.fromkeys(expected, 1) == dict(counters.observed)
