"""Tagged graphs and document 3 read anew on dictionaries: what the tests of the activation strategy stand on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from tests.support.graphs import PlainGraph, plain_graphs

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO, GraphTables
from hopbench.retrieval.strategies.activation import Activation

WORDS = ("flow", "guild", "river", "stone", "music")
Neighbours = Mapping[str, Mapping[str, tuple[str, float, Sequence[str]]]]


@dataclass(frozen=True)
class TaggedGraph:
    """A graph with tags on its edges (ends in order → tags) and mention weights; the rest untagged, weight 1."""

    graph: PlainGraph
    tags: Mapping[tuple[str, str], Sequence[str]]
    weights: Mapping[tuple[str, str], float]

    def tables(self) -> GraphTables:
        """The same graph for a store."""
        tables = self.graph.tables()
        edges = dict(tables.edges)
        for kind in (MENTIONED_IN, RELATED_TO, SIMILAR_TO):
            pairs = list(zip(edges[kind]["source"], edges[kind]["target"], strict=True))
            edges[kind] = edges[kind].assign(tags=[list(self.tags.get(_pair(*pair), ())) for pair in pairs])
            if kind == MENTIONED_IN:
                edges[kind] = edges[kind].assign(weight=[self.weights.get(_pair(*pair), 1.0) for pair in pairs])
        return replace(tables, edges=edges)

    def neighbours(self, strategy: Activation) -> Neighbours:
        """Node → neighbour → (type, weight, tags) over the edges that exist for the strategy."""
        graph, found = self.graph, {node: {} for node in (*self.graph.chunks, *self.graph.mentions)}
        edges = [
            (SIMILAR_TO, *p, w)
            for p, w in graph.similar.items()
            if strategy.use_similar and w >= strategy.min_similarity
        ]
        edges += [
            (RELATED_TO, *p, w) for p, w in graph.related.items() if strategy.use_related and w >= strategy.min_strength
        ]
        if strategy.use_mentioned:
            edges += [
                (MENTIONED_IN, entity, chunk, self.weights.get(_pair(entity, chunk), 1.0))
                for entity, chunks in graph.mentions.items()
                for chunk in chunks
            ]
        for kind, first, second, weight in edges:
            found[first][second] = found[second][first] = kind, weight, self.tags.get(_pair(first, second), ())
        return found


def _pair(first: str, second: str) -> tuple[str, str]:
    return min(first, second), max(first, second)


@st.composite
def tagged_graphs(draw: st.DrawFn) -> TaggedGraph:
    """A random graph; about half of its edges are tagged, with the questions' words and others."""
    graph = draw(plain_graphs())
    mentioned = [_pair(entity, chunk) for entity, chunks in graph.mentions.items() for chunk in sorted(chunks)]
    pairs = sorted({*graph.related, *graph.similar, *mentioned})
    tags = st.lists(st.sampled_from(WORDS), max_size=4, unique=True)
    return TaggedGraph(
        graph,
        {pair: draw(tags) for pair in pairs},
        {pair: draw(st.sampled_from([0.1, 0.3, 0.8, 1.0])) for pair in mentioned},
    )


def activations() -> st.SearchStrategy[Activation]:
    """The strategy with parameters that matter in small graphs."""
    return st.builds(
        Activation,
        fill=st.just(False),
        seeds=st.integers(1, 6),
        max_depth=st.integers(1, 5),
        max_branches=st.integers(1, 4),
        min_activation=st.sampled_from([0.0, 0.005, 0.02, 0.1]),
        tag_floor=st.sampled_from([0.0, 0.15, 0.6]),
        max_tags=st.sampled_from([0, 2, 8]),
        min_weight=st.sampled_from([0.0, 0.25]),
        min_similarity=st.sampled_from([0.3, 0.7]),
        min_strength=st.sampled_from([0.0, 0.5]),
        use_similar=st.booleans(),
        use_related=st.booleans(),
        use_mentioned=st.booleans(),
        ranking=st.sampled_from(["energy", "blend"]),
    )


Path = tuple[tuple[str, float], ...]


def spread(
    neighbours: Neighbours, seed: str, start: float, tags: Sequence[str], strategy: Activation
) -> dict[Path, str]:
    """Document 3's steps 1 to 3 for one seed, paths as values: complete path → why it ended."""
    paths: list[Path] = [((seed, start),)]
    visited, ended = {seed}, {}
    for _ in range(strategy.max_depth):
        offers = sorted(
            (-energy(neighbours[path[-1][0]], path[-1][1], target, tags, strategy), path[-1][0], target, path)
            for path in paths
            for target in neighbours[path[-1][0]]
            if target not in visited
        )
        strong = [offer for offer in offers if -offer[0] > strategy.min_activation]
        owner: dict[str, str] = {}
        for _lost, node, target, _path in strong:  # sorted: the first claim is the highest, then the smaller node
            owner.setdefault(target, node)
        following = []
        for path in paths:
            node = path[-1][0]
            mine = sorted(
                (lost, target) for lost, source, target, _ in strong if source == node and owner[target] == node
            )
            following += [(*path, (target, -lost)) for lost, target in mine[: strategy.max_branches]]
            if not mine:
                open_ones = [target for target in neighbours[node] if target not in visited]
                lost_all = any(source == node for _, source, _, _ in strong)
                ended[path] = "below_threshold" if open_ones and not lost_all else "dead_end"
        paths = following
        visited |= {path[-1][0] for path in paths}
    return {**ended, **dict.fromkeys(paths, "max_depth")}


def energy(
    around: Mapping[str, tuple[str, float, Sequence[str]]],
    start: float,
    target: str,
    tags: Sequence[str],
    by: Activation,
) -> float:
    """T = R·w/√d · tag_sim by the source's section 3 and 4, rounded as all scores are."""
    _, weight, own = around[target]
    shared, union = set(own) & set(tags), set(own) | set(tags)
    if not tags:
        similarity = 1.0
    elif not own:
        similarity = by.tag_floor
    else:
        similarity = by.tag_floor + (1 - by.tag_floor) * len(shared) / len(union)
    return round(start * max(weight, by.min_weight) / math.sqrt(len(around)) * similarity, 9)
