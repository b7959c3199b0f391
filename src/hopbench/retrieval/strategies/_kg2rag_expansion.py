"""KG²RAG's graph-guided expansion over triples, and the maximum spanning trees that organise a question's chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.support.arrays import expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Step

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
BATCH_SIZE = 4096  # chunks whose entities are paired at a time


@dataclass(frozen=True, eq=False)
class Triples:
    """Relations with the chunks that state them, sorted by chunk, head and tail; parallel arrays of length t.

    `heads` < `tails` are rows of the adjacency's m entities, `chunks` rows of the index's n. The graph keeps one
    RELATED_TO edge per pair: a chunk that mentions both ends is taken as stating it. Chunk i states the triples
    `of_chunk[i]` to `of_chunk[i + 1]`; those of entity i are `of_entity[begins[i] : begins[i + 1]]`.
    """

    heads: Rows
    tails: Rows
    chunks: Rows
    strengths: Floats
    of_chunk: Rows
    begins: Rows
    of_entity: Rows

    @classmethod
    def of(cls, heads: Rows, tails: Rows, chunks: Rows, strengths: Floats, sizes: tuple[int, int]) -> Self:
        ends = np.concatenate([heads, tails])
        order = np.argsort(ends, kind="stable")
        begins = np.searchsorted(ends[order], np.arange(sizes[0] + 1)).astype(np.int64)
        of_chunk = np.searchsorted(chunks, np.arange(sizes[1] + 1)).astype(np.int64)
        return cls(heads, tails, chunks, strengths, of_chunk, begins, order.astype(np.int64) % max(len(heads), 1))

    def strong(self, least: float) -> Self:
        strong = self.strengths >= least
        if strong.all():
            return self
        heads, tails, chunks = (column[strong] for column in (self.heads, self.tails, self.chunks))
        sizes = len(self.begins) - 1, len(self.of_chunk) - 1
        return self.of(heads, tails, chunks, self.strengths[strong], sizes)

    def stated_in(self, chunks: Rows) -> Rows:
        return expand_ranges(self.of_chunk[chunks], self.of_chunk[chunks + 1])[0]

    def about(self, entities: Rows) -> tuple[Rows, Rows]:
        """Numbers of the triples with an end among `entities`, entity by entity, and that end of each."""
        positions, owners = expand_ranges(self.begins[entities], self.begins[entities + 1])
        return self.of_entity[positions], entities[owners]


def stated_triples(graph: Adjacency) -> Triples:
    """All triples of a graph: every related pair of entities in every chunk that mentions both.

    Chunks are paired with themselves, not entities with each other: the cost grows with the chunks, whatever the hubs.
    """
    upper = sparse.csr_array(sparse.triu(graph.related, 1))
    upper.sort_indices()
    entities, chunks = graph.mentions.shape
    heads = np.repeat(np.arange(entities), np.diff(upper.indptr))
    known, strengths = heads.astype(np.int64) * entities + upper.indices, upper.data
    mentioned = sparse.csr_array(graph.mentions.T)
    mentioned.sort_indices()
    pairs = [_pairs(mentioned, begin, min(begin + BATCH_SIZE, chunks), known) for begin in range(0, chunks, BATCH_SIZE)]
    places = np.concatenate([place for place, _ in pairs]) if pairs else np.zeros(0, np.int64)
    stated = np.concatenate([chunk for _, chunk in pairs]) if pairs else np.zeros(0, np.int64)
    keys = known[places]
    return Triples.of(keys // max(entities, 1), keys % max(entities, 1), stated, strengths[places], (entities, chunks))


def _pairs(mentioned: sparse.csr_array, begin: int, end: int, known: Rows) -> tuple[Rows, Rows]:
    """Places in `known` (sorted keys head · m + tail) of the pairs that chunks begin..end mention, and the chunks."""
    sizes = np.diff(mentioned.indptr[begin : end + 1])
    first, last = mentioned.indptr[begin], mentioned.indptr[end]
    entities = mentioned.indices[first:last].astype(np.int64)
    chunk = np.repeat(np.arange(begin, end), sizes)
    remaining = np.repeat(mentioned.indptr[begin + 1 : end + 1], sizes) - np.arange(first, last) - 1
    left = np.repeat(np.arange(len(entities)), remaining)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(remaining) - remaining, remaining)
    keys = entities[left] * mentioned.shape[1] + entities[right]
    places = np.searchsorted(known, keys)
    places[places == len(known)] = 0
    hit = known[places] == keys if len(known) else np.zeros(len(keys), dtype=bool)
    return places[hit].astype(np.int64), chunk[left][hit].astype(np.int64)


class Tree(NamedTuple):
    """A maximum spanning tree: its edges as numbers of triples in depth-first order, and its chunks in that order."""

    triples: Sequence[int]
    chunks: Sequence[int]


def spanning_trees(triples: Triples, chunks: Rows, weights: Floats) -> list[Tree]:
    """The maximum spanning trees of the triples that some chunks state, a triple weighing what its chunk does.

    Chunks are kept where a tree has one of their triples: what only repeats better chunks' connections is filtered
    out. Equal weights are decided by the chunk's row, then by the relation's strength, then by the entities, so the
    trees are unique. Trees stand by their heaviest edge; each is walked depth first from that edge, heavier first.
    """
    numbers = triples.stated_in(chunks)
    if not len(numbers):
        return []
    sizes = triples.of_chunk[chunks + 1] - triples.of_chunk[chunks]
    weight = np.repeat(weights, sizes)
    heavy_first = np.lexsort((numbers, -triples.strengths[numbers], triples.chunks[numbers], -weight))
    numbers = numbers[heavy_first]
    heads, tails = triples.heads[numbers], triples.tails[numbers]
    ends, places = np.unique(np.concatenate([heads, tails]), return_inverse=True)
    head, tail = places[: len(numbers)], places[len(numbers) :]
    _, first = np.unique(head * len(ends) + tail, return_index=True)
    # Ranks in place of weights: all different, so the smallest-rank tree is the one maximum tree.
    ranks = sparse.csr_array((first + 1.0, (head[first], tail[first])), shape=(len(ends), len(ends)))
    in_tree = np.sort(csgraph.minimum_spanning_tree(ranks).data.astype(np.int64)) - 1
    # Depth-first walks over the forest, whose edges come heaviest first.
    around: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    numbers = numbers[in_tree]
    edges = list(zip(numbers.tolist(), triples.heads[numbers].tolist(), triples.tails[numbers].tolist(), strict=True))
    for number, one, other in edges:
        around[one].append((number, other))
        around[other].append((number, one))
    trees, seen = list[Tree](), set[int]()
    for _, root, _ in edges:
        if root in seen:
            continue
        seen.add(root)
        waiting, walked = list(reversed(around[root])), list[int]()
        while waiting:
            number, entity = waiting.pop()
            if entity not in seen:
                seen.add(entity)
                walked.append(number)
                waiting.extend(reversed(around[entity]))
        trees.append(Tree(walked, list(dict.fromkeys(triples.chunks[walked].tolist()))))
    return trees


Origin = tuple[int, int, float]
"""How an entity or a chunk was reached: from an entity by a triple, and the path's value.

A seed's entity has entity -1, and in place of a triple the row of the seed chunk.
"""


@dataclass(slots=True)
class Expansion:
    """A question's chunks with their weights, and the origins of expanded chunks and of entities."""

    weights: dict[int, float]
    chunks: dict[int, Origin] = field(default_factory=dict)
    entities: dict[int, Origin] = field(default_factory=dict)
    touched: int = 0


def expand(
    batch: Batch,
    q: int,
    seeds: Sequence[int],
    graph: Adjacency,
    triples: Triples,
    *,
    hops: int,
    max_fan: int,
    max_chunks: int,
    inherit: float,
) -> Expansion:
    """The seeds with the chunks that `hops` steps over triples add."""
    rows = np.array(seeds, dtype=np.int64)
    similarities = cosines(batch.index.vectors, rows, batch.vectors[q])
    best_first = np.lexsort((rows, -similarities))
    expansion = Expansion(dict(zip(seeds, similarities.tolist(), strict=True)))
    numbers = triples.stated_in(rows[best_first])
    expansion.touched += len(numbers)
    ends = np.stack([triples.heads[numbers], triples.tails[numbers]], axis=1).ravel()
    frontier, first = np.unique(ends, return_index=True)
    for entity, seed in zip(frontier.tolist(), triples.chunks[numbers[first // 2]].tolist(), strict=True):
        expansion.entities[entity] = -1, seed, expansion.weights[seed]
    for hop in range(1, hops + 1):
        frontier = frontier[graph.frequency[frontier] <= max_fan]
        frontier = _hop(batch, q, frontier, triples, expansion, max_chunks, inherit, last=hop == hops)
    return expansion


def _hop(
    batch: Batch,
    q: int,
    frontier: Rows,
    triples: Triples,
    expansion: Expansion,
    max_chunks: int,
    inherit: float,
    *,
    last: bool,
) -> Rows:
    """Add the heaviest chunks that state a triple of the frontier; returns the entities newly reached by them."""
    numbers, near = triples.about(frontier)
    expansion.touched += len(numbers)
    new = ~np.isin(triples.chunks[numbers], list(expansion.weights))
    numbers, near = numbers[new], near[new]
    value = np.array([expansion.entities[entity][2] for entity in frontier.tolist()])
    values = np.round(triples.strengths[numbers] * value[np.searchsorted(frontier, near)], DECIMALS)

    def origins(of: Rows) -> list[Origin]:
        return list(zip(near[of].tolist(), numbers[of].tolist(), values[of].tolist(), strict=True))

    best_first = np.lexsort((near, numbers, -values))
    rows, first = np.unique(triples.chunks[numbers[best_first]], return_index=True)
    own = best_first[first]
    weights = cosines(batch.index.vectors, rows, batch.vectors[q])
    weights = np.round((1.0 - inherit) * weights + inherit * values[own], DECIMALS)
    heaviest = np.lexsort((rows, -weights))[:max_chunks]
    expansion.weights.update(zip(rows[heaviest].tolist(), weights[heaviest].tolist(), strict=True))
    expansion.chunks.update(zip(rows[heaviest].tolist(), origins(own[heaviest]), strict=True))
    if last:
        return np.zeros(0, np.int64)
    followed = best_first[np.isin(triples.chunks[numbers[best_first]], rows[heaviest])]
    far = triples.heads[numbers[followed]] + triples.tails[numbers[followed]] - near[followed]
    entities, first = np.unique(far, return_index=True)
    found = zip(entities.tolist(), origins(followed[first]), strict=True)
    reached = {entity: origin for entity, origin in found if entity not in expansion.entities}
    expansion.entities.update(reached)
    return np.array(list(reached), dtype=np.int64)


def path_to(row: int, expansion: Expansion, graph: Adjacency, triples: Triples, index: Index) -> tuple[Step, ...]:
    """The edges from a seed to an expanded chunk: mention, relations, mention; none for a seed."""
    if row not in expansion.chunks:
        return ()
    names, (entity, triple, value) = graph.entities, expansion.chunks[row]
    far = int(triples.heads[triple] + triples.tails[triple]) - entity
    last = Step(MENTIONED_IN, names[far], index.ids[row], graph.mention_weight(far, row), expansion.weights[row])
    steps = [last, Step(RELATED_TO, names[entity], names[far], float(triples.strengths[triple]), value)]
    while True:
        via, source, value = expansion.entities[entity]
        if via < 0:
            weight = graph.mention_weight(entity, source)
            steps.append(Step(MENTIONED_IN, index.ids[source], names[entity], weight, value))
            return tuple(reversed(steps))
        steps.append(Step(RELATED_TO, names[via], names[entity], float(triples.strengths[source]), value))
        entity = via
