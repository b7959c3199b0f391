"""Communities of the RELATED_TO graph, which dual_level's global level searches.

Leiden (Traag, Waltman and van Eck, arXiv 1810.08473; igraph's, seeded) maximises modularity over the strengths. What
is larger than `max_size` is partitioned again on its own, as GraphRAG does with its hierarchy (its default is 10 too);
a community that Leiden cannot divide stays whole. Entities without a relation belong to none.

A community is embedded by its strongest entities' names and its strongest relations' wording, or by a language model's
summary of that text (`Services.community_summaries`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import ENTITY, RELATED_TO
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.question.linking import entity_names
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Counters

Rows = NDArray[np.int64]
SEED = 1
PASSES = 2  # of Leiden over the graph, igraph's default
_NO_RECORD: Record = {"source": [], "target": [], "types": [], "description": []}
MAX_NAMES, MAX_RELATIONS = 10, 10  # in a community's text, the strongest


@dataclass(frozen=True, eq=False)
class Descriptions:
    """Wording of entities (by id) and of relations (by both ids, sorted), and how many rows were read for it."""

    entities: Mapping[str, str]
    relations: Mapping[tuple[str, str], str]
    rows: int


def descriptions(batch: Batch, counters: Counters) -> Descriptions:
    """The wording of entities and relations; read once per index, charged to each batch that uses it."""
    read = batch.index.memo.get("descriptions", lambda: _read(batch))
    counters.round_trips += 1
    counters.rows += read.rows
    return read


def _read(batch: Batch) -> Descriptions:
    # A kind of which the graph has nothing comes back as no record at all.
    records = {record["kind"]: record for record in batch.index.store.read(cypher.DESCRIPTIONS)}
    entity, relation = records.get(ENTITY, _NO_RECORD), records.get(RELATED_TO, _NO_RECORD)
    return Descriptions(
        dict(zip(entity["source"], entity["description"], strict=True)),
        _relation_texts(relation, entity_names(batch.index)),
        len(entity["source"]) + len(relation["source"]),
    )


def _relation_texts(relation: Record, name_of: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Each pair's description; where there is none (as in many mapped graphs), the types between the ends' names.

    Such an edge leads from subject to object, and several may join a pair; ours are one a pair, and described.
    """
    texts: dict[tuple[str, str], str] = {}
    columns = (relation[name] for name in ("source", "target", "types", "description"))
    for source, target, types, description in zip(*columns, strict=True):
        text = description or " ".join((name_of.get(source, source), *sorted(types), name_of.get(target, target)))
        pair = (source, target) if source < target else (target, source)
        texts[pair] = f"{texts[pair]}; {text}" if pair in texts else text
    return texts


@dataclass(frozen=True, eq=False)
class Communities:
    """k communities, in the order of their first entity's id.

    `members` holds rows into the adjacency's entities, ascending; `names` the strongest members' names, best first;
    `chunks` is (k, n): how many distinct members each chunk mentions; `vectors` is (k, d). `cost` is that of
    the summaries.
    """

    members: Sequence[Rows]
    names: Sequence[Sequence[str]]
    chunks: sparse.csr_array
    vectors: Vectors
    cost: Counters = field(default_factory=Counters)

    def __len__(self) -> int:
        return len(self.members)


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
    """Each pair once, in an order that is the matrix's alone."""
    upper = sparse.csr_array(sparse.triu(related, 1))
    upper.sort_indices()
    return sparse.coo_array(upper)


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

    def made() -> Communities:
        related = at_least(graph.related, min_strength)
        members = partition(related, resolution, max_size)
        names, texts = _names_and_texts(graph, related, members, reader, worded)
        cost, summarise = Counters(), index.services.community_summaries
        if summarise is not None:
            texts = list(summarise(cost, texts))
        return Communities(members, names, _mentioning(graph, members), index.embed(texts), cost)

    key = f"communities {resolution} {max_size} {min_strength}"
    known = index.memo.get(key, made)
    counters.add_once(key, known.cost)
    return known


def at_least(matrix: sparse.csr_array, minimum: float) -> sparse.csr_array:
    """The entries of a matrix that are at least `minimum`."""
    result = sparse.csr_array(matrix.copy())
    result.data[result.data < minimum] = 0.0
    result.eliminate_zeros()
    return result


def _names_and_texts(
    graph: Adjacency, related: sparse.csr_array, members: Sequence[Rows], reader: Linker, worded: Descriptions
) -> tuple[list[list[str]], list[str]]:
    """Names and text of each community: strongest entities, then the wording of the strongest relations inside it."""
    names, texts = [], []
    for rows in members:
        inside = sparse.csr_array(related[rows][:, rows])
        strength = np.round(np.asarray(inside.sum(axis=1)).ravel(), 9)
        strongest = [reader.name_of[graph.entities[rows[i]]] for i in np.lexsort((rows, -strength))[:MAX_NAMES]]
        pairs = _upper(inside)
        order = np.lexsort((pairs.col, pairs.row, -pairs.data))
        ends = [(graph.entities[rows[pairs.row[i]]], graph.entities[rows[pairs.col[i]]]) for i in order]
        relations = list(dict.fromkeys(worded.relations[pair] for pair in ends))[:MAX_RELATIONS]
        names.append(strongest)
        texts.append(". ".join([*strongest, *relations]))
    return names, texts


def _mentioning(graph: Adjacency, members: Sequence[Rows]) -> sparse.csr_array:
    sizes = [len(rows) for rows in members]
    inside = np.concatenate(members) if members else np.zeros(0, dtype=np.int64)
    belongs = sparse.csr_array(
        (np.ones(len(inside)), (np.repeat(np.arange(len(members)), sizes), inside)),
        shape=(len(members), len(graph.entities)),
    )
    pattern = graph.mentions.copy()
    pattern.data[:] = 1.0
    chunks = sparse.csr_array(belongs @ pattern)
    chunks.sort_indices()
    return chunks
