"""KG2RAG query expansion: entities named in the question and their neighbours become search queries of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from hopbench.retrieval.search.fusion import DECIMALS, RRF_K, Scored, ordered, reciprocal_rank
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import SEEDS, initial_rankings, plain_ranking
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Hit, LazyHits, Question, Ranking, Step

QUERY = "QUERY"
NO_SEEDS = "no entity of the graph recognised in the question: the initial ranking"


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
        return initial_rankings(batch, self.initial_ranking)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Expand, embed and search the queries of all questions together."""
        with stage(counters, "entities"):
            reader = linker(batch, counters)
            seeds = [list(dict.fromkeys(link.entity for link in links)) for links in batch.links(reader)]
        with stage(counters, "graph"):
            depth = self.depth if self.use_related else 0
            neighbourhoods = [[SeedNeighbourhood(seed, frontier=[seed]) for seed in each] for each in seeds]
            expand(batch, counters, neighbourhoods, depth, self.min_strength, self.max_queries)
            queries = [expansion_queries(each, self.max_queries, self.seed_queries) for each in neighbourhoods]
        with stage(counters, "search"):
            results = search_texts(batch, [query.text for each in queries for query in each], self.per_query)
        rankings = []
        with stage(counters, "fusion"):
            for q, initial in enumerate(self.initial(batch)):
                ranking = self._ranking(batch.questions[q], initial, queries[q], results)
                notes = _notes(neighbourhoods[q], queries[q], results)
                ranking.notes = {"entities": seeds[q], **notes, **ranking.notes}
                rankings.append(ranking)
        return rankings

    def _ranking(
        self, question: Question, initial: Scored, queries: Sequence[ExpansionQuery], results: Mapping[str, Scored]
    ) -> Ranking:
        if not queries:
            return plain_ranking(question, initial, self.initial_ranking, {"fallback": NO_SEEDS})
        found = [(chunk, cosine, query) for query in queries for chunk, cosine in results[query.text] if cosine > 0]
        if self.order == "cosine":
            found.sort(key=lambda one: (-one[1], one[0]))
        hit_of: dict[str, tuple[float, ExpansionQuery]] = {}  # the query that ranks a chunk, with their cosine
        for chunk, cosine, query in found:
            hit_of.setdefault(chunk, (cosine, query))
        plain = reciprocal_rank([[chunk for chunk, _ in initial]], self.rrf_k)
        graph = reciprocal_rank([[*hit_of]], self.rrf_k)
        total = dict(plain)
        for chunk, share in graph.items():
            total[chunk] = total.get(chunk, 0.0) + self.graph_weight * share
        best = ordered(total)

        def hit(place: int) -> Hit:
            chunk, score = best[place]
            components = {self.initial_ranking: plain.get(chunk, 0.0), "graph": graph.get(chunk, 0.0)}
            if chunk not in hit_of:
                return Hit(chunk, score, "seed", components)
            cosine, query = hit_of[chunk]
            components |= {"cosine": cosine, "proximity": query.proximity}
            path = query.around.path(query.neighbour)
            last = Step(QUERY, path[-1].target if path else query.around.seed, chunk, cosine, cosine)
            return Hit(chunk, score, "graph", components, (*path, last))

        notes: dict[str, object] = {
            "query_of": {chunk: query.text for chunk, (_, query) in hit_of.items()},
            "found": len(found),
            "unique": len(hit_of),
            "kept": sum(chunk in hit_of for chunk, _ in best[:KEEP]),
        }
        seeds = [chunk for chunk, _ in initial[:SEEDS]]
        return Ranking(question.id, LazyHits.one_by_one(best, hit), seeds, notes)


def _notes(
    neighbourhoods: Sequence[SeedNeighbourhood], queries: Sequence[ExpansionQuery], results: Mapping[str, Scored]
) -> dict[str, object]:
    """The neighbours with hops and strength, the queries in order, and their hits."""
    if not queries:
        return {}
    near: dict[str, object] = {}
    for one in neighbourhoods:
        nearest = sorted(one.reached.items(), key=lambda hit: (hit[1].hops, -hit[1].strength, hit[0]))
        near[one.seed] = [{"entity": name, "hops": n.hops, "strength": n.strength} for name, n in nearest]
    return {
        "neighbours": near,
        "queries": [query.text for query in queries],
        "hits_of": {query.text: [c for c, cosine in results[query.text] if cosine > 0] for query in queries},
    }


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
            {
                "q": number,
                "ids": neighbourhood.frontier,
                "visited": sorted({neighbourhood.seed, *neighbourhood.reached}),
            }
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
    return {frozenset((around.seed, entity)) for around in neighbourhoods for entity in around.reached}


def expansion_queries(
    neighbourhoods: Sequence[SeedNeighbourhood], limit: int, seeds_alone: bool
) -> list[ExpansionQuery]:
    """The "seed neighbour" queries of one question, then its seeds' names alone.

    Nearest first, then strongest, then by text; each unordered pair of entities once; at most `limit` pairs.
    """
    by_seed = {around.seed: around for around in neighbourhoods}
    candidates = sorted(
        (here.hops, -here.strength, f"{around.names[around.seed]} {around.names[entity]}", around.seed, entity)
        for around in neighbourhoods
        for entity, here in around.reached.items()
    )
    pairs: dict[frozenset[str], ExpansionQuery] = {}
    for hops, lost, text, seed, entity in candidates:
        pair = frozenset((seed, entity))
        if len(pairs) == limit:
            break
        if pair not in pairs:
            pairs[pair] = ExpansionQuery(text, by_seed[seed], entity, proximity(hops), -lost)
    alone = [ExpansionQuery(one.names[one.seed], one) for one in neighbourhoods if one.seed in one.names]
    return [*pairs.values(), *(alone if seeds_alone else [])]


SEARCH_BATCH = 1024  # queries searched at a time: Neo4j's vector index gets them in one transaction
CELL_SEARCH_BATCH = 8192  # of those that look into cells: each cell is multiplied with more of them at once
MAX_CHUNKS_OF_RARE_WORD = 100  # a chunk that shares one with a query is looked at in any case


def search_texts(batch: Batch, texts: Iterable[str], count: int) -> dict[str, Scored]:
    """The best `count` chunks by cosine for each text; new texts are embedded in one call."""
    known: dict[str, Scored] = {} if batch.alone else batch.memo.get(("searches", count), dict)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if not new:
        return known
    index, vectors = batch.index, batch.index.embed(new)
    approximate = index.search == APPROXIMATE
    for part in blocks(len(new), CELL_SEARCH_BATCH if approximate else SEARCH_BATCH):
        if approximate:
            # For hundreds of queries at a time cells are cheaper than the graph of near chunks (docs/scale.md).
            what, queries = "chunks for pairs of names", _with_rare(index, new[part], vectors[part])
            found = nearest_rows(index, what, index.vectors, lambda: _sample_pairs(batch), queries, count)
        else:
            found = index.nearest(vectors[part], count)
        known.update(zip(new[part], batch.all_with_ids(found), strict=True))
    return known


def _with_rare(index: Index, texts: Sequence[str], vectors: Vectors) -> Queries:
    """Queries with the chunks that share a rare word with them: names that few chunks have, which cells miss most."""
    return Queries(vectors, index.lexical.sharing(texts, MAX_CHUNKS_OF_RARE_WORD))


def _sample_pairs(batch: Batch) -> Queries:
    """A sample of what such queries are: names of related entities, two by two; chunks where nothing is related."""
    index, graph, name_of = batch.index, adjacency(batch, Counters()), entity_names(batch.index)
    edges = spread(np.arange(graph.related.nnz), SAMPLE)
    sources = np.searchsorted(graph.related.indptr, edges, "right") - 1
    pairs = zip(sources.tolist(), graph.related.indices[edges].tolist(), strict=True)
    texts = [f"{name_of[graph.entities[source]]} {name_of[graph.entities[target]]}" for source, target in pairs]
    return _with_rare(index, texts, index.embed(texts)) if texts else Queries(spread(index.vectors))
