"""Queries that read a whole graph once: its content, names, wording and adjacency, as parallel lists.

Each consists of matches that start from one node, so that a server can also be queried by ranges of that node's ids
and need not collect millions of values for one answer (`PARTS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hopbench.retrieval.graph.schema import (
    CHUNK,
    EDGE_COLUMNS,
    EDGE_ENDS,
    ENTITY,
    MENTIONED_IN,
    NODE_COLUMNS,
    RELATED_TO,
    SIMILAR_TO,
    WEIGHT_OF,
)


@dataclass(frozen=True)
class Part:
    """A pattern, its entry node (variable and label), and the expressions returned for each match."""

    pattern: str
    node: str
    label: str
    returned: str
    condition: str = ""

    def text(self, ids: str = "", hint: str = "") -> str:
        """The query; `ids` is a condition on the entry node's id, `hint` the index to use."""
        conditions = " AND ".join(filter(None, (f"{self.node}.namespace = $namespace", ids, self.condition)))
        return f"MATCH {self.pattern}{hint} WHERE {conditions}\nRETURN {self.returned}"

    def page(self) -> str:
        """The query for the entry nodes with ids above `$after` and at most `$until`."""
        hint = f" USING INDEX SEEK {self.node}:{self.label}(namespace, id)"
        return self.text(f"{self.node}.id > $after AND {self.node}.id <= $until", hint)


def export_nodes(label: str) -> str:
    """All nodes of a label with the columns of the schema."""
    return _nodes(label).text()


def export_edges(kind: str) -> str:
    """All edges of a type with the ids of their ends and the columns of the schema."""
    return _edges(kind).text()


def _nodes(label: str) -> Part:
    return Part(f"(n:{label})", "n", label, ", ".join(f"n.{name} AS `{name}`" for name in NODE_COLUMNS[label]))


def _edges(kind: str) -> Part:
    columns = (f"r.{name} AS `{name}`" for name in EDGE_COLUMNS[kind][2:])
    return _over(kind, ", ".join(("a.id AS source", "b.id AS target", *columns)))


def _over(kind: str, returned: str, condition: str = "") -> Part:
    """The edges of a type, (a)-[r]->(b)."""
    source, target = EDGE_ENDS[kind]
    same = "a.namespace = b.namespace"
    return Part(f"(a:{source})-[r:{kind}]->(b:{target})", "b", target, returned, f"{same}{condition}")


def _ends(kind: str, more: str, condition: str = "") -> Part:
    return _over(kind, f"'{kind}' AS kind, collect(a.id) AS source, collect(b.id) AS target, {more}", condition)


def _union(parts: tuple[Part, ...]) -> str:
    return "\nUNION ALL\n".join(part.text() for part in parts)


BUILD_RECORD = "MATCH (b:Build) WHERE b.namespace = $namespace RETURN b.record AS record"

_ADJACENCY = tuple(
    _ends(kind, f"collect(r.{WEIGHT_OF[kind]}) AS weight") for kind in (MENTIONED_IN, RELATED_TO, SIMILAR_TO)
)
_NAMES = (
    Part(
        "(e:Entity)",
        "e",
        ENTITY,
        "'Entity' AS kind, collect(e.id) AS id, collect(e.name) AS name, collect(e.type) AS type, "
        "collect(e.aliases) AS aliases",
    ),
    Part(
        "(d:Document)-[:CONTAINS]->(c:Chunk)",
        "c",
        CHUNK,
        "'Document' AS kind, collect(c.id) AS id, collect(d.title) AS name, [] AS type, [] AS aliases",
        "d.namespace = c.namespace",
    ),
)
_RELATIONS = (
    _ends(
        RELATED_TO,
        "collect(r.types) AS types, collect(r.strength) AS weight",
        " AND any(name IN r.types WHERE NOT name IN $usual)",
    ),
)
_DESCRIPTIONS = (
    Part(
        "(e:Entity)",
        "e",
        ENTITY,
        "'Entity' AS kind, collect(e.id) AS source, [] AS target, [] AS types, "
        "collect(coalesce(e.description, '')) AS description",
    ),
    _ends(RELATED_TO, "collect(r.types) AS types, collect(coalesce(r.description, '')) AS description"),
)

# The whole adjacency as parallel lists, a record per edge type: for strategies that walk the graph as a matrix.
ADJACENCY = _union(_ADJACENCY)
# All names of entities and all titles as parallel lists, against which questions are matched.
NAMES = _union(_NAMES)
# Relations with a type not in `$usual`, as parallel lists.
RELATIONS = _union(_RELATIONS)
# The wording of entities (source) and relations (source, target) as parallel lists, which communities are embedded by.
DESCRIPTIONS = _union(_DESCRIPTIONS)

PARTS: Mapping[str, tuple[Part, ...]] = MappingProxyType(
    {
        ADJACENCY: _ADJACENCY,
        NAMES: _NAMES,
        RELATIONS: _RELATIONS,
        DESCRIPTIONS: _DESCRIPTIONS,
        **{export_nodes(label): (_nodes(label),) for label in NODE_COLUMNS},
        **{export_edges(kind): (_edges(kind),) for kind in EDGE_COLUMNS},
    }
)
"""Query over the whole graph → its matches."""
