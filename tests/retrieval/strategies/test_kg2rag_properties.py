"""KG²RAG against a plain reading of the paper on random graphs, and the order of an engine's rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.entity_graphs import cosines_of, index_of, neighbours_of
from tests.support.graphs import PlainGraph, plain_graphs

from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies._kg2rag_expansion import spanning_trees, stated_triples
from hopbench.retrieval.strategies.kg2rag import KG2RAG
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Question

ASKED = [Question("q1", "anything"), Question("q2", "anything else")]
Edge = tuple[str, str, str]


def stated(graph: PlainGraph, minimum: float) -> set[Edge]:
    """(head, tail, chunk) of every related pair in every chunk that mentions both."""
    return {
        (*sorted((first, second)), chunk)  # type: ignore[misc]
        for (first, second), strength in graph.related.items()
        for chunk in graph.mentions[first] & graph.mentions[second]
        if strength >= minimum
    }


def expanded(
    graph: PlainGraph, seeds: list[str], triples: set[Edge], hops: int, max_fan: int, max_chunks: int
) -> set[str]:
    """The seeds and the chunks that `hops` steps over the triples add, the nearest of each step."""
    cosines, chunks = cosines_of(graph.chunks), set(seeds)
    seen = {end for *ends, chunk in triples if chunk in seeds for end in ends}
    frontier = set(seen)
    for _ in range(hops):
        going = {entity for entity in frontier if len(graph.mentions[entity]) <= max_fan}
        steps = [(h, t, c) for h, t, c in triples if c not in chunks and going & {h, t}]
        new = sorted({c for *_, c in steps}, key=lambda c: (-cosines[c], c))[:max_chunks]
        far = {t for h, t, c in steps if c in new and h in going} | {h for h, t, c in steps if c in new and t in going}
        frontier, seen, chunks = far - seen, seen | far, chunks | set(new)
    return chunks


def kruskal(edges: list[tuple[float, Edge]]) -> list[Edge]:
    """The maximum spanning forest: the best edge first, kept where it joins what was apart."""
    group: dict[str, str] = {}

    def root(entity: str) -> str:
        while group.setdefault(entity, entity) != entity:
            entity = group[entity]
        return entity

    kept = []
    for _, (head, tail, chunk) in edges:
        if root(head) != root(tail):
            group[root(head)] = root(tail)
            kept.append((head, tail, chunk))
    return kept


def walks(kept: list[Edge]) -> list[list[str]]:
    """The chunks of each tree in depth-first order from the best edge's head; `kept` is best first."""
    seen: set[str] = set()

    def walk(entity: str) -> list[str]:
        seen.add(entity)
        found = []
        for head, tail, chunk in kept:
            other = tail if head == entity else head
            if entity in (head, tail) and other not in seen:
                found += [chunk, *walk(other)]
        return found

    return [list(dict.fromkeys(walk(head))) for head, _, _ in kept if head not in seen]


def forest(graph: PlainGraph, chunks: set[str], triples: set[Edge]) -> list[list[str]]:
    related, cosines = neighbours_of(graph), cosines_of(graph.chunks)
    edges = [(cosines[chunk], (head, tail, chunk)) for head, tail, chunk in triples if chunk in chunks]
    edges.sort(key=lambda one: (-one[0], one[1][2], -related[one[1][0]][one[1][1]], one[1]))
    return walks(kruskal(edges))


@given(
    plain_graphs(),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.5, 0.75]),
    st.sampled_from([1, 2, 200]),
    st.sampled_from([0, 1, 50]),
)
def test_it_does_what_a_plain_reading_does(
    graph: PlainGraph, seed_k: int, hops: int, minimum: float, max_fan: int, max_chunks: int
) -> None:
    cosines = cosines_of(graph.chunks)
    by_cosine = sorted(graph.chunks, key=lambda chunk: (-cosines[chunk], chunk))
    triples = stated(graph, minimum)
    chunks = expanded(graph, by_cosine[:seed_k], triples, hops, max_fan, max_chunks)
    trees = forest(graph, chunks, triples)
    best = sorted(trees, key=lambda tree: -max(cosines[chunk] for chunk in tree))  # stable: the heavier edge first
    with tempfile.TemporaryDirectory() as folder:
        index = index_of(graph.tables(), Path(folder), cosines)
        limits = {"seed_k": seed_k, "hops": hops, "min_strength": minimum, "max_fan": max_fan, "max_chunks": max_chunks}
        strategy = KG2RAG(fill=False, arrange="walk", relevance="best", **limits)  # type: ignore[arg-type]
        for ranking in strategy.rank(Batch(index, ASKED), Counters()):
            found = [hit.chunk_id for hit in ranking.hits]
            if trees:
                assert found == list(dict.fromkeys(chunk for tree in best for chunk in tree))
                assert len(chunks) == ranking.notes["expanded"] + len(set(by_cosine[:seed_k]))  # type: ignore[operator]
            else:
                assert found == by_cosine
                assert "fallback" in ranking.notes


@settings(deadline=None, max_examples=25)
@given(plain_graphs(), st.sampled_from([0.0, 0.5]))
def test_the_triples_are_all_related_pairs_that_a_chunk_mentions(graph: PlainGraph, minimum: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(graph.tables(), Path(folder)), ASKED)
        read = adjacency(batch, Counters())
    found = stated_triples(read).strong(minimum)

    named = zip(found.heads.tolist(), found.tails.tolist(), found.chunks.tolist(), strict=True)
    ids = [chunk.id for chunk in batch.index.chunks]
    assert sorted(stated(graph, minimum)) == sorted((read.entities[h], read.entities[t], ids[c]) for h, t, c in named)
    assert (np.diff(found.chunks) >= 0).all()


@settings(deadline=None, max_examples=25)
@given(plain_graphs())
def test_trees_connect_what_the_triples_connect_and_hold_no_cycle(graph: PlainGraph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(index_of(graph.tables(), Path(folder)), ASKED)
        triples = stated_triples(adjacency(batch, Counters()))
    rows = np.arange(len(graph.chunks))
    trees = spanning_trees(triples, rows, np.full(len(rows), 0.5))

    entities = [
        {end for number in tree.triples for end in (int(triples.heads[number]), int(triples.tails[number]))}
        for tree in trees
    ]
    assert all(len(tree.triples) == len(ends) - 1 for tree, ends in zip(trees, entities, strict=True))
    assert sum(map(len, entities)) == len(set().union(*entities))
    assert set().union(*entities) == {*triples.heads.tolist(), *triples.tails.tolist()}


@settings(deadline=None, max_examples=25)
@given(plain_graphs(), st.integers(0, 2**16), st.integers(1, 3))
def test_the_order_of_an_engine_s_rows_changes_nothing(graph: PlainGraph, shuffle: int, hops: int) -> None:
    strategy = KG2RAG(seed_k=2, hops=hops, inherit=0.4)
    told = []
    for order in (None, shuffle):
        with tempfile.TemporaryDirectory() as folder:
            index = index_of(graph.tables(), Path(folder), cosines_of(graph.chunks), order)
            told.append([(list(map(repr, r.hits)), r.notes) for r in strategy.rank(Batch(index, ASKED), Counters())])

    assert told[0] == told[1]


@settings(deadline=None, max_examples=25)
@given(plain_graphs(), st.integers(1, 3))
def test_every_step_is_an_edge_of_the_graph(graph: PlainGraph, hops: int) -> None:
    related = neighbours_of(graph)
    with tempfile.TemporaryDirectory() as folder:
        index = index_of(graph.tables(), Path(folder), cosines_of(graph.chunks))
        rankings = KG2RAG(seed_k=1, hops=hops).rank(Batch(index, ASKED), Counters())
    for ranking in rankings:
        for hit in (hit for hit in ranking.hits if hit.origin == "graph"):
            first, *middle, last = hit.path
            assert first.source in ranking.seeds
            assert first.source in graph.mentions[first.target]
            assert last.target in graph.mentions[last.source]
            assert [related[step.source][step.target] for step in middle] == [step.weight for step in middle]
            assert 1 <= len(middle) <= hops
