"""Joins the relationships of a pair of nodes to one edge, as HopBench's own graphs have it.

The rule is that of HopBench's builder for several triples about a pair (`hopbench.retrieval.graph.extract.triples`):
the highest strength, all types and tags, all wording, and each relation as a statement in its own direction. Of
mentions, too, the highest weight and count: a mention of unknown count counts 1, however often it stands. Undirected
edges (RELATED_TO, SIMILAR_TO) from a to b and from b to a are one. An edge of a node to itself is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hopbench.retrieval.graph.schema import DOCUMENT, EDGE_ENDS, LIST_COLUMNS
from hopbench.retrieval.graph.statements import Statement, encoded, statements_of
from hopbench.retrieval.graph.stores.base import Record

WORDING = ("types", "description", "statements")


class Joined(NamedTuple):
    """Edges, one a pair; how many relationships were `merged` into those of others, and how many `loops` left out."""

    edges: list[Record]
    merged: int
    loops: int


def joined_edges(kind: str, edges: Sequence[Record]) -> Joined:
    """The edges of a type, records with `source`, `target` and some columns of `schema`."""
    undirected = len(set(EDGE_ENDS[kind])) == 1
    by_pair: dict[tuple[str, str], list[Record]] = {}
    for edge in edges:
        ends = edge["source"], edge["target"]
        by_pair.setdefault((min(ends), max(ends)) if undirected else ends, []).append(edge)
    of_pairs = [same for ends, same in by_pair.items() if not undirected or ends[0] != ends[1]]
    kept = sum(map(len, of_pairs))
    return Joined([_joined(same) for same in of_pairs], kept - len(of_pairs), len(edges) - kept)


def joined_lists(record: Record) -> Record:
    """A record of parallel lists about a whole graph with its edges joined; a chunk's title stands once."""
    kind = record["kind"]
    if kind in EDGE_ENDS:
        columns = [name for name in record if name != "kind"]
        rows = zip(*(record[name] for name in columns), strict=True)
        edges = joined_edges(kind, [dict(zip(columns, row, strict=True)) for row in rows]).edges
        return {"kind": kind, **{name: [edge[name] for edge in edges] for name in columns}}
    if kind == DOCUMENT:
        titles = list(dict.fromkeys(zip(record["id"], record["name"], strict=True)))
        return {**record, "id": [chunk for chunk, _ in titles], "name": [title for _, title in titles]}
    return record


def joined_statements(record: Record) -> Record:
    """A record of `cypher.STRONGEST_RELATIONS` whose `statements` are lists of what each relationship says."""
    rows = []
    for target, strength, parts in zip(record["target"], record["weight"], record["statements"], strict=True):
        ends = {True: (record["id"], target), False: (target, record["id"])}
        said = [dict(part, **dict(zip(("source", "target"), ends[part["forward"]], strict=True))) for part in parts]
        rows.append({**_joined(said), "strength": strength})
    forward = [row["source"] == record["id"] for row in rows]
    return {**record, **{name: [row[name] for row in rows] for name in WORDING}, "forward": forward}


def _joined(same: Sequence[Record]) -> Record:
    """One edge for those of a pair: where all say the same in one direction, as they say it."""
    if len(same) == 1:
        return same[0]
    row = {name: _value(name, [edge[name] for edge in same]) for name in same[0]}
    ways = {(edge["source"], edge["target"]) for edge in same}
    row["source"], row["target"] = ways.pop() if len(ways) == 1 else sorted((same[0]["source"], same[0]["target"]))
    if "statements" in row:
        alike = len({_said(edge) for edge in same}) == 1  # as in a graph that was loaded twice
        row["statements"] = same[0]["statements"] if alike else _statements(same)
    return row


def _said(edge: Record) -> tuple[object, ...]:
    return edge["source"], *(str(edge[name]) for name in WORDING)


def _value(name: str, values: list[Any]) -> Any:
    if name in LIST_COLUMNS:
        return sorted({one for value in values for one in value})
    if name == "description":
        return "; ".join(sorted({value for value in values if value}))
    return max(values)


def _statements(same: Sequence[Record]) -> list[str]:
    """What is stated in a direction, each statement with its highest weight; nothing of those without any wording."""
    found: dict[object, Statement] = {}
    for edge in (edge for edge in same if any(edge[name] for name in WORDING)):
        ends = edge["source"], edge["target"], edge["strength"]
        for statement in statements_of(*ends, edge["types"], edge["description"], edge["statements"]):
            known = found.get(statement.key)
            if statement.directed and (known is None or statement.weight > known.weight):
                found[statement.key] = statement
    return encoded(found.values())
