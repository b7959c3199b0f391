"""Communities of the RELATED_TO graph for dual_level's global level, and the wording of entities and relations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

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
from hopbench.retrieval.support.texts import RowValues
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Counters

WORDING_VERSION, COMMUNITIES_VERSION = "wording-1", "communities-1"  # change with what the cached arrays hold
NONE = -1
MAX_NAMES, MAX_RELATIONS = 10, 10  # in a community's text, the strongest
SEED = 1
PASSES = 2  # of Leiden over the graph, igraph's default
Rows = NDArray[np.int64]
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Descriptions:
    """Wording of entities (by id) and of relations (by both ids, sorted), and how many rows are read for it.

    Where what is embedded of the wording is cached, nobody asks for it, and nothing is read.
    """

    rows: int
    read: Callable[[], tuple[Mapping[str, str], Mapping[Pair, str]]]

    @property
    def entities(self) -> Mapping[str, str]:
        return self.read()[0]

    @property
    def relations(self) -> Mapping[Pair, str]:
        return self.read()[1]


def descriptions(batch: Batch, counters: Counters) -> Descriptions:
    """The wording of entities and relations; read once per index, charged to each batch that uses it."""

    def known() -> Descriptions:
        store, name_of = batch.index.store, entity_names(batch.index)
        if isinstance(store, ArrayStore):
            nodes = store.graph.nodes[ENTITY]  # descriptions are read when they are needed: they take much memory
            described = RowValues(nodes, lambda row: nodes.columns["description"].many(np.array([row]))[0] or "")
            mapped = described, _MappedRelations(store.graph, name_of)
            return Descriptions(len(mapped[0]) + len(mapped[1]), lambda: mapped)
        whole = cache(lambda: _whole(store, name_of))
        counted = batch.index.graph_arrays("wording-rows", WORDING_VERSION, lambda: {"rows": np.array([whole()[2]])})
        return Descriptions(int(counted["rows"][0]), lambda: whole()[:2])

    worded = batch.index.memo.get("descriptions", known)
    counters.round_trips += 1
    counters.rows += worded.rows
    return worded


def _whole(store: GraphStore, name_of: Mapping[str, str]) -> tuple[dict[str, str], dict[Pair, str], int]:
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
    return entities, relations, rows


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

    `members` holds rows into the adjacency's entities, ascending; `names_of` the strongest members' names, best first;
    `chunks` is (k, n): how many distinct members each chunk mentions; `vectors` is (k, d); `of_entity` (m,) is
    each entity's community, NONE for an entity without one. `cost` is that of the summaries.
    """

    members: Sequence[Rows]
    names_of: Callable[[int], list[str]]
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
    """The communities of a batch's graph, found and embedded once per index and setting; each trial is charged once."""
    index = batch.index
    name = f"communities-{resolution}-{max_size}-{min_strength}"
    cost, summarise = Counters(), index.services.community_summaries

    def computed() -> Arrays:
        related = at_least(graph.related, min_strength)
        members = Lists.of(partition(related, resolution, max_size))
        strongest, texts = _strongest_and_texts(graph, related, members, reader, worded)
        vectors = index.embed(texts if summarise is None else list(summarise(cost, texts)))
        chunks = _mentioning(graph, members)
        listed = {"members": members, "strongest": strongest}
        arrays = {name: lists.values for name, lists in listed.items()}
        arrays |= {f"{name}_start": lists.start for name, lists in listed.items()}
        return arrays | {"vectors": vectors, "data": chunks.data, "indices": chunks.indices, "indptr": chunks.indptr}

    def made() -> Communities:
        cached = summarise is None
        arrays = index.graph_arrays(name, COMMUNITIES_VERSION, computed) if cached else computed()
        members, strongest = (Lists(arrays[part], arrays[f"{part}_start"]) for part in ("members", "strongest"))
        shape = len(members), len(index.chunks)
        chunks = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        of_entity = _of_entity(members, len(graph.entities))

        def names_of(number: int) -> list[str]:
            return [reader.name_of[graph.entities[row]] for row in strongest[number].tolist()]

        return Communities(members, names_of, chunks, arrays["vectors"], of_entity, cost)

    known = index.memo.get(name, made)
    counters.add_once(name, known.cost)
    return known


def _of_entity(members: Lists, entities: int) -> Rows:
    number = np.full(entities, NONE)
    number[members.values] = members.owner
    return number


def _strongest_and_texts(
    graph: Adjacency, related: sparse.csr_array, members: Lists, reader: Linker, worded: Descriptions
) -> tuple[Lists, list[str]]:
    """Strongest entities and text of each community: their names, then the wording of the strongest relations."""
    best, texts = [], []
    community = _of_entity(members, related.shape[0])
    for number, rows in enumerate(members):
        places, owners = expand_ranges(related.indptr[rows], related.indptr[rows + 1])
        own = community[related.indices[places]] == number
        first, second = rows[owners[own]], related.indices[places[own]].astype(np.int64)
        strengths = related.data[places[own]]
        strength = np.round(np.bincount(rows.searchsorted(first), strengths, len(rows)), 9)
        strongest = rows[np.lexsort((rows, -strength))[:MAX_NAMES]]
        names = [reader.name_of[graph.entities[row]] for row in strongest]
        upper = np.flatnonzero(first < second)
        order = upper[np.lexsort((second[upper], first[upper], -strengths[upper]))]
        wordings: dict[str, None] = {}
        for i in order.tolist():
            if len(wordings) == MAX_RELATIONS:
                break
            wordings[worded.relations[graph.entities[first[i]], graph.entities[second[i]]]] = None
        best.append(strongest)
        texts.append(". ".join([*names, *wordings]))
    return Lists.of(best), texts


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

    Leiden (Traag, Waltman and van Eck, arXiv 1810.08473) maximises modularity over the strengths; a community larger
    than `max_size` is partitioned again on its own, and stays whole where that does not split it. The same matrix and
    seed give the same communities. Rows without an entry are left out.
    """
    import igraph

    upper = sparse.csr_array(sparse.triu(related, 1))
    upper.sort_indices()  # the order of the edges is the matrix's alone
    edges = sparse.coo_array(upper)
    graph = igraph.Graph(n=related.shape[0], edges=np.stack([edges.row, edges.col], axis=1))
    graph.es["strength"] = edges.data.tolist()
    graph.vs["entity"] = range(related.shape[0])
    connected: Any = graph.induced_subgraph(np.flatnonzero(np.diff(related.indptr)).tolist())
    waiting, found = [connected] if connected.vcount() else [], list[Rows]()
    igraph.set_random_number_generator(random.Random(seed))
    try:
        while waiting:
            clusters = waiting.pop().community_leiden(
                objective_function="modularity", weights="strength", resolution=resolution, n_iterations=PASSES
            )
            for part in clusters.subgraphs():
                if part.vcount() <= max_size or len(clusters) == 1:
                    found.append(np.array(sorted(part.vs["entity"]), dtype=np.int64))
                else:
                    waiting.append(part)
    finally:
        igraph.set_random_number_generator(random)  # igraph's own default
    return sorted(found, key=lambda rows: int(rows[0]))


def at_least(matrix: sparse.csr_array, minimum: float) -> sparse.csr_array:
    result = sparse.csr_array(matrix.copy())
    result.data[result.data < minimum] = 0.0
    result.eliminate_zeros()
    return result
