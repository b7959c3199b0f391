"""KG2RAG query expansion: entities named in the question and their neighbours become search queries of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import APPROXIMATE, Batch, Index, Queries, nearest_rows, spread
from hopbench.retrieval.question.linking import entity_names, linker
from hopbench.retrieval.search.candidates import blocks
from hopbench.retrieval.search.cells import SAMPLE
from hopbench.retrieval.search.exact import TopRows
from hopbench.retrieval.search.fusion import DECIMALS, RRF_K, Scored, ordered, reciprocal_rank
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking, Step

QUERY = "QUERY"
SEEDS = 10
NO_SEEDS = "no entity of the graph recognised in the question: the initial ranking"


class QueryHit(NamedTuple):
    """What an expansion query found, with their cosine."""

    cosine: float
    query: ExpansionQuery


@dataclass(frozen=True, kw_only=True)
class ExpansionQueries(Strategy):
    """Searches graph-guided expansion queries and fuses their hits with the vector ranking."""

    name: ClassVar[str] = "expansion_queries"
    summary: ClassVar[str] = (
        "KG2RAG query expansion: vector searches for 'entity neighbour' pairs, fused with the vector ranking"
    )
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


def proximity(hops: int) -> float:
    """Return the graph proximity 1/(1 + hops): 1, 0.5, 0.333."""
    return 1.0 / (1 + hops)


class Neighbour(NamedTuple):
    """An entity `hops` from the seed: `strength` is the product along the best shortest route, `edge` its last's."""

    hops: int
    strength: float
    edge: float
    parent: str


@dataclass(slots=True)
class SeedNeighbourhood:
    """The breadth-first neighbourhood of one seed entity; `frontier` is what the last hop reached."""

    seed: str
    names: dict[str, str] = field(default_factory=dict)
    reached: dict[str, Neighbour] = field(default_factory=dict)
    frontier: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.frontier = [self.seed]

    def visited(self) -> list[str]:
        """The seed and all entities reached."""
        return sorted({self.seed, *self.reached})

    def add_hop(self, record: Record) -> None:
        """Add one hop's edges: of several routes to a neighbour the strongest, ties to the smaller parent id."""
        best: dict[str, tuple[float, str, float]] = {}
        for parent, target, edge in zip(record["source"], record["target"], record["weight"], strict=True):
            before = self.reached[parent].strength if parent in self.reached else 1.0
            route = (-round(before * edge, DECIMALS), parent, edge)
            if target not in best or route < best[target]:
                best[target] = route
        self.names.update(zip(record["target"], record["name"], strict=True))
        hops = self.reached[self.frontier[0]].hops + 1 if self.frontier[0] in self.reached else 1
        self.reached |= {target: Neighbour(hops, -lost, edge, parent) for target, (lost, parent, edge) in best.items()}
        self.frontier = sorted(best)

    def path(self, entity: str) -> tuple[Step, ...]:
        """The edges from the seed to a neighbour, each with the proximity after it."""
        here = self.reached.get(entity)
        if here is None:
            return ()
        last = Step(RELATED_TO, here.parent, entity, here.edge, round(proximity(here.hops), DECIMALS))
        return (*self.path(here.parent), last)


@dataclass(frozen=True, slots=True)
class ExpansionQuery:
    """A text to search, made of a seed's name and a neighbour's (or of the seed's alone: no path, proximity 1)."""

    text: str
    around: SeedNeighbourhood
    neighbour: str = ""
    proximity: float = 1.0
    strength: float = 1.0

    @property
    def seed(self) -> str:
        """The entity whose name comes first."""
        return self.around.seed

    @property
    def path(self) -> tuple[Step, ...]:
        """The edges from the seed to the neighbour."""
        return self.around.path(self.neighbour)


def expand(
    batch: Batch,
    counters: Counters,
    neighbourhoods: Sequence[Sequence[SeedNeighbourhood]],
    depth: int,
    min_strength: float,
    enough: int,
) -> None:
    """Grow the neighbourhoods of all seeds of all questions together, one round trip a hop.

    `neighbourhoods` has a list per question. A question with `enough` pairs goes no further: nearer pairs come first,
    so farther ones would be cut off anyway. The seeds' names come with the first hop (depth 0 reads only them).
    """
    for hop in range(max(depth, 1)):
        unfilled = (each for each in neighbourhoods if hop == 0 or len(_pairs(each)) < enough)
        going = [neighbourhood for each in unfilled for neighbourhood in each if neighbourhood.frontier]
        if not going:
            return
        rows = [
            {"q": number, "ids": neighbourhood.frontier, "visited": neighbourhood.visited()}
            for number, neighbourhood in enumerate(going)
        ]
        least = min_strength if depth else 2.0
        records = batch.read(counters, cypher.ENTITY_NEIGHBOURS, frontier=rows, min_strength=least)
        reached = {record["q"] for record in records if record["part"] == "edges" and record["target"]}
        for record in records:
            neighbourhood = going[record["q"]]
            if record["part"] == "names":
                neighbourhood.names.update(zip(record["source"], record["name"], strict=True))
            else:
                counters.edges_touched += len(record["target"])
                neighbourhood.add_hop(record)
        for number, neighbourhood in enumerate(going):
            neighbourhood.frontier = neighbourhood.frontier if number in reached else []


def _pairs(neighbourhoods: Sequence[SeedNeighbourhood]) -> set[frozenset[str]]:
    return {
        frozenset((neighbourhood.seed, entity)) for neighbourhood in neighbourhoods for entity in neighbourhood.reached
    }


def expansion_queries(
    neighbourhoods: Sequence[SeedNeighbourhood], limit: int, seeds_alone: bool
) -> list[ExpansionQuery]:
    """The "seed neighbour" queries of one question, then its seeds' names alone.

    Nearest first, then strongest, then by text; each unordered pair of entities once; at most `limit` pairs.
    """
    by_seed = {neighbourhood.seed: neighbourhood for neighbourhood in neighbourhoods}
    pairs: dict[frozenset[str], ExpansionQuery] = {}
    for hops, lost, text, seed, entity in sorted(_candidates(neighbourhoods)):
        pair = frozenset((seed, entity))
        if len(pairs) == limit:
            break
        if pair not in pairs:
            pairs[pair] = ExpansionQuery(text, by_seed[seed], entity, proximity(hops), -lost)
    alone = [
        ExpansionQuery(neighbourhood.names[neighbourhood.seed], neighbourhood)
        for neighbourhood in neighbourhoods
        if neighbourhood.seed in neighbourhood.names
    ]
    return [*pairs.values(), *(alone if seeds_alone else [])]


def _candidates(neighbourhoods: Sequence[SeedNeighbourhood]) -> Iterator[tuple[int, float, str, str, str]]:
    for neighbourhood in neighbourhoods:
        for entity, here in neighbourhood.reached.items():
            yield (
                here.hops,
                -here.strength,
                f"{neighbourhood.names[neighbourhood.seed]} {neighbourhood.names[entity]}",
                neighbourhood.seed,
                entity,
            )


SEARCH_BATCH = 1024  # queries searched at a time: Neo4j's vector index gets them in one transaction
CELL_SEARCH_BATCH = 8192  # of those that look into cells: each cell is multiplied with more of them at once
MAX_CHUNKS_OF_RARE_WORD = 100  # a chunk that shares one with a query is looked at in any case


def search_texts(batch: Batch, texts: Iterable[str], count: int) -> dict[str, Scored]:
    """The best `count` chunks by cosine for each text; new texts are embedded in one call."""
    known: dict[str, Scored] = {} if batch.alone else batch.memo.get(("searches", count), dict)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if not new:
        return known
    vectors = batch.index.embed(new)
    for part in blocks(len(new), CELL_SEARCH_BATCH if batch.index.search == APPROXIMATE else SEARCH_BATCH):
        found = _nearest(batch, new[part], vectors[part], count)
        known.update(zip(new[part], batch.all_with_ids(found), strict=True))
    return known


def _nearest(batch: Batch, texts: Sequence[str], vectors: Vectors, count: int) -> list[TopRows]:
    """The best `count` chunks for each of k queries with their vectors (k, d).

    Of many chunks, by cells where dense search is approximate: for hundreds of queries at a time they are cheaper than
    the graph of near chunks, which finds short texts only by a broad search (docs/scale.md).
    """
    index = batch.index
    if index.search != APPROXIMATE:
        return index.nearest(vectors, count)
    what, asked = "chunks for pairs of names", _asked(index, texts, vectors)
    return nearest_rows(index, what, index.vectors, lambda: _sample_pairs(batch), asked, count)


def _asked(index: Index, texts: Sequence[str], vectors: Vectors) -> Queries:
    """Queries with the chunks that share a rare word with them: names that few chunks have, which cells miss most."""
    return Queries(vectors, index.lexical.sharing(texts, MAX_CHUNKS_OF_RARE_WORD))


def _sample_pairs(batch: Batch) -> Queries:
    """A sample of what such queries are: names of related entities, two by two; chunks where nothing is related."""
    graph, name_of = adjacency(batch, Counters()), entity_names(batch.index)
    edges = spread(np.arange(graph.related.nnz), SAMPLE)
    sources = np.searchsorted(graph.related.indptr, edges, "right") - 1
    pairs = zip(sources.tolist(), graph.related.indices[edges].tolist(), strict=True)
    texts = [f"{name_of[graph.entities[source]]} {name_of[graph.entities[target]]}" for source, target in pairs]
    index = batch.index
    return _asked(index, texts, index.embed(texts)) if texts else Queries(spread(index.vectors))
