"""Mapping of an external Neo4j graph: its labels, types and properties replace HopBench's in each query.

A mapping lists the names that differ:

    namespace: {property: namespace_id, value: team-a}      # left out: the whole database is one graph
    labels: {Entity: base, Chunk: chunk}
    relationships: {RELATED_TO: RELATES_TO, SIMILAR_TO: null}     # null: the graph has none
    properties:
      Chunk: {id: chunk_id, content: text}
      RELATED_TO: {strength: {property: weight, scale: 0.1}}       # stored 1..10

A relation leads from its subject to its object, as the relationship does; its `types` may be a list or one string.
Unlisted names are unchanged, and a node or edge without a property has its neutral value. Several relationships may
share a name, as in a spreading activation graph whose edges are all RELATES: the labels of their ends distinguish them.
Names are validated before they are inserted into a query; the strategies' own queries are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hopbench.retrieval.graph.schema import COLUMNS, EDGE_COLUMNS, EDGE_TYPES, LIST_COLUMNS, NODE_COLUMNS, WEIGHT_OF
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import read_yaml

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
ABSENT = "HOPBENCH_ABSENT"  # a type that no graph has
NEUTRAL: Mapping[str, str] = {
    **{"text": "''", "title": "''", "index": "0", "type": "'entity'", "description": "''", "count": "1"},
    **dict.fromkeys(WEIGHT_OF.values(), "1.0"),
    **dict.fromkeys(LIST_COLUMNS, "[]"),
}
_NODE = re.compile(r"\((\w*):(\w+)(?:\s*\{(\w+):)?")
_BARE = re.compile(r"[->]\((\w+)\)")
_EDGE = re.compile(r"\[(\w*):([A-Z_]+(?:\|[A-Z_]+)*)\]")
_ENDLESS = re.compile(r"-\[\w*:([A-Z_]+)\](->|-)\(\)")
_READ = re.compile(r"\b(\w+)\.(\w+)\b")
_TYPE = re.compile(r"\btype\((\w+)\)")


Property = tuple[str, float]
"""The name of a property in the mapped graph, and the scale: HopBench's value is the stored one times it."""


@dataclass(frozen=True)
class GraphMapping:
    """The graph's names by HopBench's: labels, relationship types (None: absent), and properties by label or type."""

    labels: Mapping[str, str] = field(default_factory=dict)
    relationships: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, Mapping[str, Property]] = field(default_factory=dict)
    namespace_property: str | None = None
    namespace: str = ""

    def __post_init__(self) -> None:
        """Reject names that are unknown, unsafe or ambiguous."""
        for kind, given, known in (
            ("labels", self.labels, NODE_COLUMNS),
            ("relationships", self.relationships, EDGE_COLUMNS),
            ("properties", self.properties, COLUMNS),
        ):
            for name in given:
                if name not in known:
                    raise UnknownNameError(f"name under {kind} of the mapping", name, known)
        used = [*self.labels.values(), *self._types.values(), *filter(None, [self.namespace_property])]
        for owner, columns in self.properties.items():
            for column, (name, _) in columns.items():
                used.append(name)
                if column not in COLUMNS[owner]:
                    raise UnknownNameError(f"property of {owner} in the mapping", column, COLUMNS[owner])
        for name in used:
            if not isinstance(name, str) or not NAME.match(name):
                raise InputError(f"mapping: {name!r} is no name of a label, type or property (letters, digits and _)")
        labels = list(map(self._label, NODE_COLUMNS))
        if len(labels) != len(set(labels)):
            raise InputError(f"mapping: two labels are called the same ({', '.join(labels)}): they must differ")

    @cached_property
    def _types(self) -> Mapping[str, str]:
        return {kind: self.relationships.get(kind, kind) or ABSENT for kind in EDGE_COLUMNS}

    def _label(self, label: str) -> str:
        return self.labels.get(label, label)

    def _shared(self, kind: str) -> bool:
        return self._types[kind] != ABSENT and list(self._types.values()).count(self._types[kind]) > 1

    def rewrite(self, query: str) -> str:
        """Rewrite a query of `cypher` with this graph's names."""
        return "UNION ALL".join(self._branch(branch) for branch in query.split("UNION ALL"))

    def _branch(self, text: str) -> str:
        owners: dict[str, tuple[str, ...]] = {name: (label,) for name, label, _ in _NODE.findall(text) if name}
        for name in _BARE.findall(text):
            owners.setdefault(name, tuple(NODE_COLUMNS))
        edges = {name: tuple(types.split("|")) for name, types in _EDGE.findall(text) if name}
        owners |= edges
        text = _ENDLESS.sub(self._end, text)
        text = _TYPE.sub(lambda m: self._type_case(m[1], edges[m[1]]) if m[1] in edges else m[0], text)
        text = _READ.sub(lambda m: self._value(m[1], owners[m[1]], m[2]) if m[1] in owners else m[0], text)
        text = _NODE.sub(self._node, text)
        return _EDGE.sub(self._alternatives, text)

    def _alternatives(self, match: re.Match[str]) -> str:
        names = dict.fromkeys(self._types[kind] for kind in match[2].split("|"))
        return f"[{match[1]}:{'|'.join(f'`{name}`' for name in names)}]"

    def _end(self, match: re.Match[str]) -> str:
        """Add the label of an edge's far end if its type alone does not identify the edge type."""
        return f"{match[0][:-1]}:{EDGE_TYPES[match[1]].target})" if self._shared(match[1]) else match[0]

    def _node(self, match: re.Match[str]) -> str:
        name, label, column = match.groups()
        key = "" if column is None else f" {{`{self._column(label, column)[0]}`:"
        return f"({name}:`{self._label(label)}`{key}"

    def _column(self, owner: str, column: str) -> Property:
        fallback = "id" if column == "passage_id" else column
        columns = self.properties.get(owner, {})
        return columns.get(column) or columns.get(fallback) or (fallback, 1.0)

    def _value(self, variable: str, owners: tuple[str, ...], column: str) -> str:
        """The expression for `variable.column`, where the variable may be any of these labels or types."""
        if column == "namespace":
            return f"{variable}.`{self.namespace_property}`" if self.namespace_property else "$namespace"
        values = {owner: self._one(variable, owner, column) for owner in owners if column in COLUMNS.get(owner, ())}
        shared = any(owner in EDGE_TYPES and self._shared(owner) for owner in values)
        if len(set(values.values())) == 1 and len(values) == len(owners) and not shared:
            return next(iter(values.values()))
        cases = [
            f"WHEN {f'{variable}:`{self._label(owner)}`' if owner in NODE_COLUMNS else self._is(variable, owner)} "
            f"THEN {expression}"
            for owner, expression in values.items()
        ]
        return f"CASE {' '.join(cases)} END" if cases else "null"

    def _is(self, variable: str, kind: str) -> str:
        called = f"type({variable}) = '{self._types[kind]}'"
        if not self._shared(kind):
            return called
        source, target = map(self._label, EDGE_TYPES[kind][:2])
        return f"{called} AND startNode({variable}):`{source}` AND endNode({variable}):`{target}`"

    def _one(self, variable: str, owner: str, column: str) -> str:
        name, scale = self._column(owner, column)
        value = f"{variable}.`{name}`" + (f" * {scale!r}" if scale != 1.0 else "")
        value = f"coalesce({value}, {NEUTRAL[column]})" if column in NEUTRAL else value
        return f"([] + {value})" if column == "types" else value  # a single string becomes a list of one

    def _type_case(self, variable: str, types: tuple[str, ...]) -> str:
        cases = " ".join(f"WHEN {self._is(variable, kind)} THEN '{kind}'" for kind in types)
        return f"CASE {cases} END"


def load_mapping(path: Path) -> GraphMapping:
    """Read the file of `--mapping`: YAML with labels, relationships, properties and namespace (docs/neo4j.md).

    Raises InputError if the file is not such a mapping.
    """
    content = read_yaml(path, f"--mapping {path}")
    known = ("labels", "relationships", "properties", "namespace")
    if not isinstance(content, dict) or any(not isinstance(part or {}, dict) for part in content.values()):
        raise InputError(f"--mapping {path}: write the parts {', '.join(known)}, each with names by ours")
    for part in content:
        if part not in known:
            raise UnknownNameError(f"part of --mapping {path}", str(part), known)
    space = content.get("namespace") or {}
    properties = {
        owner: {column: _property(given, f"{owner}.{column}") for column, given in (columns or {}).items()}
        for owner, columns in (content.get("properties") or {}).items()
    }
    return GraphMapping(
        content.get("labels") or {},
        content.get("relationships") or {},
        properties,
        space.get("property"),
        str(space.get("value", "")),
    )


def _property(given: object, where: str) -> Property:
    if isinstance(given, str):
        return given, 1.0
    if isinstance(given, dict) and set(given) <= {"property", "scale"} and isinstance(given.get("property"), str):
        scale = given.get("scale", 1.0)
        if isinstance(scale, (int, float)) and not isinstance(scale, bool) and 0 < scale <= 1e6:
            return given["property"], float(scale)
    raise InputError(f"mapping: {where} is {given!r}; write a name, or {{property: name, scale: number above 0}}")
