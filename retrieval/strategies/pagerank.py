"""Personalised PageRank over chunks and entities, seeded by the best chunks and the question's entities.

After HippoRAG 2 (arXiv 2502.14802) and SPRIG: a walk that restarts at the question's entities and at the first chunks
of the hop-free ranking, over mention edges weighted by the entity's idf/√df, so that rare names carry more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch, Link
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.search.exact import best_rows
from hopbench.retrieval.search.fusion import DECIMALS, Scored
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters, Hit, Ranking, Step

Matrix = NDArray[np.float64]
BLOCK = 64
EXPLAINED = 20
KEPT_CELLS = 16_000_000  # of mass: 128 MB


@dataclass(frozen=True, eq=False)
class WalkResult:
    """The result of a walk: `masses` are (nodes, questions) in blocks of questions, a list if small, else a generator.

    `name` tells the walk from others over the same batch; `paths` are the explained paths, by question and chunk row.
    """

    name: tuple[str, ...]
    graph: Adjacency
    transition: sparse.csr_array
    masses: Iterable[Matrix]
    paths: dict[tuple[int, int], tuple[Step, ...]] = field(default_factory=dict)

    def path(self, q: int, row: int, mass: Matrix, batch: Batch) -> tuple[Step, ...]:
        """The strongest path into a chunk."""
        if (q, row) not in self.paths:
            self.paths[q, row] = _strongest_path(row, self.graph, self.transition, mass, batch)
        return self.paths[q, row]


@dataclass(frozen=True, kw_only=True)
class PageRank(Strategy):
    """Personalised PageRank; the plain label is the tuned preset, since the method has no source defaults."""

    name: ClassVar[str] = "pagerank"
    summary: ClassVar[str] = "personalised PageRank from the RRF ranking and the question's entities"
    edges: ClassVar[tuple[str, ...]] = (MENTIONED_IN, RELATED_TO, SIMILAR_TO)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        MENTIONED_IN: {"mention_weight": 0.0},
        RELATED_TO: {"related_weight": 0.0},
        SIMILAR_TO: {"similar_weight": 0.0},
    }

    traversal_parameters: ClassVar[tuple[str, ...]] = (
        "mention_weight",
        "related_weight",
        "similar_weight",
        "restart",
        "steps",
        "seed_chunks",
        "question_weight",
    )

    restart: float = param(0.15, "probability of returning to the seeds at each step", 0.01, 0.99)
    steps: int = param(15, "iterations of the power method", 1, 200)
    seed_chunks: int = param(3, "chunks of the RRF ranking that the walk starts from", 0, 100)
    question_weight: float = param(2.0, "seed mass on the question's entities; the chunks have 1", 0.0, 10.0)
    mention_weight: float = param(1.0, "weight of MENTIONED_IN edges", 0.0, 10.0)
    related_weight: float = param(0.0, "weight of RELATED_TO edges", 0.0, 10.0)
    similar_weight: float = param(0.0, "weight of SIMILAR_TO edges", 0.0, 10.0)
    initial_weight: float = param(0.0, "share of the RRF score in the final score", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        """The RRF ranking of vector and BM25."""
        return hybrid_rankings(batch, fusion="rrf")

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Walk for all questions together, a block of columns at a time; trials that walk alike share the walk."""
        with stage(counters, "entities"):
            reader = linker(batch, counters)
            links = batch.memo.get("links", lambda: [reader.links(one.text) for one in batch.questions])
        with stage(counters, "initial"):
            initial = self.initial(batch)
        with stage(counters, "walk"):
            walked = self._walk_result(batch, counters, initial, links)
        with stage(counters, "ranking"):
            columns = (column for block in walked.masses for column in block.T)
            return [self._ranking(batch, q, walked, mass, initial[q], links[q]) for q, mass in enumerate(columns)]

    def _walk_result(
        self, batch: Batch, counters: Counters, initial: Sequence[Scored], links: Sequence[list[Link]]
    ) -> WalkResult:
        """The walk of all questions; the last trial's result if it is the same walk."""
        graph = adjacency(batch, counters)
        transition = self._transitions(batch, graph)
        counters.edges_touched += transition.nnz * self.steps * len(links)
        last: list[WalkResult] = batch.memo.get("last walk", list)
        walked = last[0] if last else None
        if walked is None or walked.name != self.shared_work():
            seeds = np.stack([self._seed(batch, graph, *pair) for pair in zip(initial, links, strict=True)], axis=1)
            blocks = (seeds[:, begin : begin + BLOCK] for begin in range(0, len(links), BLOCK))
            masses = (power_iteration(transition, block, self.restart, self.steps) for block in blocks)
            small = seeds.size <= KEPT_CELLS
            walked = WalkResult(self.shared_work(), graph, transition, list(masses) if small else masses)
            last[:] = [walked] if small else []
        return walked

    def _transitions(self, batch: Batch, graph: Adjacency) -> sparse.csr_array:
        weights = self.mention_weight, self.related_weight, self.similar_weight
        return batch.index.memo.get(("transitions", *weights), lambda: transitions(graph, *weights))

    def _seed(self, batch: Batch, graph: Adjacency, initial: Scored, links: list[Link]) -> Matrix:
        """Restart distribution over entities then chunks, sum 1."""
        entities = len(graph.entities)
        seed = np.zeros(entities + len(batch.index.chunks))
        best = initial[: self.seed_chunks]
        total = sum(score for _, score in best)
        for chunk, score in best:
            seed[entities + batch.index.row_of[chunk]] += score / total
        rows = [graph.entity_row[link.entity] for link in links if link.entity in graph.entity_row]
        if rows:
            idf = _idf(graph, len(batch.index.chunks))[rows]
            np.add.at(seed, rows, self.question_weight * idf / idf.sum())
        mass = seed.sum()
        return np.asarray(seed / mass if mass else seed)

    def _ranking(
        self,
        batch: Batch,
        q: int,
        walked: WalkResult,
        mass: Matrix,
        initial: Scored,
        links: list[Link],
    ) -> Ranking:
        offset = len(walked.graph.entities)
        share = mass[offset:] / (mass[offset:].max() or 1.0)
        rrf = np.zeros_like(share)
        rrf[[batch.index.row_of[chunk] for chunk, _ in initial]] = [score / initial[0][1] for _, score in initial]
        final = np.round((1.0 - self.initial_weight) * share + self.initial_weight * rrf, DECIMALS)
        chunks = batch.index.chunks
        seeds = [chunk for chunk, _ in initial[: self.seed_chunks]]
        (rows,) = best_rows(final[None, :], KEEP)  # equal ones by row, and so by id
        rows = rows[final[rows] > 0]
        parts = (np.round(values[rows], DECIMALS).tolist() for values in (final, share, rrf))
        hits = []
        for rank, (row, score, own, fused) in enumerate(zip(rows.tolist(), *parts, strict=True)):
            chunk = chunks[row].id
            path = walked.path(q, row, mass, batch) if rank < EXPLAINED and chunk not in seeds else ()
            origin = "seed" if chunk in seeds else "graph"
            hits.append(Hit(chunk, score, origin, {"pagerank": own, "rrf": fused}, path))
        notes: dict[str, Any] = {
            "entities": [link.entity for link in links],
            "found": int(np.count_nonzero(share)),
            "kept": sum(hit.origin == "graph" for hit in hits),
        }
        return Ranking(batch.questions[q].id, hits, seeds, notes)


def _idf(graph: Adjacency, chunks: int) -> Matrix:
    return log((chunks + 1) / np.maximum(graph.frequency, 1)) + 1.0


def transitions(graph: Adjacency, mention: float, related: float, similar: float) -> sparse.csr_array:
    """Column-stochastic transitions over m entities then n chunks, (m + n, m + n).

    A mention edge weighs `mention · idf/√df` of its entity, whatever its own weight; RELATED_TO and SIMILAR_TO weigh
    `related · strength` and `similar · similarity`. A node without edges keeps a zero column: its mass is lost.
    """
    idf = _idf(graph, graph.mentions.shape[1])
    pattern = graph.mentions.copy()
    pattern.data[:] = 1.0
    scale = mention * idf / np.sqrt(np.maximum(graph.frequency, 1))
    links = sparse.csr_array(sparse.diags_array(scale) @ pattern)
    top, bottom = sparse.hstack([related * graph.related, links]), sparse.hstack([links.T, similar * graph.similar])
    whole = sparse.csr_array(sparse.vstack([top, bottom]))
    degree = np.asarray(whole.sum(axis=0)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    walk = sparse.csr_array(whole @ sparse.diags_array(inverse))
    walk.eliminate_zeros()
    walk.sort_indices()
    return walk


def power_iteration(walk: sparse.csr_array, seeds: Matrix, restart: float, steps: int) -> Matrix:
    """r ← restart · seed + (1 − restart) · walk @ r, from r = seed; columns are questions."""
    walk, returning, mass = (1.0 - restart) * walk, restart * seeds, seeds
    for _ in range(steps):
        mass = walk @ mass
        mass += returning
    return np.asarray(mass)


def _strongest_path(row: int, graph: Adjacency, walk: sparse.csr_array, mass: Matrix, batch: Batch) -> tuple[Step, ...]:
    """The node that gave a chunk most of its mass, and the one that gave that node most: two edges back."""
    node = len(graph.entities) + row
    first = _strongest_giver(node, walk, mass)
    if first is None:
        return ()
    second = _strongest_giver(first[0], walk, mass, other_than=node)
    edges = [(first, node)] if second is None else [(second, first[0]), (first, node)]
    return tuple(_step(source, weight, target, mass, graph, batch) for (source, weight), target in edges)


def _strongest_giver(node: int, walk: sparse.csr_array, mass: Matrix, other_than: int = -1) -> tuple[int, float] | None:
    """The neighbour whose edge carries most mass to `node`, with that edge's weight."""
    begin, end = walk.indptr[node], walk.indptr[node + 1]
    givers, weights = walk.indices[begin:end], walk.data[begin:end]
    given = weights * mass[givers]
    given[givers == other_than] = 0.0
    best = int(given.argmax()) if len(given) else 0
    return (int(givers[best]), float(weights[best])) if len(given) and given[best] > 0 else None


def _step(source: int, weight: float, target: int, mass: Matrix, graph: Adjacency, batch: Batch) -> Step:
    offset = len(graph.entities)
    names = [
        graph.entities[node] if node < offset else batch.index.chunks[node - offset].id for node in (source, target)
    ]
    kind = MENTIONED_IN if (source < offset) != (target < offset) else RELATED_TO if source < offset else SIMILAR_TO
    return Step(kind, names[0], names[1], round(weight, DECIMALS), round(float(mass[target]), DECIMALS))
