"""Document 1: vector search, then similar chunks and chunks of related entities, depth by depth.

Decisions where the source contradicts itself (docs/strategies.md gives the reasons): initial_k 10; the path score is
the product of strengths; the penalty falls linearly; a frontier chunk's routes are kept by their best score;
max_expanded keeps the best, not the first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from retrieval.fusion import DECIMALS, Scored, ordered, rank_shares
from retrieval.graph import cypher
from retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from retrieval.index import Batch
from retrieval.strategies.base import Strategy, param
from retrieval.strategies.baselines import hybrid_rankings
from retrieval.strategies.graph_expansion_routes import Hop, Reached, steps_to
from retrieval.types import Counters, Hit, Ranking, Step

NEVER = 2.0  # above every similarity and strength: a threshold that no edge passes


def penalty(depth: int, kind: str) -> float:
    """Hop distance penalty: `linear` 1 − .2(d−1) gives 1, .8, .6; `reciprocal` 1/(1 + .2d) gives .833, .714, .625."""
    return 1.0 - 0.2 * (depth - 1) if kind == "linear" else 1.0 / (1.0 + 0.2 * depth)


def graph_score(similarity: float, path: float, depth: int, kind: str = "linear") -> float:
    """max(similarity, path) · penalty. Similarity .75 at depth 2: .75 · .8 = .60 (linear), .75/1.4 = .536."""
    return max(similarity, path) * penalty(depth, kind)


def hybrid_score(vector: float, graph: float, chunk_weight: float = 0.7) -> float:
    """chunk_weight · vector + (1 − chunk_weight) · graph. .92 and 0: .644; 0 and .9: .27."""
    return vector * chunk_weight + graph * (1.0 - chunk_weight)


@dataclass(frozen=True, kw_only=True)
class GraphExpansion(Strategy):
    """Document 1's graph expansion flow."""

    name: ClassVar[str] = "graph_expansion"
    summary: ClassVar[str] = "document 1: expand the vector top k by SIMILAR_TO and entity paths, depth by depth"
    edges: ClassVar[tuple[str, ...]] = (SIMILAR_TO, RELATED_TO, MENTIONED_IN)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        SIMILAR_TO: {"use_similar": False},
        RELATED_TO: {"use_related": False},
        MENTIONED_IN: {"use_related": False},
    }

    initial_k: int = param(10, "chunks of the vector search to expand from", 1, 100)
    max_depth: int = param(1, "expansion steps", 1, 3)
    min_similarity: float = param(0.7, "SIMILAR_TO edges below this are not followed", 0.0, 1.0)
    min_strength: float = param(0.5, "RELATED_TO edges below this are not followed", 0.0, 1.0)
    max_expanded: int = param(50, "expanded chunks kept, best first", 0, 200)
    chunk_weight: float = param(0.7, "weight of the vector score in the hybrid score", 0.0, 1.0)
    path_strength: str = param("product", "strengths along a path: multiplied, or the last", choices=("product", "max"))
    depth_penalty: str = param("linear", "1−.2(d−1), or 1/(1+.2d)", choices=("linear", "reciprocal"))
    min_score: float = param(0.3, "expanded chunks with less evidence are dropped", 0.0, 1.0)
    min_score_on: str = param(
        "evidence", "evidence = max(vector, graph), or the hybrid score", choices=("evidence", "hybrid")
    )
    vector_scores: str = param(
        "initial", "vector score of an expanded chunk: 0, or its own cosine", choices=("initial", "all")
    )
    use_similar: bool = param(True, "follow SIMILAR_TO")
    use_related: bool = param(True, "follow entity paths")
    initial_ranking: str = param(
        "vector", "where seeds come from: vector, or RRF of vector and BM25", choices=("vector", "rrf")
    )
    initial_weight: float = param(0.0, "share of the initial ranking in a reciprocal rank fusion with it", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking (or RRF of vector and BM25)."""
        return batch.vector_rankings if self.initial_ranking == "vector" else hybrid_rankings(batch, fusion="rrf")

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Expand all questions of the batch together, a round trip a depth, then score each."""
        seeds = [[chunk for chunk, _ in scored[: self.initial_k]] for scored in self.initial(batch)]
        reached = [{chunk: Reached(0, carried=1.0) for chunk in chunks} for chunks in seeds]
        frontiers: list[list[str]] = [sorted(chunks) for chunks in seeds]
        for depth in range(1, self.max_depth + 1):
            going = [
                q for q, ids in enumerate(frontiers) if ids and len(reached[q]) - len(seeds[q]) < self.max_expanded
            ]
            if not going:
                break
            ids = sorted({chunk for q in going for chunk in frontiers[q]})
            records = batch.read(counters, cypher.EXPANSION_HOP, ids=ids, **self._thresholds())
            counters.edges_touched += sum(len(record["target"]) for record in records)
            hop = Hop.read(records)
            for q in going:
                found = hop.reach(frontiers[q], reached[q], depth, self.path_strength)
                frontiers[q] = sorted(found)
                reached[q].update(found)
        rankings = [self._scored(batch, q, seeds[q], reached[q]) for q in range(len(seeds))]
        counters.observed.update(name for ranking in rankings for name in self._observed(ranking))
        return rankings

    def _observed(self, ranking: Ranking) -> Iterator[str]:
        """Whether an expanded chunk, of at most 1 − chunk_weight, can pass initial chunks, and whether one did."""
        if self.vector_scores == "initial" and self.chunk_weight:
            bound = (1.0 - self.chunk_weight) / self.chunk_weight
            vectors = sorted((hit.components["vector"] for hit in ranking.hits if hit.origin == "seed"), reverse=True)
            for place in (5, 10):
                if len(vectors) >= place and vectors[place - 1] < bound:
                    yield f"initial chunk {place} has a cosine below {bound:.2f}, so an expanded one can pass it"
        if any(hit.origin == "graph" for hit in ranking.hits[:10]):
            yield "an expanded chunk stands in the top 10"

    def _thresholds(self) -> dict[str, float]:
        return {
            "min_similarity": self.min_similarity if self.use_similar else NEVER,
            "min_strength": self.min_strength if self.use_related else NEVER,
        }

    def _scored(self, batch: Batch, q: int, seeds: Sequence[str], reached: Mapping[str, Reached]) -> Ranking:
        lost = {depth: penalty(depth, self.depth_penalty) for depth in range(1, self.max_depth + 1)}
        graphs = {c: round(max(w.similarity, w.path) * lost[w.depth], DECIMALS) for c, w in reached.items() if w.depth}
        vectors = batch.cosines(q, [*seeds, *sorted(graphs)] if self.vector_scores == "all" else seeds)
        kept = self._kept(graphs, vectors)
        scores = {c: hybrid_score(vectors.get(c, 0.0), graphs.get(c, 0.0), self.chunk_weight) for c in (*seeds, *kept)}
        if self.initial_weight:
            own, initial = ordered(scores), self.initial(batch)[q]
            scores = rank_shares([c for c, _ in own], [c for c, _ in initial], self.initial_weight)
        hits = [
            Hit(chunk, score, *self._origin(chunk, vectors.get(chunk, 0.0), graphs.get(chunk), reached))
            for chunk, score in ordered(scores)
        ]
        notes = {"expanded": len(graphs), "dropped_by_min_score_or_max_expanded": len(graphs) - len(kept)}
        return Ranking(batch.questions[q].id, hits, seeds, notes)

    def _kept(self, graphs: Mapping[str, float], vectors: Mapping[str, float]) -> list[str]:
        """The best `max_expanded` expanded chunks with enough evidence."""
        scored = []
        for chunk, graph in graphs.items():
            vector = vectors.get(chunk, 0.0)
            score = round(hybrid_score(vector, graph, self.chunk_weight), DECIMALS)
            if (max(vector, graph) if self.min_score_on == "evidence" else score) >= self.min_score:
                scored.append((-score, chunk))
        return [chunk for _, chunk in heapq.nsmallest(self.max_expanded, scored)]

    @staticmethod
    def _origin(
        chunk: str, vector: float, graph: float | None, reached: Mapping[str, Reached]
    ) -> tuple[str, dict[str, float], tuple[Step, ...]]:
        if graph is None:
            return "seed", {"vector": vector, "graph": 0.0}, ()
        way = reached[chunk]
        parts = {"vector": vector, "graph": graph, "similarity": way.similarity, "path": way.path, "depth": way.depth}
        return "graph", parts, steps_to(chunk, reached)
