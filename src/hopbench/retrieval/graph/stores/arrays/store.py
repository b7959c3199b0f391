"""A graph as memory-mapped arrays in a folder: for corpora whose graph the embedded engine would not fit into memory.

It answers the queries of `cypher` alone, each by a function, and no other text: nothing parses Cypher here. Strategies,
`explain` and `graph info` send no others. Nothing of it is loaded: a process holds the pages that it reads, and shares
them with all processes that read the same graph.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_TYPES,
    ENTITY,
    NODE_COLUMNS,
    RELATED_TO,
    WALKED,
    Tables,
)
from hopbench.retrieval.graph.stores.arrays import hops
from hopbench.retrieval.graph.stores.arrays.graph import VECTORS, ArrayGraph, Ints, Lists, write_tables
from hopbench.retrieval.graph.stores.base import GraphStore, Record, damaged, remove, writing
from hopbench.retrieval.support.arrays import mapped_array
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import DamagedGraphError, StoreError
from hopbench.retrieval.types import Chunk

PART_ROWS = 100_000


def adjacency(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.ADJACENCY`."""
    for kind in WALKED:
        edges = graph.edges[kind]
        if len(edges):
            yield {"kind": kind, **_ends(graph, kind, np.arange(len(edges))), "weight": edges.weights.tolist()}


def names(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.NAMES`."""
    entities, contained = graph.nodes[ENTITY], graph.edges[CONTAINS]
    if len(entities):
        every = np.arange(len(entities))
        columns = {name: entities.columns[name].many(every) for name in ("id", "name", "type", "aliases")}
        yield {"kind": ENTITY, **columns}
    if len(contained):
        titles = graph.nodes[DOCUMENT].columns["title"].many(contained.source.astype(np.int64))
        yield {"kind": DOCUMENT, "id": graph.ids(CHUNK, contained.target), "name": titles, "type": [], "aliases": []}


def relations(graph: ArrayGraph, *, usual: Sequence[str]) -> Iterator[Record]:
    """`cypher.RELATIONS`."""
    edges = graph.edges[RELATED_TO]
    types = edges.columns["types"]
    rows = types.with_others(usual) if isinstance(types, Lists) else np.zeros(0, np.int64)
    if len(rows):
        worded = {"types": types.many(rows), "weight": edges.weights[rows].tolist()}
        yield {"kind": RELATED_TO, **_ends(graph, RELATED_TO, rows), **worded}


def descriptions(graph: ArrayGraph) -> Iterator[Record]:
    """`cypher.DESCRIPTIONS`."""
    entities, edges = graph.nodes[ENTITY], graph.edges[RELATED_TO]
    if len(entities):
        every = np.arange(len(entities))
        texts = [text or "" for text in entities.columns["description"].many(every)]
        yield {"kind": ENTITY, "source": graph.ids(ENTITY, every), "target": [], "types": [], "description": texts}
    if len(edges):
        every = np.arange(len(edges))
        texts = [text or "" for text in edges.columns["description"].many(every)]
        worded = {"types": edges.columns["types"].many(every), "description": texts}
        yield {"kind": RELATED_TO, **_ends(graph, RELATED_TO, every), **worded}


def table_parts(graph: ArrayGraph, name: str) -> Iterator[dict[str, list[Any]]]:
    """The table of a label or edge type in parts, an empty one if it has no rows, each by columns."""
    table = graph.nodes[name] if name in NODE_COLUMNS else graph.edges[name]
    for begin in range(0, max(len(table), 1), PART_ROWS):
        rows = np.arange(begin, min(begin + PART_ROWS, len(table)))
        ends = _ends(graph, name, rows) if name in EDGE_TYPES else {}
        yield {**ends, **{own: column.many(rows) for own, column in table.columns.items()}}


def _ends(graph: ArrayGraph, kind: str, rows: Ints) -> dict[str, list[Any]]:
    edges, (source, target, *_) = graph.edges[kind], EDGE_TYPES[kind]
    return {"source": graph.ids(source, edges.source[rows]), "target": graph.ids(target, edges.target[rows])}


QUERIES: Mapping[str, Callable[..., Iterator[Record]]] = {
    cypher.EXPANSION_HOP: hops.expansion_hop,
    cypher.DOCUMENT_HOP: hops.document_hop,
    cypher.ENTITY_NEIGHBOURS: hops.entity_neighbours,
    cypher.RELATED_ENTITIES: hops.related_entities,
    cypher.ENTITY_CHUNKS: hops.entity_chunks,
    cypher.NEIGHBORHOOD_HOP: hops.neighborhood_hop,
    cypher.ENTITY_CARDS: hops.entity_cards,
    cypher.STRONGEST_RELATIONS: hops.strongest_relations,
    cypher.STATED: hops.stated,
    cypher.ACTIVATION_HOP: hops.activation_hop,
    cypher.ACTIVATION_EDGES: hops.activation_edges,
    cypher.ADJACENCY: adjacency,
    cypher.NAMES: names,
    cypher.RELATIONS: relations,
    cypher.DESCRIPTIONS: descriptions,
}
TABLES: Mapping[str, str] = {query: name for name, query in cypher.EXPORTS.items()}
"""The queries for a whole table → the label or edge type."""

FORMAT = 3
SUFFIX = ".arrays"
ABOUT = "graph.json"  # written last: a folder without it is no graph


class ArrayStore(GraphStore):
    """A graph in the folder `folder/NAMESPACE.arrays`, mapped on first use."""

    engine = "arrays"

    def __init__(self, folder: Path, namespace: str) -> None:
        self.namespace = namespace
        self.path = folder / f"{namespace}{SUFFIX}"

    def read(self, query: str, **parameters: object) -> list[Record]:
        """See `GraphStore.read`; StoreError for a query that is none of `cypher`'s."""
        if query in TABLES:
            return [record for part in self.read_parts(query) for record in part]
        answer = QUERIES.get(query)
        if answer is None:
            first = " ".join(query.split())[:60]
            raise StoreError(
                f"--store arrays answers HopBench's own queries alone, not {first!r}: it does not parse Cypher. "
                "For other queries use --store kglite or neo4j (hopbench graph copy)"
            )
        return list(answer(self.graph, **parameters))

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """See `GraphStore.read_parts`."""
        if query not in TABLES:
            yield self.read(query)
            return
        for columns in table_parts(self.graph, TABLES[query]):
            yield [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def chunk_vectors(self, chunks: Sequence[Chunk]) -> NDArray[np.float32] | None:
        """The vectors of chunks, mapped, shape (n, d); None unless the graph has them of just these, in this order."""
        try:
            nodes = self.graph.nodes[CHUNK]
        except DamagedGraphError:  # or none: whoever reads the record says so, and a build makes it anew
            return None
        file = self.path / f"{CHUNK}{VECTORS}"
        if not file.is_file() or not nodes.ids.holds(ids_of(chunks)):
            return None
        return mapped_array(file)

    def write(self, tables: Tables, record: Mapping[str, object]) -> None:
        """See `GraphStore.write`: beside its place and renamed. Of the vectors the chunks' are kept."""
        unfinished = self.path.with_name(f"{self.path.name}.partial")
        with writing(self.path):
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            write_tables(unfinished, tables)
            files = sorted(unfinished.iterdir())
            about = {
                "format": FORMAT,
                "record": dict(record),
                "sizes": {file.name: file.stat().st_size for file in files},
                "sums": {file.name: file_sum(file) for file in files},
            }
            (unfinished / ABOUT).write_text(json.dumps(about, sort_keys=True), encoding="utf-8")
            self.drop()
            unfinished.rename(self.path)

    def record(self) -> Mapping[str, Any] | None:
        """See `GraphStore.record`; refuses a graph with a file that is missing or cut."""
        return self.check() if self.path.exists() else None

    def stamp(self) -> str | None:
        """A digest of the files' names, sizes and times of change: they are too large to be read at every run."""
        if not self.path.is_dir():
            return None
        digest = hashlib.sha256()
        for file in sorted(self.path.iterdir()):
            about = file.stat()
            digest.update(f"{file.name}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def drop(self) -> None:
        """See `GraphStore.drop`."""
        self.close()
        remove(self.path / ABOUT)  # first: what is left of it is then no graph
        remove(self.path)

    def close(self) -> None:
        """Forget the graph; the files stay."""
        self.__dict__.pop("graph", None)

    @cached_property
    def graph(self) -> ArrayGraph:
        """The mapped graph; raises DamagedGraphError where a file is not as long as it was written."""
        self.check()
        return ArrayGraph(self.path)

    def check(self, *, content: bool = False) -> Mapping[str, Any]:
        """Return the build record. Raises DamagedGraphError where a file is missing or not as long as it was written.

        With `content`, also where it is not what was written: this reads all files.
        """
        try:
            about = json.loads((self.path / ABOUT).read_text(encoding="utf-8"))
            known = about["format"] == FORMAT
            record, sizes, sums = (dict(about[name]) if known else {} for name in ("record", "sizes", "sums"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise damaged(self.path, f"{ABOUT}: {type(error).__name__}: {error}") from error
        if not known:
            raise damaged(self.path, f"{ABOUT} has format {about['format']}, this version reads {FORMAT}")
        for name, size in sizes.items():
            file = self.path / name
            fits = file.is_file() and file.stat().st_size == size
            if not fits or (content and file_sum(file) != sums.get(name)):
                raise damaged(self.path, f"{name} is not as it was written")
        return record
