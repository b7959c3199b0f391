"""The neighbourhood search against a plain reading of document 5 on random graphs, and its promises as properties."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.entity_graphs import cosines_of, index_of, mentions_of, neighbours_of, with_counts, worlds
from tests.support.graphs import PlainGraph

from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.strategies.neighborhood import Neighborhood
from hopbench.retrieval.types import Counters, Question


def paths(start: str, hops: int, related: Mapping[str, Mapping[str, float]]) -> list[tuple[str, int, float]]:
    """Every walk without repetition: (its end, its length, its smallest weight)."""
    found = []

    def walk(node: str, seen: tuple[str, ...], weight: float) -> None:
        for target, strength in related[node].items():
            if target not in seen:
                here = min(weight, round(10 * strength, 9))
                found.append((target, len(seen), here))
                if len(seen) < hops:
                    walk(target, (*seen, target), here)

    walk(start, (start,), math.inf)
    return found


def plain_reading(
    graph: PlainGraph, entities: Sequence[str], hybrid: Sequence[tuple[str, float]], hops: int, added: int
) -> list[tuple[str, float]]:
    """Document 5's phase 3 and merge, for one question, on dictionaries."""
    related = neighbours_of(graph)
    scores: dict[str, float] = {}
    for start in entities:
        ways = paths(start, hops, related)
        for entity in {end for end, _, _ in ways}:
            hop = min(length for end, length, _ in ways if end == entity)
            weight = max(w for end, length, w in ways if (end, length) == (entity, hop))
            for chunk in graph.mentions[entity]:
                boost = 0.7 + 0.3 * min(math.log2(mentions_of(entity, chunk) + 1) / 5, 1)
                scores[chunk] = max(scores.get(chunk, 0.0), round(weight / 10 * 0.5 ** (hop - 1) * boost, 9))
    kept = dict(hybrid[:3])
    others = sorted((c for c in scores if c not in kept), key=lambda c: (-round(0.3 * scores[c], 9), c))[:added]
    merged = {c: 0.7 * kept.get(c, 0.0) + 0.3 * scores.get(c, 0.0) for c in [*kept, *others]}
    return sorted(((c, round(s, 9)) for c, s in merged.items()), key=lambda pair: (-pair[1], pair[0]))


@given(worlds, st.integers(1, 3), st.integers(0, 4))
def test_it_does_what_a_plain_reading_does(world: tuple[PlainGraph, list[Question]], hops: int, added: int) -> None:
    graph, questions = world
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(with_counts(graph.tables()), Path(folder), cosines_of(graph.chunks)), questions)
        strategy = Neighborhood(fill=False, initial_k=3, max_hops=hops, max_graph_chunks=added)
        for ranking, hybrid in zip(strategy.rank(batch, Counters()), hybrid_rankings(batch), strict=True):
            expected = plain_reading(graph, list(ranking.notes["entities"]), hybrid, hops, added)  # type: ignore[call-overload]
            assert [hit.chunk_id for hit in ranking.hits] == [chunk for chunk, _ in expected]
            for hit, (_, score) in zip(ranking.hits, expected, strict=True):
                assert abs(hit.score - score) <= 1e-9


parameters = st.fixed_dictionaries(
    {
        "initial_k": st.integers(1, 9),
        "max_hops": st.integers(1, 3),
        "max_graph_chunks": st.integers(0, 6),
        "beta": st.sampled_from([0.0, 0.3, 1.0]),
        "hybrid_scores": st.sampled_from(["initial", "all"]),
        "recognition": st.sampled_from(["ngrams", "names"]),
        "rarity": st.sampled_from([0.0, 1.0]),
    }
)


@given(worlds, parameters)
def test_it_never_removes_a_hybrid_result(world: tuple[PlainGraph, list[Question]], chosen: dict[str, object]) -> None:
    graph, questions = world
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(with_counts(graph.tables()), Path(folder), cosines_of(graph.chunks)), questions)
        strategy = Neighborhood(fill=False, **chosen)  # type: ignore[arg-type]
        for ranking, hybrid in zip(strategy.rank(batch, Counters()), hybrid_rankings(batch), strict=True):
            kept = {chunk for chunk, _ in hybrid[: strategy.initial_k]}
            found = [hit.chunk_id for hit in ranking.hits]
            assert len(found) == len(set(found))
            assert {hit.chunk_id for hit in ranking.hits if hit.origin == "seed"} == kept
            assert len(found) - len(kept) <= strategy.max_graph_chunks
            order = [(-hit.score, hit.chunk_id) for hit in ranking.hits]
            assert order == sorted(order)


@settings(deadline=None, max_examples=15)
@given(worlds, parameters, st.integers(0, 99))
def test_the_order_of_the_engines_rows_changes_nothing(
    world: tuple[PlainGraph, list[Question]], chosen: dict[str, object], seed: int
) -> None:
    graph, questions = world
    tables = with_counts(graph.tables())
    with tempfile.TemporaryDirectory() as folder:
        strategy = Neighborhood(**chosen)  # type: ignore[arg-type]
        indexes = [
            index_of(tables, Path(folder) / str(shuffle), cosines_of(graph.chunks), shuffle) for shuffle in (None, seed)
        ]
        straight, shuffled = [strategy.rank(Batch(index, questions), Counters()) for index in indexes]
        assert straight == shuffled
