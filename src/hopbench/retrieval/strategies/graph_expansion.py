"""Graph Expansion Flow: vector search, then similar chunks and chunks of related entities, depth by depth."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import LINKS_TO, MENTIONED_IN, NEXT, PART_OF, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.search.fusion import DECIMALS, Scored, ordered, rank_shares
from hopbench.retrieval.strategies._graph_expansion_hops import (
    NEVER,
    SEED_CHUNK,
    ExpansionLimits,
    FilteredHop,
    Floats,
    HopEdges,
    Ints,
    NodeScratch,
    QuestionHop,
    ReachedChunk,
    steps_to,
)
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.baselines import initial_rankings
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking, Step

FloatArray = NDArray[np.float64]
Score = TypeVar("Score", float, FloatArray)


def penalty(depth: int, kind: str) -> float:
    """Return the penalty of a depth: linear 1 − 0.2(d−1) is 1, 0.8, 0.6; reciprocal 1/(1 + 0.2d) is 0.833, 0.714."""
    return 1.0 - 0.2 * (depth - 1) if kind == "linear" else 1.0 / (1.0 + 0.2 * depth)


def hybrid_score(vector: Score, graph: Score, chunk_weight: float = 0.7) -> Score:
    """chunk_weight · vector + (1 − chunk_weight) · graph. 0.92 and 0: 0.644; 0 and 0.9: 0.27."""
    return vector * chunk_weight + graph * (1.0 - chunk_weight)


@dataclass(frozen=True, kw_only=True)
class GraphExpansion(Strategy):
    """Expands the vector search's chunks over edges (Graph Expansion Flow)."""

    name: ClassVar[str] = "graph_expansion"
    summary: ClassVar[str] = (
        "Graph Expansion Flow: expand the vector top k by SIMILAR_TO and entity paths, depth by depth"
    )
    edges: ClassVar[tuple[str, ...]] = (SIMILAR_TO, RELATED_TO, MENTIONED_IN, LINKS_TO, NEXT, PART_OF)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        SIMILAR_TO: {"use_similar": False},
        RELATED_TO: {"use_related": False},
        MENTIONED_IN: {"use_related": False},
        LINKS_TO: {"link_weight": 0.0},
        NEXT: {"section_weight": 0.0},
        PART_OF: {"section_weight": 0.0},
    }

    traversal_parameters: ClassVar[tuple[str, ...]] = (
        *("initial_ranking", "initial_k", "max_depth", "path_strength", "use_similar", "use_related"),
        *("min_similarity", "min_strength", "vector_scores", "link_weight", "section_weight"),
    )
    thresholds: ClassVar[tuple[str, ...]] = ("min_similarity", "min_strength")

    initial_k: int = param(10, "chunks of the vector search to expand from", 1, 100, aliases=["top_k"])
    max_depth: int = param(1, "expansion steps", 1, 3, aliases=["max_expansion_depth"])
    min_similarity: float = param(
        0.7, "SIMILAR_TO edges below this are not followed", 0.0, 1.0, aliases=["similarity_threshold", "threshold"]
    )
    min_strength: float = param(0.5, "RELATED_TO edges below this are not followed", 0.0, 1.0)
    max_expanded: int = param(50, "expanded chunks kept, best first", 0, 200, aliases=["max_expanded_chunks"])
    chunk_weight: float = param(0.7, "weight of the vector score in the hybrid score", 0.0, 1.0)
    path_strength: str = param("product", "strengths along a path: multiplied, or the last", choices=("product", "max"))
    depth_penalty: str = param("linear", "1−.2(d−1), or 1/(1+.2d)", choices=("linear", "reciprocal"))
    min_score: float = param(
        0.3, "expanded chunks with less evidence are dropped", 0.0, 1.0, aliases=["min_score_threshold"]
    )
    min_score_on: str = param(
        "evidence", "evidence = max(vector, graph), or the hybrid score", choices=("evidence", "hybrid")
    )
    vector_scores: str = param(
        "initial", "vector score of an expanded chunk: 0, or its own cosine", choices=("initial", "all")
    )
    use_similar: bool = param(True, "follow SIMILAR_TO")
    use_related: bool = param(True, "follow entity paths")
    link_weight: float = param(0.0, "evidence of a LINKS_TO edge, times its weight; 0: not followed", 0.0, 1.0)
    section_weight: float = param(0.0, "evidence of a NEXT or PART_OF edge; 0: not followed", 0.0, 1.0)
    initial_ranking: str = param(
        "vector", "where seeds come from: vector, or RRF of vector and BM25", choices=("vector", "rrf")
    )
    initial_weight: float = param(0.0, "share of the initial ranking in a reciprocal rank fusion with it", 0.0, 1.0)

    def lowest_weights(self) -> Mapping[str, float]:
        """The threshold on SIMILAR_TO, if it is followed."""
        return {SIMILAR_TO: self.min_similarity} if self.use_similar else {}

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking (or RRF of vector and BM25)."""
        return initial_rankings(batch, self.initial_ranking)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Expand all questions of the batch together, a round trip a depth, then score each."""
        with stage(counters, "initial"):
            seeds = [[chunk for chunk, _ in scored[: self.initial_k]] for scored in self.initial(batch)]
        limits = ExpansionLimits(
            depth=self.max_depth,
            min_similarity=self.min_similarity if self.use_similar else NEVER,
            min_strength=self.min_strength if self.use_related else NEVER,
            path_strength=self.path_strength,
            enough=max(self.max_expanded, 0) if self.max_depth > 1 else min(self.max_expanded, 1),
            links=self.link_weight,
            sections=self.section_weight,
        )
        with stage(counters, "expansion"):  # cached for trials that score differently
            key = self.initial_ranking, self.initial_k
            expansions = batch.memo.charged(
                (self.name, key, limits), counters, lambda spent: expand(batch, spent, self.name, seeds, key, limits)
            )
        with stage(counters, "scoring"):
            near = batch.memo.get(
                ("cosines of seeds", self.initial_ranking, self.initial_k),
                lambda: [batch.cosines(q, chunks) for q, chunks in enumerate(seeds)],
            )
            pairs = zip(expansions, near, strict=True)
            return [self._scored(batch, counters, q, *pair) for q, pair in enumerate(pairs)]

    def _scored(
        self, batch: Batch, counters: Counters, q: int, expansion: Expansion, vectors: Mapping[str, float]
    ) -> Ranking:
        lost = {depth: penalty(depth, self.depth_penalty) for depth in range(1, self.max_depth + 1)}
        graphs = np.round(evidence(expansion, lost), DECIMALS)
        own = np.zeros(len(graphs))
        if self.vector_scores == "all":
            own = cosines(batch.index.vectors, expansion.rows, batch.vectors[q])
        combined = hybrid_score(own, graphs, self.chunk_weight)
        kept = self._kept(own, graphs, np.round(combined, DECIMALS))
        ids = [batch.index.ids[row] for row in expansion.rows[kept].tolist()]
        scores = {chunk: hybrid_score(vector, 0.0, self.chunk_weight) for chunk, vector in vectors.items()}
        scores |= dict(zip(ids, combined[kept].tolist(), strict=True))
        if self.initial_weight:
            initial = self.initial(batch)[q]
            scores = rank_shares([c for c, _ in ordered(scores)], [c for c, _ in initial], self.initial_weight)
        number_of, best = dict(zip(ids, kept, strict=True)), ordered(scores)
        if self.vector_scores == "initial" and self.chunk_weight:  # an expanded chunk has at most 1 − chunk_weight
            bound = (1.0 - self.chunk_weight) / self.chunk_weight
            of_seeds = sorted((vectors.get(chunk, 0.0) for chunk, _ in best if chunk not in number_of), reverse=True)
            for place in (5, 10):
                if len(of_seeds) >= place and of_seeds[place - 1] < bound:
                    seen = f"initial chunk {place} has a cosine below {bound:.2f}, so an expanded one can pass it"
                    counters.observed[seen] += 1
        if any(chunk in number_of for chunk, _ in best[:10]):
            counters.observed["an expanded chunk stands in the top 10"] += 1

        def made(places: range) -> list[Hit]:
            some = [best[place] for place in places]
            reached = [chunk for chunk, _ in some if chunk in number_of]
            numbers = np.array([number_of[chunk] for chunk in reached], np.int64)
            shown = dict(zip(reached, expansion.provenance(reached, numbers), strict=True))
            hits = []
            for chunk, score in some:
                if chunk not in shown:
                    hits.append(Hit(chunk, score, "seed", {"vector": vectors.get(chunk, 0.0), "graph": 0.0}))
                    continue
                (route, steps), number = shown[chunk], number_of[chunk]
                parts = {"vector": own.item(number), "graph": graphs.item(number)}
                parts |= {"similarity": route.similarity, "path": route.path, "depth": route.depth}
                hits.append(Hit(chunk, score, "graph", parts, steps))
            return hits

        notes = {"kept": len(kept), "dropped_by_min_score_or_max_expanded": len(graphs) - len(kept)}
        return Ranking(batch.questions[q].id, LazyHits(best, made), expansion.seeds, {**expansion.notes(), **notes})

    def _kept(self, vectors: FloatArray, graphs: FloatArray, combined: FloatArray) -> list[int]:
        """Indices of the best `max_expanded` expanded chunks with enough evidence; ties by id."""
        measured = np.maximum(vectors, graphs) if self.min_score_on == "evidence" else combined
        (places,) = np.nonzero(measured >= self.min_score)
        beyond = len(places) - self.max_expanded
        if beyond > 0 and self.max_expanded:  # what may be among the best is sorted, not all
            places = places[combined[places] >= np.partition(combined[places], beyond)[beyond]]
        order = np.argsort(-combined[places], kind="stable")  # rows, and so ids, ascend
        best: list[int] = places[order[: self.max_expanded]].tolist()
        return best


Frontier = tuple[Sequence[str], Floats]  # chunk ids in order, each with the product that its route carries


def expand(
    batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], key: Hashable, limits: ExpansionLimits
) -> list[Expansion]:
    """Expand each question from its seeds (`key` names them), a round trip a depth.

    Trials share the first hop whatever their thresholds: there the best route to a chunk is one edge of each kind, so a
    hop read with the lowest thresholds contains the best routes of every higher one.
    """
    index = batch.index
    expansions = [Expansion(chunks, index.row_of) for chunks in seeds]
    frontiers: dict[int, Frontier] = {q: (sorted(chunks), np.ones(len(chunks))) for q, chunks in enumerate(seeds)}
    lowest = limits.min_similarity, limits.min_strength
    floors = batch.floor(name, "min_similarity", lowest[0]), batch.floor(name, "min_strength", lowest[1])

    def reached(hop: HopEdges, going: Mapping[int, Frontier], depth: int) -> dict[int, QuestionHop]:
        marks = NodeScratch(len(index.chunks)), NodeScratch(len(hop.entities))
        product = limits.path_strength == "product"
        return {
            q: QuestionHop(hop, depth, ids, carried, hop.reach(ids, carried, product, marks))
            for q, (ids, carried) in going.items()
        }

    for depth in range(1, limits.depth + 1):
        going = {q: ids for q, ids in frontiers.items() if ids[0] and len(expansions[q].rows) < limits.enough}
        if not going:
            break
        hop = _read_hop(batch, counters, going, floors, limits)
        if limits.documents:
            hops = reached(_with_documents(batch, counters, hop.above(*lowest), limits), going, depth)
        elif depth == 1:
            hops = batch.memo.get(("legs", key, *floors), partial(reached, hop, going, depth))
        else:
            hops = reached(hop.above(*lowest), going, depth)
        for q in going:
            filtered = FilteredHop.of(hops[q], limits)
            places = expansions[q].add(filtered)
            if depth < limits.depth:
                rows = filtered.hop.result.rows[places].tolist()
                frontiers[q] = [index.ids[row] for row in rows], filtered.carried(places)
    return expansions


def _read_hop(
    batch: Batch,
    counters: Counters,
    going: Mapping[int, Frontier],
    floors: tuple[float, float],
    limits: ExpansionLimits,
) -> HopEdges:
    """One round trip, read down to the floors; only edges that pass the thresholds are charged."""
    ids = sorted({chunk for frontier, _ in going.values() for chunk in frontier})

    def read() -> HopEdges:
        thresholds = {"min_similarity": floors[0], "min_strength": floors[1]}
        return HopEdges.read(batch.read_uncharged(cypher.EXPANSION_HOP, ids=ids, **thresholds)[0], ids, batch.index)

    hop = batch.memo.get(("hop", tuple(ids), *floors), read)
    edges = hop.edges(limits.min_similarity, limits.min_strength)
    counters.round_trips += 1
    counters.rows += edges
    counters.edges_touched += edges
    return hop


def _with_documents(batch: Batch, counters: Counters, hop: HopEdges, limits: ExpansionLimits) -> HopEdges:
    """Read the edges of documents at a hop's frontier, one more round trip."""
    ids = sorted(hop.chunks)
    records = batch.memo.get(
        ("edges of documents", tuple(ids)), lambda: batch.read_uncharged(cypher.DOCUMENT_HOP, ids=ids)[0]
    )
    edges = sum(len(record["source"]) for record in records if limits.documents[record["kind"]])
    counters.round_trips += 1
    counters.rows += edges
    counters.edges_touched += edges
    return hop.with_documents(records, limits.documents, batch.index)


@dataclass(slots=True)
class Expansion:
    """The chunks that one question reached: `rows` (index rows, ascending), without its seeds.

    `strengths` are max(similarity, path) of each, `depths` where it was reached, `places` its index in that hop.
    """

    seeds: Sequence[str]
    row_of: Mapping[str, int]
    hops: list[FilteredHop] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    strengths: Floats = field(default_factory=lambda: np.zeros(0))
    depths: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    places: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, filtered: FilteredHop) -> Ints:
        """Add the new chunks of a hop; returns their indices in its result."""
        places = filtered.new(np.concatenate([self.rows, [self.row_of[seed] for seed in self.seeds]]))
        rows = np.concatenate([self.rows, filtered.hop.result.rows[places]])
        order = np.argsort(rows, kind="stable")
        self.hops.append(filtered)
        self.rows = rows[order]
        self.strengths = np.concatenate([self.strengths, filtered.strengths(places)])[order]
        self.depths = np.concatenate([self.depths, np.full(len(places), filtered.hop.depth)])[order]
        self.places = np.concatenate([self.places, places])[order]
        return places

    def provenance(self, chunks: Sequence[str], numbers: Ints) -> list[tuple[ReachedChunk, tuple[Step, ...]]]:
        """How some chunks (`numbers`: indices into `rows`) were reached, and the edges from a seed to each."""
        depths, places = self.depths[numbers], self.places[numbers]
        provenance: list[tuple[ReachedChunk, tuple[Step, ...]]] = [(SEED_CHUNK, ())] * len(chunks)
        for depth, filtered in enumerate(self.hops, 1):
            own = np.flatnonzero(depths == depth)
            at, shown = places[own], filtered.hop.described
            for n, *seen in zip(
                *(column.tolist() for column in (own, at, filtered.by_similarity[at], filtered.by_entities[at])),
                strict=True,
            ):
                known = shown.get(tuple(seen))
                if known is None:
                    here = filtered.hop.reached(*seen)
                    known = shown[tuple(seen)] = here, steps_to(chunks[n], here, self._reached)
                provenance[n] = known
        return provenance

    def notes(self) -> dict[str, object]:
        """Counts for the ranking's notes: edges that led to a chunk, the chunks beside the seeds, and these by depth.

        An entity that several frontier chunks mention is read once: `entity_cache_hits` of the `entity_lookups` need
        no reading (the source's label cache).
        """
        lookups = sum(filtered.hop.result.looked_up for filtered in self.hops)
        return {
            "found": sum(int(filtered.by_similarity.sum() + filtered.by_entities.sum()) for filtered in self.hops),
            "unique": len(self.rows),
            "reached_at_depth": {str(d): int((self.depths == d).sum()) for d in range(1, len(self.hops) + 1)},
            "entity_lookups": lookups,
            "entity_cache_hits": lookups - sum(filtered.hop.result.read for filtered in self.hops),
        }

    def _reached(self, chunk: str) -> ReachedChunk:
        if chunk in self.seeds:
            return SEED_CHUNK
        return self.provenance([chunk], np.searchsorted(self.rows, [self.row_of[chunk]]))[0][0]


def evidence(expansion: Expansion, losses: Mapping[int, float]) -> Floats:
    """max(similarity, path) of each reached chunk, times the penalty of its depth."""
    factors = np.array([0.0, *(losses[depth] for depth in sorted(losses))])[expansion.depths]
    return np.asarray(expansion.strengths * factors)
