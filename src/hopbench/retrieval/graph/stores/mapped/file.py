"""The file of `--mapping`: YAML with the parts labels, relationships, properties and namespace (docs/neo4j.md)."""

from __future__ import annotations

from pathlib import Path

from hopbench.retrieval.graph.stores.mapped.mapping import GraphMapping, Property
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.yaml_file import read_yaml


def load_mapping(path: Path) -> GraphMapping:
    """From a YAML file. Raises InputError where it cannot be read as one."""
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
        return Property(given)
    if isinstance(given, dict) and set(given) <= {"property", "scale"} and isinstance(given.get("property"), str):
        scale = given.get("scale", 1.0)
        if isinstance(scale, (int, float)) and not isinstance(scale, bool) and 0 < scale <= 1e6:
            return Property(given["property"], float(scale))
    raise InputError(f"mapping: {where} is {given!r}; write a name, or {{property: name, scale: number above 0}}")
