"""Document 2: entities named in the question and their neighbours become search queries of their own.

Decisions where the source is silent or another page decides (docs/strategies.md gives the reasons):
- Neighbours are looked for from each recognised entity on its own; a neighbour's strength is the best product of
  RELATED_TO strengths over the shortest routes to it.
- What the queries find is ranked by the order of the queries, then by cosine; chunks with a cosine of 0 or less (a
  query without any word that the embedder knows) are not found.
- A chunk found by a query has origin "graph", whether or not the vector ranking has it as well; its provenance ends in
  a step QUERY from the entity whose name came last in the query to the chunk, with their cosine.
- Neighbours two hops away are read only for questions whose nearer pairs do not fill `max_queries` already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.hits import LazyHits
from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.search.fusion import RRF_K, Scored, ordered, reciprocal_rank
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.strategies.expansion_queries.neighbourhood import (
    ExpansionQuery,
    SeedNeighbourhood,
    expand,
    expansion_queries,
)
from hopbench.retrieval.strategies.expansion_queries.searching import search_texts
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.types import Counters, Hit, Ranking, Step

QUERY = "QUERY"
SEEDS = 10
NO_SEEDS = "no entity of the graph recognised in the question: the initial ranking"


class QueryHit(NamedTuple):
    """What an expansion query found, with their cosine."""

    cosine: float
    query: ExpansionQuery


@dataclass(frozen=True, kw_only=True)
class ExpansionQueries(Strategy):
    """Document 2's graph-guided expansion queries, fused with the vector ranking."""

    name: ClassVar[str] = "expansion_queries"
    summary: ClassVar[str] = "document 2: vector searches for 'entity neighbour' pairs, fused with the vector ranking"
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO,)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {RELATED_TO: {"use_related": False}}

    depth: int = param(2, "hops from a recognised entity to its neighbours", 1, 3)
    min_strength: float = param(0.0, "RELATED_TO edges below this are not followed", 0.0, 1.0, aliases=["min_weight"])
    max_queries: int = param(32, "'entity neighbour' queries a question, the nearest first", 0, 200)
    per_query: int = param(3, "chunks that each query contributes", 1, 20, aliases=["limit"])
    seed_queries: bool = param(True, "search the recognised names alone as well, after the pairs")
    use_related: bool = param(True, "follow RELATED_TO; without it only the recognised names are searched")
    order: str = param(
        "proximity", "found chunks in the queries' order, or by their best cosine", choices=("proximity", "cosine")
    )
    initial_ranking: str = param(
        "vector", "what the queries' ranking is fused with", choices=("vector", "weighted", "rrf")
    )
    graph_weight: float = param(1.0, "weight of the queries' ranking in the fusion; the initial has 1", 0.0, 10.0)
    rrf_k: int = param(RRF_K, "k of reciprocal rank fusion", 1, 1000)

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking, or the hybrid one."""
        if self.initial_ranking == "vector":
            return batch.vector_rankings
        return hybrid_rankings(batch, 0.7 if self.initial_ranking == "weighted" else 0.5, self.initial_ranking)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Expand, embed and search the queries of all questions together."""
        with stage(counters, "entities"):
            reader = linker(batch, counters)
            seeds = [list(dict.fromkeys(link.entity for link in links)) for links in batch.links(reader)]
        with stage(counters, "graph"):
            neighbourhoods = [[SeedNeighbourhood(seed) for seed in each] for each in seeds]
            expand(batch, counters, neighbourhoods, self._depth(), self.min_strength, self.max_queries)
            queries = [expansion_queries(each, self.max_queries, self.seed_queries) for each in neighbourhoods]
        with stage(counters, "search"):
            texts = [query.text for each in queries for query in each]
            results = search_texts(batch, texts, self.per_query)
        rankings = []
        with stage(counters, "fusion"):
            for q, initial in enumerate(self.initial(batch)):
                query_hits = self._query_hits(queries[q], results)
                rankings.append(self._ranking(batch.questions[q].id, initial, queries[q], query_hits))
                notes = _notes(neighbourhoods[q], queries[q], query_hits, results)
                rankings[-1].notes = {"entities": seeds[q], **notes, **rankings[-1].notes}
        return rankings

    def _depth(self) -> int:
        return self.depth if self.use_related else 0

    def _query_hits(self, queries: Sequence[ExpansionQuery], results: Mapping[str, Scored]) -> dict[str, QueryHit]:
        """Chunks in the order of the queries' ranking, each once, with the query that ranks it."""
        found = [(chunk, cosine, query) for query in queries for chunk, cosine in results[query.text] if cosine > 0]
        if self.order == "cosine":
            found.sort(key=lambda one: (-one[1], one[0]))
        first: dict[str, QueryHit] = {}
        for chunk, cosine, query in found:
            if chunk not in first:
                first[chunk] = QueryHit(cosine, query)
        return first

    def _ranking(
        self, question: str, initial: Scored, queries: Sequence[ExpansionQuery], query_hits: Mapping[str, QueryHit]
    ) -> Ranking:
        seeds = [chunk for chunk, _ in initial[:SEEDS]]
        if not queries:
            hits = [Hit(chunk, score, "seed", {self.initial_ranking: score}) for chunk, score in initial]
            return Ranking(question, hits, seeds, {"fallback": NO_SEEDS})
        plain = reciprocal_rank([[chunk for chunk, _ in initial]], self.rrf_k)
        graph = reciprocal_rank([[*query_hits]], self.rrf_k)
        total = dict(plain)
        for chunk, share in graph.items():
            total[chunk] = total.get(chunk, 0.0) + self.graph_weight * share
        best = ordered(total)

        def hit(place: int) -> Hit:
            chunk, score = best[place]
            components = {self.initial_ranking: plain.get(chunk, 0.0), "graph": graph.get(chunk, 0.0)}
            if (query_hit := query_hits.get(chunk)) is None:
                return Hit(chunk, score, "seed", components)
            components |= {"cosine": query_hit.cosine, "proximity": query_hit.query.proximity}
            return Hit(chunk, score, "graph", components, _steps(query_hit, chunk))

        kept = sum(chunk in query_hits for chunk, _ in best[:KEEP])
        return Ranking(question, LazyHits.one_by_one(best, hit), seeds, {"kept": kept})


def _notes(
    neighbourhoods: Sequence[SeedNeighbourhood],
    queries: Sequence[ExpansionQuery],
    query_hits: Mapping[str, QueryHit],
    results: Mapping[str, Scored],
) -> dict[str, object]:
    """The neighbours with hops and strength, the queries in order, their hits, and the query that ranks each chunk."""
    if not queries:
        return {}
    hits = {query.text: [chunk for chunk, cosine in results[query.text] if cosine > 0] for query in queries}
    near = {
        neighbourhood.seed: [
            {"entity": entity, "hops": n.hops, "strength": n.strength}
            for entity, n in sorted(
                neighbourhood.reached.items(), key=lambda hit: (hit[1].hops, -hit[1].strength, hit[0])
            )
        ]
        for neighbourhood in neighbourhoods
    }
    return {
        "neighbours": near,
        "queries": [query.text for query in queries],
        "hits_of": hits,
        "query_of": {chunk: hit.query.text for chunk, hit in query_hits.items()},
        "found": sum(len(hits[query.text]) for query in queries),
        "unique": len(query_hits),
    }


def _steps(hit: QueryHit, chunk: str) -> tuple[Step, ...]:
    path = hit.query.path
    last = path[-1].target if path else hit.query.seed
    return (*path, Step(QUERY, last, chunk, hit.cosine, hit.cosine))
