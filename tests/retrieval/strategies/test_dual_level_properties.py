"""dual_level against a plain reading on random graphs, and the order of an engine's rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.entity_graphs import asked, cosines_of, index_of
from tests.support.graphs import PlainGraph, plain_graphs

from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies._dual_level_communities import communities, descriptions
from hopbench.retrieval.strategies.dual_level import DualLevel
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Question

worlds = plain_graphs().flatmap(lambda graph: st.tuples(st.just(graph), asked(graph)))
ORDERS = st.sampled_from(["nearest", "count", "cosine"])


def entity_cosine(entity: str) -> float:
    """A cosine for each entity of a random graph, by its number: ties occur, and some stay below .2."""
    return (0.9, 0.1, 0.5, 0.5, 0.3, 0.0)[int(entity[-1])]


def all_cosines(graph: PlainGraph) -> dict[str, float]:
    chunks = {f"text of {chunk}": cosine for chunk, cosine in cosines_of(graph.chunks).items()}
    return chunks | {entity: entity_cosine(entity) for entity in graph.mentions}


def local_reading(graph: PlainGraph, limit: int, minimum: float, order: str) -> list[str]:
    """Chunks of the nearest entities. The question names nobody, so all entities go by their cosines."""
    cosines = cosines_of(graph.chunks)
    known = {end for pair in graph.related for end in pair} | {one for one, chunks in graph.mentions.items() if chunks}
    near = [entity for entity in known if entity_cosine(entity) >= minimum and entity_cosine(entity) > 0]
    near = sorted(near, key=lambda entity: (-entity_cosine(entity), entity))[:limit]

    def key(chunk: str) -> tuple[float, float, str]:
        here = [entity for entity in near if chunk in graph.mentions[entity]]
        first = {
            "nearest": float(near.index(here[0])),
            "count": -float(len(here)),
            "cosine": -round(sum(map(entity_cosine, here)), 9),
        }[order]
        return first, -cosines[chunk], chunk

    return sorted((c for c in graph.chunks if any(c in graph.mentions[entity] for entity in near)), key=key)


@given(plain_graphs(), st.integers(1, 6), st.sampled_from([0.0, 0.2, 0.5]), ORDERS)
def test_local_does_what_a_plain_reading_does(graph: PlainGraph, limit: int, minimum: float, order: str) -> None:
    expected = local_reading(graph, limit, minimum, order)
    strategy = DualLevel(fill=False, mode="local", entities=limit, min_cosine=minimum, local_order=order)
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(graph.tables(), Path(folder), all_cosines(graph)), [Question("q", "anything")])
        (ranking,) = strategy.rank(batch, Counters())
    if expected:
        assert expected == [hit.chunk_id for hit in ranking.hits]
    else:
        assert "fallback" in ranking.notes


@given(plain_graphs(), st.integers(1, 3))
def test_global_does_what_a_plain_reading_does(graph: PlainGraph, limit: int) -> None:
    """Communities are all like the question (cosine 1), so they come in their own order, that of their first entity."""
    strategy = DualLevel(fill=False, mode="global", communities=limit)
    cosines = cosines_of(graph.chunks)
    with tempfile.TemporaryDirectory() as folder:
        named = {f"text of {chunk}": cosine for chunk, cosine in cosines.items()}
        batch = Batch(index_of(graph.tables(), Path(folder), named), [Question("q", "anything")])
        read = adjacency(batch, Counters())
        known = communities(batch, Counters(), read, linker(batch, Counters()), descriptions(batch, Counters()))
        (ranking,) = strategy.rank(batch, Counters())
    members = [[read.entities[row] for row in rows] for rows in known.members][:limit]

    expected: list[str] = []
    for entities in members:
        counts = {chunk: sum(chunk in graph.mentions[entity] for entity in entities) for chunk in graph.chunks}
        new = [chunk for chunk, count in counts.items() if count and chunk not in expected]
        expected += sorted(new, key=lambda chunk: (-counts[chunk], -cosines[chunk], chunk))
    if expected:
        assert expected == [hit.chunk_id for hit in ranking.hits]
    else:
        assert "fallback" in ranking.notes


@given(worlds, st.sampled_from(["hybrid", "mix"]), ORDERS)
def test_fusion_is_the_sum_of_the_levels(world: tuple[PlainGraph, list[Question]], mode: str, order: str) -> None:
    graph, questions = world
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(graph.tables(), Path(folder), all_cosines(graph)), questions)
        settings_ = {"fill": False, "local_order": order}
        local, broad, fused = (
            DualLevel(mode=one, **settings_).rank(batch, Counters())  # type: ignore[arg-type]
            for one in ("local", "global", mode)
        )
        vector = batch.vector_rankings
    for q, ranking in enumerate(fused):
        lists = [[] if "fallback" in r.notes else [hit.chunk_id for hit in r.hits] for r in (local[q], broad[q])]
        if not any(lists):
            assert "fallback" in ranking.notes
            continue
        if mode == "mix":
            lists.append([chunk for chunk, _ in vector[q]])
        scores = {c: sum(1 / (61 + one.index(c)) for one in lists if c in one) for c in sorted(set().union(*lists))}
        assert {chunk: pytest.approx(score, abs=1e-9) for chunk, score in scores.items()} == {
            hit.chunk_id: hit.score for hit in ranking.hits
        }


@settings(deadline=None, max_examples=20)
@given(worlds, st.integers(0, 2**16))
def test_the_order_of_an_engine_s_rows_changes_nothing(world: tuple[PlainGraph, list[Question]], shuffle: int) -> None:
    graph, questions = world
    told = []
    for order in (None, shuffle):
        with tempfile.TemporaryDirectory() as folder:
            batch = Batch(index_of(graph.tables(), Path(folder), all_cosines(graph), order), questions)
            rankings = DualLevel(mode="mix").rank(batch, Counters())
            told.append([(list(map(repr, ranking.hits)), ranking.notes) for ranking in rankings])

    assert told[0] == told[1]


@settings(deadline=None, max_examples=25)
@given(worlds)
def test_every_step_is_in_the_graph(world: tuple[PlainGraph, list[Question]]) -> None:
    graph, questions = world
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(graph.tables(), Path(folder), all_cosines(graph)), questions)
        rankings = DualLevel().rank(batch, Counters())
        read = adjacency(batch, Counters())
        known = communities(batch, Counters(), read, linker(batch, Counters()), descriptions(batch, Counters()))
    for hit in (hit for ranking in rankings for hit in ranking.hits if hit.origin == "graph"):
        *before, last = hit.path
        assert last.edge == "MENTIONED_IN"
        assert hit.chunk_id == last.target
        assert hit.chunk_id in graph.mentions[last.source]
        for step in before:
            rows = known.members[int(step.source.removeprefix("community:"))]
            assert step.target in [read.entities[row] for row in rows]
