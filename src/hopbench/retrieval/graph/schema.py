"""The graph's nodes and edges as tables, which extractors return and stores write, and the statements on its edges.

The graph keeps one RELATED_TO edge per unordered pair, since traversals are undirected; its ends are sorted by id and
say nothing about direction. The relations as stated are in the edge's list property `statements`: one JSON object per
relation, which every engine can hold and a person can read in a query result. Rules find co-occurrence, which has no
direction: such an edge has no statements, and its types are rule types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # takes 0.3 s, and strategies need no tables
    import pandas as pd

DOCUMENT, CHUNK, ENTITY = "Document", "Chunk", "Entity"
CONTAINS, MENTIONED_IN, SIMILAR_TO, RELATED_TO = "CONTAINS", "MENTIONED_IN", "SIMILAR_TO", "RELATED_TO"
LINKS_TO, NEXT, PART_OF = "LINKS_TO", "NEXT", "PART_OF"
RULE_RELATIONS = ("stated", "implied", "named_together")  # the types of RELATED_TO that rules give

NODE_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DOCUMENT: ("id", "title"),
        CHUNK: ("id", "passage_id", "index", "content"),
        ENTITY: ("id", "name", "type", "description", "aliases"),
    }
)


class EdgeType(NamedTuple):
    """The node labels at the ends of a type of edges, its columns beside the ends, and which of them is the weight.

    Edges `of_documents` come from how a corpus of documents is written. They keep their direction, and a graph without
    any is the graph of a corpus that has no documents.
    """

    source: str
    target: str
    columns: tuple[str, ...] = ()
    weight: str | None = None
    of_documents: bool = False


EDGE_TYPES: Mapping[str, EdgeType] = MappingProxyType(
    {
        CONTAINS: EdgeType(DOCUMENT, CHUNK),
        MENTIONED_IN: EdgeType(ENTITY, CHUNK, ("count", "weight", "tags"), "weight"),
        SIMILAR_TO: EdgeType(CHUNK, CHUNK, ("similarity", "tags"), "similarity"),
        RELATED_TO: EdgeType(
            ENTITY, ENTITY, ("strength", "types", "description", "tags", "statements"), weight="strength"
        ),
        LINKS_TO: EdgeType(CHUNK, CHUNK, ("text", "weight", "tags"), "weight", of_documents=True),
        NEXT: EdgeType(CHUNK, CHUNK, of_documents=True),
        PART_OF: EdgeType(CHUNK, CHUNK, of_documents=True),
    }
)
"""What stores, fingerprints, queries and displays know of the types of edges: a new type is a row here."""

DOCUMENT_EDGES = tuple(kind for kind, edges in EDGE_TYPES.items() if edges.of_documents)
WALKED = tuple(sorted(kind for kind in EDGE_TYPES if kind != CONTAINS))
"""The types of edges that lead from one chunk or entity to another."""
UNDIRECTED = frozenset(
    kind for kind, edges in EDGE_TYPES.items() if edges.source == edges.target and not edges.of_documents
)
EDGE_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {kind: ("source", "target", *edges.columns) for kind, edges in EDGE_TYPES.items()}
)
EDGE_ENDS: Mapping[str, tuple[str, str]] = MappingProxyType({kind: edges[:2] for kind, edges in EDGE_TYPES.items()})
WEIGHT_OF: Mapping[str, str] = MappingProxyType(
    {kind: edges.weight for kind, edges in EDGE_TYPES.items() if edges.weight}
)
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType({**NODE_COLUMNS, **EDGE_COLUMNS})
LIST_COLUMNS = frozenset({"aliases", "tags", "types", "statements"})
SPARSE_COLUMNS = frozenset({"statements"})  # empty for most edges of a large graph, so stores omit empty lists


def document_id(passage_id: str) -> str:
    """The id of a passage's Document node."""
    return f"d:{passage_id}"


def entity_id(key: tuple[str, ...]) -> str:
    """The id of the entity with this name key: ("ed", "wood") is "e:ed wood"."""
    return "e:" + " ".join(key)


VectorPart = tuple[str, Sequence[str], NDArray[np.float32]]
"""A node label, ids of some of its nodes, and their vectors, a row for each."""


class Tables(Protocol):
    """A whole graph, read in parts: input of a store's write and of a fingerprint, never all in memory."""

    def parts(self, name: str, /) -> Iterator[pd.DataFrame]:
        """The rows of a node label or an edge type, in the same order each time."""
        ...

    def vector_parts(self) -> Iterator[VectorPart]:
        """The embeddings of nodes, label by label."""
        ...


@dataclass(frozen=True)
class TableParts:
    """`Tables` that functions read."""

    parts: Callable[[str], Iterator[pd.DataFrame]]
    vector_parts: Callable[[], Iterator[VectorPart]] = lambda: iter(())


@dataclass(frozen=True)
class GraphTables:
    """`Tables` in memory: a DataFrame per node label and edge type, with the columns of `COLUMNS`.

    Undirected edges (`UNDIRECTED`) occur once, with source < target; there are no self-loops. The direction
    of each relation is in `statements` (`Statement`). `vectors` holds the embeddings of a node label, a row per row of
    its table; they are not part of the fingerprint, since they follow from the content and the embedder, which the
    build key names.
    """

    nodes: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    edges: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Rows per node label and per edge type; edges of documents only where there are any."""
        edges = {k: len(v) for k, v in self.edges.items() if len(v) or k not in DOCUMENT_EDGES}
        return {k: len(v) for k, v in self.nodes.items()}, edges

    def parts(self, name: str, /) -> Iterator[pd.DataFrame]:
        """See `Tables.parts`; one part, or none of a table that is not there."""
        yield from (table[name] for table in (self.nodes, self.edges) if name in table)

    def vector_parts(self) -> Iterator[VectorPart]:
        """See `Tables.vector_parts`; one part per label."""
        for label, vectors in self.vectors.items():
            yield label, self.nodes[label]["id"].tolist(), vectors


def full_parts(tables: Tables, columns: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The parts of the tables that `columns` names, each with all of its columns."""
    for name, wanted in columns.items():
        for part in tables.parts(name):
            yield name, part.reindex(columns=list(wanted))


def vector_rows(tables: Tables, rows: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """The vectors of `rows` nodes of a label at a time, by id, as numbers that any engine takes."""
    for label, ids, vectors in tables.vector_parts():
        for begin in range(0, len(ids), rows):
            part = slice(begin, begin + rows)
            yield label, dict(zip(ids[part], vectors[part].tolist(), strict=True))


DIRECTED, SYMMETRIC = "->", "<->"
INVERSE = "inverse of"


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation between two entities (ids) as stated; `weight` is 0..10, ten times a strength.

    A symmetric one (`directed` is False) holds in both directions.
    """

    subject: str
    type: str
    object: str
    description: str = ""
    weight: float = 10.0
    directed: bool = True

    def seen_from(self, entity: str) -> str:
        """The type as seen from one end: "owns" from its subject, "inverse of owns" from its object."""
        return f"{INVERSE} {self.type}" if self.directed and self.type and entity == self.object else self.type

    def other(self, entity: str) -> str:
        """The end that is not `entity`."""
        return self.object if entity == self.subject else self.subject

    @property
    def key(self) -> tuple[bool, str, str, str, str]:
        """Equal for equal statements; for a symmetric one the order of ends does not matter."""
        first, second = self.subject, self.object
        if not self.directed:
            first, second = sorted((first, second))
        return self.directed, first, second, self.type, self.description


_STATED = ("subject", "type", "object", "description", "weight")


def encoded(statements: Iterable[Statement]) -> list[str]:
    """Encode statements as an edge's `statements`: strongest first, ties by subject, type, object."""
    ordered = sorted(statements, key=lambda one: (-one.weight, one.subject, one.type, one.object, one.description))
    return [json.dumps({name: getattr(one, name) for name in _STATED}, ensure_ascii=False) for one in ordered]


def statements_of(
    source: str, target: str, strength: float, types: Sequence[str], description: str, texts: Sequence[str] | None
) -> list[Statement]:
    """The statements of an edge from `source` to `target`, strongest first.

    An edge without statements of its own is symmetric if its types are those of rules. Any other comes from an external
    graph, and states its types in the direction of the edge.
    """
    known = []
    for text in texts or ():
        with suppress(ValueError, TypeError, KeyError):  # in an external graph the property may hold anything
            subject, type_, object_, worded, weight = itemgetter(*_STATED)(json.loads(text))
            known.append(Statement(subject, type_, object_, worded, float(weight)))
    if known:
        return known
    directed = not types or not set(types) <= set(RULE_RELATIONS)
    return [Statement(source, ", ".join(sorted(types)), target, description or "", round(10.0 * strength, 6), directed)]
