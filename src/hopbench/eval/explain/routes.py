"""The shortest way through the graph from a question's seeds to a passage, edge by edge.

A step is SIMILAR_TO, chunk–entity–chunk or chunk–entity–entity–chunk, as reach@h counts them (SPEC section 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.eval.metrics.built_in import MAX_HOPS
from hopbench.eval.metrics.reach import ExpansionFactors
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters, Step

EVERY_KIND = (SIMILAR_TO, MENTIONED_IN, RELATED_TO)
Matrix = Any  # scipy.sparse.csr_array, whose stubs want a shape


@dataclass(frozen=True, slots=True)
class Route:
    """A shortest way: `hops` expansion steps, and their edges from a seed (or recognised entity) to the passage."""

    hops: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """The edges of one step back from a chunk; `before` is the chunk it starts from, None at a recognised entity."""

    strength: float
    frequency: int
    steps: tuple[Step, ...]
    before: int | None

    @property
    def order(self) -> tuple[float, int, int, tuple[str, ...]]:
        """Strongest first, then fewest edges, then through the rarest entity, then by ids."""
        return -self.strength, len(self.steps), self.frequency, tuple(step.source for step in self.steps)


class Routes:
    """Shortest ways over edges of the given `kinds` from passages and entities, at most 3 steps long."""

    def __init__(
        self, index: Index, seeds: Sequence[str], entities: Sequence[str] = (), kinds: Collection[str] = EVERY_KIND
    ) -> None:
        """`seeds` are passage ids, `entities` entity ids; unknown entities are left out."""
        self._ids, self._passage_of = index.ids, index.passage_of
        self._graph = _restricted(adjacency(Batch(index, []), Counters()), kinds)
        self._entities_of: Matrix = sparse.csr_array(self._graph.mentions.T)
        wanted = set(seeds)
        self._from_chunks = [row for row, chunk in enumerate(index.ids) if self._passage_of[chunk] in wanted]
        known = self._graph.entity_row
        self._from_entities = sorted({known[entity] for entity in entities if entity in known})
        self._level = self._levels()

    def to(self, passage: str) -> Route | None:
        """The way to a passage; None where it cannot be reached in 3 steps, no edges where it is a seed."""
        reached = np.flatnonzero(self._level >= 0).tolist()
        rows = [row for row in reached if self._passage_of[self._ids[row]] == passage]
        if not rows:
            return None
        last: int | None = min(rows, key=lambda row: (self._level[row], row))
        hops = int(self._level[last])
        steps: tuple[Step, ...] = ()
        while last is not None and self._level[last] > 0:
            way = min(self._ways(last, int(self._level[last]) - 1), key=lambda way: way.order)
            steps, last = (*way.steps, *steps), way.before
        return Route(hops, steps)

    def _levels(self) -> NDArray[np.int64]:
        """In how many steps each chunk is reached, -1 for none."""
        graph = self._graph
        factors = ExpansionFactors.make(len(self._ids), self._entities_of, graph.related, graph.similar)
        words = np.zeros(len(self._ids), dtype=np.uint64)
        words[self._from_chunks] = 1
        level = np.where(words > 0, 0, -1).astype(np.int64)
        for hop in range(1, MAX_HOPS + 1):
            words = factors.step(words)
            if hop == 1:
                words[self._chunks_of_entities()] = 1
            level[(words > 0) & (level < 0)] = hop
        return level

    def _chunks_of_entities(self) -> list[int]:
        related = {int(e) for start in self._from_entities for e in _row(self._graph.related, start)[0]}
        return sorted({int(c) for e in {*self._from_entities, *related} for c in _row(self._graph.mentions, e)[0]})

    def _ways(self, chunk: int, level: int) -> Iterator[_Way]:
        """Every way of one step into `chunk` from chunks of `level`, and at level 0 from the recognised entities."""
        id_of, name = self._ids[chunk], self._graph.entities
        for before, similarity in zip(*_row(self._graph.similar, chunk), strict=True):
            if self._level[before] == level:
                source = self._ids[before]
                yield _Way(similarity, 0, (Step(SIMILAR_TO, source, id_of, similarity, similarity),), int(before))
        for entity, mention in zip(*_row(self._entities_of, chunk), strict=True):
            into = Step(MENTIONED_IN, name[entity], id_of, mention, mention)
            yield from self._starts(int(entity), level, mention, (into,))
            for other, strength in zip(*_row(self._graph.related, entity), strict=True):
                through = Step(RELATED_TO, name[other], name[entity], strength, strength)
                yield from self._starts(int(other), level, mention * strength, (through, into))

    def _starts(self, entity: int, level: int, strength: float, steps: tuple[Step, ...]) -> Iterator[_Way]:
        """The ways that come to an entity from a recognised one (itself) or from a chunk of `level`."""
        chunks, weights = _row(self._graph.mentions, entity)
        if level == 0 and entity in self._from_entities:
            yield _Way(strength, len(chunks), steps, None)
        there = self._level[chunks] == level
        if there.any():
            best = int(np.argmax(np.where(there, weights, -1.0)))
            weight = float(weights[best])
            first = Step(MENTIONED_IN, self._ids[chunks[best]], self._graph.entities[entity], weight, weight)
            yield _Way(strength * weight, len(chunks), (first, *steps), int(chunks[best]))


def _restricted(graph: Adjacency, kinds: Collection[str]) -> Adjacency:
    def restricted(matrix: Matrix, kind: str) -> Matrix:
        return matrix if kind in kinds else sparse.csr_array(matrix.shape)

    return Adjacency(
        graph.entities,
        restricted(graph.mentions, MENTIONED_IN),
        restricted(graph.related, RELATED_TO),
        restricted(graph.similar, SIMILAR_TO),
        graph.rows,
    )


def _row(matrix: Matrix, row: int) -> tuple[Any, Any]:
    """Columns and values of a CSR row; values as plain floats where they are walked one by one."""
    begin, end = matrix.indptr[row], matrix.indptr[row + 1]
    return matrix.indices[begin:end], matrix.data[begin:end].astype(float)
