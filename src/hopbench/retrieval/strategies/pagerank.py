"""Personalised PageRank over chunks and entities, seeded by the best chunks and the question's entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import LINKS_TO, MENTIONED_IN, NEXT, PART_OF, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch, Index, Link
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.search.exact import best_rows
from hopbench.retrieval.search.fusion import DECIMALS, Scored
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.traversal.random_walk import (
    Incoming,
    LocalWalk,
    Mass,
    SparseMass,
    chunk_weights,
    inverse_frequencies,
    power_iteration,
    strongest_path,
    transitions,
)
from hopbench.retrieval.types import DETAILED, Counters, Hit, LazyHits, Ranking, Step

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]
Seeds = tuple[Rows, Matrix]
BATCH_SIZE = 64  # questions that walk together
MAX_CACHED_CELLS = 16_000_000  # of mass: 128 MB
MAX_WHOLE_EDGES = 500_000  # some 45,000 passages of hopworld's generator, and 20 ms a question in a batch
MIN_MASS = 1e-6  # at 100,000 passages the same first ten passages for 100 of 100 questions, and with 1e-5 too


@dataclass(frozen=True, eq=False)
class WalkResult:
    """The result of a walk: `masses` has (nodes,) for each question, a list if small, else a generator.

    `name` tells the walk from others over the same batch, `weights` are those of edges between chunks;
    `paths` are the explained paths, by question and chunk row.
    """

    name: tuple[str, ...]
    graph: Adjacency
    incoming: Incoming
    masses: Iterable[Mass]
    weights: Mapping[str, float]
    paths: dict[tuple[int, int], tuple[Step, ...]] = field(default_factory=dict)

    def touched(self, walks: int) -> int:
        """Count the edges that were touched: in a whole walk, all of them at each step."""
        if isinstance(self.masses, list) and self.masses and isinstance(self.masses[0], SparseMass):
            return sum(mass.touched for mass in self.masses)
        return len(self.incoming.giver) * walks

    def path(self, q: int, row: int, mass: Mass, batch: Batch) -> tuple[Step, ...]:
        """The strongest path into a chunk."""
        if (q, row) not in self.paths:
            self.paths[q, row] = strongest_path(row, self.graph, self.incoming, mass, batch, self.weights)
        return self.paths[q, row]


@dataclass(frozen=True, kw_only=True)
class PageRank(Strategy):
    """Personalised PageRank; the plain label is the tuned preset, since the method has no source defaults."""

    name: ClassVar[str] = "pagerank"
    summary: ClassVar[str] = "personalised PageRank from the RRF ranking and the question's entities"
    edges: ClassVar[tuple[str, ...]] = (MENTIONED_IN, RELATED_TO, SIMILAR_TO, LINKS_TO, NEXT, PART_OF)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        MENTIONED_IN: {"mention_weight": 0.0},
        RELATED_TO: {"related_weight": 0.0},
        SIMILAR_TO: {"similar_weight": 0.0},
        LINKS_TO: {"link_weight": 0.0},
        NEXT: {"section_weight": 0.0},
        PART_OF: {"section_weight": 0.0},
    }

    traversal_parameters: ClassVar[tuple[str, ...]] = (
        "mention_weight",
        "related_weight",
        "similar_weight",
        "link_weight",
        "section_weight",
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
    link_weight: float = param(0.0, "weight of LINKS_TO edges, both ways", 0.0, 10.0)
    section_weight: float = param(0.0, "weight of NEXT and PART_OF edges, both ways", 0.0, 10.0)
    initial_weight: float = param(0.0, "share of the RRF score in the final score", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        """The RRF ranking of vector and BM25."""
        return hybrid_rankings(batch, fusion="rrf")

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Walk for all questions together, a block of columns at a time; trials that walk alike share the walk."""
        with stage(counters, "entities"):
            reader = linker(batch, counters)
            links = batch.links(reader)
        with stage(counters, "initial"):
            initial = self.initial(batch)
        with stage(counters, "walk"):
            walked = self._walk_result(batch, counters, initial, links)
        with stage(counters, "ranking"):
            masses = enumerate(walked.masses)
            return [self._ranking(batch, q, walked, mass, initial[q], links[q]) for q, mass in masses]

    def _walk_result(
        self, batch: Batch, counters: Counters, initial: Sequence[Scored], links: Sequence[list[Link]]
    ) -> WalkResult:
        """The walk of all questions; the last trial's result if it is the same walk."""
        graph = adjacency(batch, counters)
        last: list[WalkResult] = batch.memo.get("last walk", list)
        walked = last[0] if last else None
        if walked is None or walked.name != self.shared_work():
            pairs = zip(initial, links, strict=True)
            incoming, masses, local = self._walk(
                batch.index, graph, [self._seed(batch, graph, *pair) for pair in pairs]
            )
            small = local or len(links) * (len(incoming.start) - 1) <= MAX_CACHED_CELLS
            weights = chunk_weights(self.similar_weight, self.link_weight, self.section_weight)
            walked = WalkResult(self.shared_work(), graph, incoming, list(masses) if small else masses, weights)
            last[:] = [walked] if small else []
        counters.edges_touched += walked.touched(self.steps * len(links))
        return walked

    def _walk(
        self, index: Index, graph: Adjacency, seeds: Sequence[Seeds]
    ) -> tuple[Incoming, Iterator[Matrix] | Iterator[SparseMass], bool]:
        """The mass of all nodes, a question at a time, or of large graphs that of the nodes near the seeds."""
        weights = self.mention_weight, self.related_weight, self.similar_weight, self.link_weight, self.section_weight
        links, *sections = (edges.nnz for edges in graph.documents.values())
        edges = 2 * graph.mentions.nnz, graph.related.nnz, graph.similar.nnz, links, sum(sections)  # each way
        if sum(count for count, weight in zip(edges, weights, strict=True) if weight) > MAX_WHOLE_EDGES:
            local = LocalWalk.between(graph, index, *weights)
            shared = ((nodes, shares / (shares.sum() or 1.0)) for nodes, shares in seeds)
            return local.incoming, (local.mass(*one, self.restart, self.steps, MIN_MASS) for one in shared), True
        walk = index.memo.get(("transitions", *weights), lambda: transitions(graph, *weights))

        def powers() -> Iterator[Matrix]:
            for begin in range(0, len(seeds), BATCH_SIZE):
                block = np.zeros((walk.shape[0], len(seeds[begin : begin + BATCH_SIZE])))
                for column, (nodes, shares) in enumerate(seeds[begin : begin + BATCH_SIZE]):
                    seed = np.zeros(len(block))
                    seed[nodes] = shares
                    block[:, column] = seed / (seed.sum() or 1.0)
                yield from power_iteration(walk, block, self.restart, self.steps).T

        return Incoming(walk.indptr, walk.indices, walk.data), powers(), False

    def _seed(self, batch: Batch, graph: Adjacency, initial: Scored, links: list[Link]) -> Seeds:
        """Where a walk restarts, over entities then chunks: nodes, ascending, and their weights."""
        entities, chunks = len(graph.entities), len(batch.index.chunks)
        best = initial[: self.seed_chunks]
        total = sum(score for _, score in best)
        nodes = [entities + batch.index.row_of[chunk] for chunk, _ in best]
        values = [score / total for _, score in best]
        rows = [graph.entity_row[link.entity] for link in links if link.entity in graph.entity_row]
        if rows:
            idf = inverse_frequencies(graph.frequency[rows], chunks)
            nodes += rows
            values += (self.question_weight * idf / idf.sum()).tolist()
        seeds, places = np.unique(np.array(nodes, np.int64), return_inverse=True)
        return seeds, np.bincount(places, np.array(values), len(seeds)).astype(np.float64)

    def _ranking(
        self, batch: Batch, q: int, walked: WalkResult, mass: Mass, initial: Scored, links: list[Link]
    ) -> Ranking:
        rows, share = _chunk_shares(mass, len(walked.graph.entities))
        fused = {batch.index.row_of[chunk]: score / initial[0][1] for chunk, score in initial}
        if isinstance(mass, SparseMass):
            reached, own = rows, share
            rows = distinct(np.concatenate([reached, np.array(sorted(fused), np.int64)]))
            share = np.zeros(len(rows))
            share[rows.searchsorted(reached)] = own
        rrf = np.zeros_like(share)
        rrf[rows.searchsorted(list(fused))] = list(fused.values())
        final = np.round((1.0 - self.initial_weight) * share + self.initial_weight * rrf, DECIMALS)
        ids = batch.index.ids
        seeds = [chunk for chunk, _ in initial[: self.seed_chunks]]
        (best,) = best_rows(final[None, :], KEEP)  # equal ones by row, and so by id
        best = best[final[best] > 0]
        chunks = [ids[row] for row in rows[best].tolist()]
        scores, walk, first = (np.round(values[best], DECIMALS).tolist() for values in (final, share, rrf))

        def hit(place: int) -> Hit:
            chunk = chunks[place]
            explained = place < DETAILED and chunk not in seeds
            path = walked.path(q, rows.item(best.item(place)), mass, batch) if explained else ()
            parts = {"pagerank": walk[place], "rrf": first[place]}
            return Hit(chunk, scores[place], "seed" if chunk in seeds else "graph", parts, path)

        notes: dict[str, Any] = {
            "entities": [link.entity for link in links],
            "found": int(np.count_nonzero(share)),
            "kept": sum(chunk not in seeds for chunk in chunks),
        }
        if isinstance(mass, SparseMass):
            notes["lost"] = round(mass.lost, DECIMALS)
        hits = LazyHits.one_by_one(list(zip(chunks, scores, strict=True)), hit)
        return Ranking(batch.questions[q].id, hits, seeds, notes)


def _chunk_shares(mass: Mass, entities: int) -> tuple[Rows, Matrix]:
    """Chunks (rows, ascending) with their mass as a share of the greatest: all chunks, or those that a walk reached."""
    if isinstance(mass, SparseMass):
        first = mass.nodes.searchsorted(entities)
        rows, own = mass.nodes[first:] - entities, mass.values[first:]
    else:
        own = mass[entities:]
        rows = np.arange(len(own))
    return rows, own / (own.max(initial=0.0) or 1.0)
