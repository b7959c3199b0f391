"""The graph's nodes and edges as tables, which extractors return and stores write (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # .3 s, and strategies need no table
    import pandas as pd

DOCUMENT, CHUNK, ENTITY = "Document", "Chunk", "Entity"
CONTAINS, MENTIONED_IN, SIMILAR_TO, RELATED_TO = "CONTAINS", "MENTIONED_IN", "SIMILAR_TO", "RELATED_TO"
RULE_RELATIONS = ("stated", "implied", "named_together")  # the types that rules give to RELATED_TO

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
SPARSE_COLUMNS = frozenset({"statements"})  # empty for most edges of a large graph: no store keeps an empty list
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
    """A whole graph, read in parts: what a store writes and a fingerprint is taken of, without holding all of it."""

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

    Undirected edges (SIMILAR_TO, RELATED_TO) stand once, with source < target; there are no self-loops. The direction
    of what is stated of two entities is in `statements` (`hopbench.retrieval.graph.statements`). `vectors` holds the
    embeddings of a node label, a row per row of its table; they are no part of the fingerprint, since they follow from
    the content and the embedder, which the build key names.
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
        """See `Tables.parts`: in one."""
        yield self.nodes[name] if name in NODE_COLUMNS else self.edges[name]

    def vector_parts(self) -> Iterator[VectorPart]:
        """See `Tables.vector_parts`: in one for each label."""
        for label, vectors in self.vectors.items():
            yield label, self.nodes[label]["id"].tolist(), vectors
