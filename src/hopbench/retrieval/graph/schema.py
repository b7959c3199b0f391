"""The graph's nodes and edges as tables, which extractors return and stores write, and the statements on its edges.

The graph keeps one RELATED_TO edge per unordered pair, since traversals are undirected; its ends are sorted by id and
say nothing about direction. The relations as stated are in the edge's list property `statements`: one JSON object per
relation, which every engine can hold and a person can read in a query result. Rules find co-occurrence, which has no
direction: such an edge has no statements, and its types are rule types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # takes 0.3 s, and strategies need no tables
    import pandas as pd

DOCUMENT, CHUNK, ENTITY = "Document", "Chunk", "Entity"
CONTAINS, MENTIONED_IN, SIMILAR_TO, RELATED_TO = "CONTAINS", "MENTIONED_IN", "SIMILAR_TO", "RELATED_TO"
RULE_RELATIONS = ("stated", "implied", "named_together")  # the types of RELATED_TO that rules give

NODE_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DOCUMENT: ("id", "title"),
        CHUNK: ("id", "passage_id", "index", "content"),
        ENTITY: ("id", "name", "type", "description", "aliases"),
    }
)
EDGE_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        CONTAINS: ("source", "target"),
        MENTIONED_IN: ("source", "target", "count", "weight", "tags"),
        SIMILAR_TO: ("source", "target", "similarity", "tags"),
        RELATED_TO: ("source", "target", "strength", "types", "description", "tags", "statements"),
    }
)
EDGE_ENDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        CONTAINS: (DOCUMENT, CHUNK),
        MENTIONED_IN: (ENTITY, CHUNK),
        SIMILAR_TO: (CHUNK, CHUNK),
        RELATED_TO: (ENTITY, ENTITY),
    }
)
LIST_COLUMNS = frozenset({"aliases", "tags", "types", "statements"})
SPARSE_COLUMNS = frozenset({"statements"})  # empty for most edges of a large graph, so stores omit empty lists
WEIGHT_OF: Mapping[str, str] = MappingProxyType(
    {SIMILAR_TO: "similarity", RELATED_TO: "strength", MENTIONED_IN: "weight"}
)


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

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """The node labels and the edge types."""
        ...

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """The rows of a node label or an edge type, in the same order each time."""
        ...

    def vector_parts(self) -> Iterator[VectorPart]:
        """The embeddings of nodes, label by label."""
        ...


@dataclass(frozen=True)
class GraphTables:
    """A whole graph: a DataFrame per node label and edge type, with the columns of `NODE_COLUMNS`/`EDGE_COLUMNS`.

    Undirected edges (SIMILAR_TO, RELATED_TO) occur once, with source < target; there are no self-loops. The direction
    of each relation is in `statements` (`Statement`). `vectors` holds the embeddings of a node label, a row per row of
    its table; they are not part of the fingerprint, since they follow from the content and the embedder, which the
    build key names.
    """

    nodes: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    edges: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Rows per node label and per edge type."""
        return {k: len(v) for k, v in self.nodes.items()}, {k: len(v) for k, v in self.edges.items()}

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `Tables.names`."""
        return list(self.nodes), list(self.edges)

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """See `Tables.parts`; one part."""
        yield self.nodes[name] if name in NODE_COLUMNS else self.edges[name]

    def vector_parts(self) -> Iterator[VectorPart]:
        """See `Tables.vector_parts`; one part per label."""
        for label, vectors in self.vectors.items():
            yield label, self.nodes[label]["id"].tolist(), vectors


DIRECTED, SYMMETRIC = "->", "<->"
INVERSE = "inverse of"
_RULES = frozenset(RULE_RELATIONS)


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


def encoded(statements: Iterable[Statement]) -> list[str]:
    """Encode statements as an edge's `statements`: strongest first, ties by subject, type, object."""
    ordered = sorted(
        statements,
        key=lambda statement: (
            -statement.weight,
            statement.subject,
            statement.type,
            statement.object,
            statement.description,
        ),
    )
    return [
        json.dumps(
            {
                "subject": statement.subject,
                "type": statement.type,
                "object": statement.object,
                "description": statement.description,
                "weight": statement.weight,
            },
            ensure_ascii=False,
        )
        for statement in ordered
    ]


def statements_of(
    source: str, target: str, strength: float, types: Sequence[str], description: str, texts: Sequence[str] | None
) -> list[Statement]:
    """The statements of an edge from `source` to `target`, strongest first.

    An edge without statements of its own is symmetric if its types are those of rules. Any other comes from an external
    graph, and states its types in the direction of the edge.
    """
    known = _decoded(texts or ())
    if known:
        return known
    directed = not types or not _RULES.issuperset(types)
    weight = round(10.0 * strength, 6)
    return [Statement(source, ", ".join(sorted(types)), target, description or "", weight, directed)]


def _decoded(texts: Sequence[str]) -> list[Statement]:
    """Decode the texts that are statements; in an external graph the property may hold anything."""
    statements = []
    for text in texts:
        try:
            fields = json.loads(text)
            statements.append(
                Statement(
                    fields["subject"], fields["type"], fields["object"], fields["description"], float(fields["weight"])
                )
            )
        except (ValueError, TypeError, KeyError):
            continue
    return statements
