"""Communities of the RELATED_TO graph for dual_level's global level, and the wording of entities and relations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import ENTITY, RELATED_TO
from hopbench.retrieval.graph.stores.arrays.graph import ArrayGraph
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import Arrays, Batch, Linker
from hopbench.retrieval.question.linking import entity_names
from hopbench.retrieval.support.arrays import Lists, expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Counters

WORDING_VERSION, COMMUNITIES_VERSION = "wording-1", "communities-1"  # change with what the cached arrays hold
NONE = -1
MAX_NAMES, MAX_RELATIONS = 10, 10  # in a community's text, the strongest
SEED = 1
PASSES = 2  # of Leiden over the graph, igraph's default
Rows = NDArray[np.int64]
Pair = tuple[str, str]
K = TypeVar("K", str, tuple[str, str])


@dataclass(frozen=True, eq=False)
class Descriptions:
    """Wording of entities (by id) and of relations (by both ids, sorted), and how many rows were read for it."""

    entities: Mapping[str, str]
    relations: Mapping[Pair, str]
    rows: int


def descriptions(batch: Batch, counters: Counters) -> Descriptions:
    """The wording of entities and relations; read once per index, charged to each batch that uses it."""
    read = batch.index.memo.get("descriptions", lambda: _read(batch))
    counters.round_trips += 1
    counters.rows += read.rows
    return read


def _read(batch: Batch) -> Descriptions:
    store, name_of = batch.index.store, entity_names(batch.index)
    if isinstance(store, ArrayStore):
        entities, pairs = _MappedEntities(store.graph), _MappedRelations(store.graph, name_of)
        return Descriptions(entities, pairs, len(entities) + len(pairs))
    whole = cache(lambda: _whole(store, name_of))
    counted = batch.index.graph_arrays("wording-rows", WORDING_VERSION, lambda: {"rows": np.array([whole().rows])})
    # What is embedded of the wording is kept as well: then nobody asks for it.
    return Descriptions(_Later(lambda: whole().entities), _Later(lambda: whole().relations), int(counted["rows"][0]))


def _whole(store: GraphStore, name_of: Mapping[str, str]) -> Descriptions:
    entities: dict[str, str] = {}
    relations: dict[Pair, str] = {}
    rows = 0
    for record in chain.from_iterable(store.read_parts(cypher.DESCRIPTIONS)):
        rows += len(record["source"])
        if record["kind"] == ENTITY:
            entities.update(zip(record["source"], record["description"], strict=True))
        else:
            columns = (record[name] for name in ("source", "target", "types", "description"))
            _add_relations(relations, zip(*columns, strict=True), name_of)
    return Descriptions(entities, relations, rows)


@dataclass(frozen=True, eq=False)
class _Later(Mapping[K, str]):
    """Texts that are read when the first of them is asked for."""

    read: Callable[[], Mapping[K, str]]

    def __getitem__(self, key: K) -> str:
        return self.read()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())


def _add_relations(
    texts: dict[Pair, str], edges: Iterable[tuple[str, str, Any, Any]], name_of: Mapping[str, str]
) -> None:
    """Add each pair's description, of edges (source, target, types, description).

    Where there is none (as in many mapped graphs), the types between the ends' names. Such an edge leads from subject
    to object, and several may join a pair; ours are one a pair, and described.
    """
    for source, target, types, description in edges:
        text = description or " ".join((name_of.get(source, source), *sorted(types), name_of.get(target, target)))
        pair = (source, target) if source < target else (target, source)
        texts[pair] = f"{texts[pair]}; {text}" if pair in texts else text


class _MappedEntities(Mapping[str, str]):
    """The descriptions of entities in arrays, each read when it is asked for: they take as much memory as the names."""

    def __init__(self, graph: ArrayGraph) -> None:
        self._nodes = graph.nodes[ENTITY]

    def __getitem__(self, entity: str) -> str:
        row = self._nodes.row(entity)
        if row is None:
            raise KeyError(entity)
        return self._nodes.columns["description"].many(np.array([row]))[0] or ""

    def __iter__(self) -> Iterator[str]:
        return (self._nodes.ids[row] for row in range(len(self)))

    def __len__(self) -> int:
        return len(self._nodes)


class _MappedRelations(Mapping[Pair, str]):
    """The wording of relations in arrays, read when it is asked for; `len` counts edges."""

    def __init__(self, graph: ArrayGraph, name_of: Mapping[str, str]) -> None:
        self._graph, self._name_of = graph, name_of
        self._edges, self._ids = graph.edges[RELATED_TO], graph.nodes[ENTITY].ids

    def __getitem__(self, pair: Pair) -> str:
        first, second = (self._graph.nodes[ENTITY].row(end) for end in pair)
        if first is None or second is None:
            raise KeyError(pair)
        around = self._graph.around(ENTITY, first, RELATED_TO)
        edges = np.sort(around.edges[around.others == second]).astype(np.int64)
        ends = ([self._ids[row] for row in rows[edges].tolist()] for rows in (self._edges.source, self._edges.target))
        worded = (self._edges.columns[name].many(edges) for name in ("types", "description"))
        texts: dict[Pair, str] = {}
        _add_relations(texts, zip(*ends, *worded, strict=True), self._name_of)
        return texts[pair]

    def __iter__(self) -> Iterator[Pair]:
        ends = zip(self._edges.source.tolist(), self._edges.target.tolist(), strict=True)
        pairs = (sorted((self._ids[source], self._ids[target])) for source, target in ends)
        return iter(dict.fromkeys((first, second) for first, second in pairs))

    def __len__(self) -> int:
        return len(self._edges)


@dataclass(frozen=True, eq=False)
class Communities:
    """k communities, in the order of their first entity's id.

    `members` holds rows into the adjacency's entities, ascending; `names` the strongest members' names, best first;
    `chunks` is (k, n): how many distinct members each chunk mentions; `vectors` is (k, d); `of_entity` (m,) is
    each entity's community, NONE for an entity without one. `cost` is that of the summaries.
    """

    members: Sequence[Rows]
    names: Sequence[Sequence[str]]
    chunks: sparse.csr_array
    vectors: Vectors
    of_entity: Rows
    cost: Counters = field(default_factory=Counters)

    def __len__(self) -> int:
        return len(self.members)


def communities(
    batch: Batch,
    counters: Counters,
    graph: Adjacency,
    reader: Linker,
    worded: Descriptions,
    *,
    resolution: float = 1.0,
    max_size: int = 10,
    min_strength: float = 0.0,
) -> Communities:
    """The communities of a batch's graph, found and embedded once per index and setting.

    Each trial is charged for their summaries once, whichever had them made.
    """
    index = batch.index

    name = f"communities-{resolution}-{max_size}-{min_strength}"
    cost, summarise = Counters(), index.services.community_summaries

    def found() -> Arrays:
        related = at_least(graph.related, min_strength)
        members = Lists.of(partition(related, resolution, max_size))
        strongest, texts = _strongest_and_texts(graph, related, members, reader, worded)
        vectors = index.embed(texts if summarise is None else list(summarise(cost, texts)))
        chunks = _mentioning(graph, members)
        return {
            "members": members.values,
            "members_start": members.start,
            "strongest": strongest.values,
            "strongest_start": strongest.start,
            "vectors": vectors,
            "data": chunks.data,
            "indices": chunks.indices,
            "indptr": chunks.indptr,
        }

    def made() -> Communities:
        arrays = found() if summarise is not None else index.graph_arrays(name, COMMUNITIES_VERSION, found)
        members, strongest = (Lists(arrays[part], arrays[f"{part}_start"]) for part in ("members", "strongest"))
        shape = len(members), len(index.chunks)
        chunks = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        of_entity = _of_entity(members, len(graph.entities))
        return Communities(members, _Names(graph, reader, strongest), chunks, arrays["vectors"], of_entity, cost)

    known = index.memo.get(name, made)
    counters.add_once(name, known.cost)
    return known


class _Names(Sequence[list[str]]):
    """The names of each community's strongest members, read from the linker on access: few are asked for."""

    def __init__(self, graph: Adjacency, reader: Linker, strongest: Lists) -> None:
        self._graph, self._reader, self._strongest = graph, reader, strongest

    def __len__(self) -> int:
        return len(self._strongest)

    def __getitem__(self, number: Any) -> Any:
        entities = self._graph.entities
        return [self._reader.name_of[entities[row]] for row in self._strongest[number].tolist()]


def _strongest_and_texts(
    graph: Adjacency, related: sparse.csr_array, members: Lists, reader: Linker, worded: Descriptions
) -> tuple[Lists, list[str]]:
    """Strongest entities and text of each community: their names, then the wording of the strongest relations."""
    best, texts = [], []
    for rows, inside in zip(members, _inside(related, members), strict=True):
        strength = np.round(np.bincount(rows.searchsorted(inside.rows), inside.strengths, len(rows)), 9)
        strongest = rows[np.lexsort((rows, -strength))[:MAX_NAMES]]
        names = [reader.name_of[graph.entities[row]] for row in strongest]
        upper = np.flatnonzero(inside.rows < inside.columns)
        order = upper[np.lexsort((inside.columns[upper], inside.rows[upper], -inside.strengths[upper]))]
        wordings: dict[str, None] = {}
        for i in order.tolist():
            if len(wordings) == MAX_RELATIONS:
                break
            pair = graph.entities[inside.rows[i]], graph.entities[inside.columns[i]]
            wordings[worded.relations[pair]] = None
        best.append(strongest)
        texts.append(". ".join([*names, *wordings]))
    return Lists.of(best), texts


def _of_entity(members: Lists, entities: int) -> Rows:
    number = np.full(entities, NONE)
    number[members.values] = members.owner
    return number


class _Inside(NamedTuple):
    """The entries of a matrix between members of one community."""

    rows: Rows
    columns: Rows
    strengths: NDArray[np.float64]


def _inside(related: sparse.csr_array, members: Lists) -> Iterator[_Inside]:
    """Each community's own entries, by row and column; all of them together take one pass over the matrix."""
    community = _of_entity(members, related.shape[0])
    for number, rows in enumerate(members):
        places, owners = expand_ranges(related.indptr[rows], related.indptr[rows + 1])
        columns = related.indices[places]
        own = community[columns] == number
        yield _Inside(rows[owners[own]], columns[own].astype(np.int64), related.data[places[own]])


def _mentioning(graph: Adjacency, members: Lists) -> sparse.csr_array:
    shape = len(members), len(graph.entities)
    belongs = sparse.csr_array((np.ones(len(members.values)), members.values, members.start), shape=shape)
    pattern = graph.mentions.copy()
    pattern.data[:] = 1.0
    chunks = sparse.csr_array(belongs @ pattern)
    chunks.sort_indices()
    return chunks


def partition(related: sparse.csr_array, resolution: float = 1.0, max_size: int = 10, seed: int = SEED) -> list[Rows]:
    """Communities of a symmetric (m, m) matrix of strengths: rows of each, ascending, ordered by their first row.

    The same matrix and seed give the same communities. Rows without an entry are left out.
    """
    import igraph

    edges = _upper(related)
    graph = igraph.Graph(n=related.shape[0], edges=np.stack([edges.row, edges.col], axis=1))
    graph.es["strength"] = edges.data.tolist()
    graph.vs["entity"] = range(related.shape[0])
    connected = graph.induced_subgraph(np.flatnonzero(np.diff(related.indptr)).tolist())
    igraph.set_random_number_generator(random.Random(seed))
    try:
        return sorted(_divided(connected, resolution, max_size), key=lambda rows: int(rows[0]))
    finally:
        igraph.set_random_number_generator(random)  # igraph's own default


def _divided(graph: Any, resolution: float, max_size: int) -> Iterator[Rows]:
    """Leiden's communities of an igraph graph, those that are too large divided again."""
    waiting = [graph] if graph.vcount() else []
    while waiting:
        clusters = waiting.pop().community_leiden(
            objective_function="modularity", weights="strength", resolution=resolution, n_iterations=PASSES
        )
        for part in clusters.subgraphs():
            if part.vcount() <= max_size or len(clusters) == 1:
                yield np.array(sorted(part.vs["entity"]), dtype=np.int64)
            else:
                waiting.append(part)


def _upper(related: sparse.csr_array) -> sparse.coo_array:
    upper = sparse.csr_array(sparse.triu(related, 1))
    upper.sort_indices()
    return sparse.coo_array(upper)


def at_least(matrix: sparse.csr_array, minimum: float) -> sparse.csr_array:
    result = sparse.csr_array(matrix.copy())
    result.data[result.data < minimum] = 0.0
    result.eliminate_zeros()
    return result
