"""Queries for graphs that HopBench did not build, where several relationships may join a pair, or a node to itself.

In HopBench's own graphs an edge stands once. Here each hop joins the relationships of a pair to one before anything is
compared, counted, ordered or cut off: it has the highest strength, weight, similarity and count, all types and tags,
and as `statements` what each relationship says (`hopbench.retrieval.graph.stores.mapped.joined` reads it).
"""

from __future__ import annotations

import re

from hopbench.retrieval.graph.schema import EDGE_ENDS, LIST_COLUMNS

# A hop from a node that is known, by its id or from before; queries over the whole graph have none.
_HOP = re.compile(
    r"MATCH \((?P<near>\w+)(?P<by>:\w+ \{id: (?P<id>\w+)(?:\.\w+)?\})?\)"
    r"(?P<begin><?-)\[(?P<edge>\w+):(?P<types>[A-Z_|]+)\](?P<end>->?)\((?P<far>\w+)(?P<label>:\w+)?\)\s+WHERE "
)
_COUNTED = re.compile(
    r"(?P<how>COUNT|EXISTS) \{\s*\((?P<near>\w+)\)-\[(?P<edge>\w*):(?P<types>[A-Z_|]+)\](?P<end>->?)\(\)"
    r"(?:\s+WHERE (?P<condition>[^}]*?))?\s*\}"
)


def one_each(query: str) -> str:
    """A hop or activation query that takes the relationships of a pair for one, and those to a node itself for none."""
    return "UNION ALL".join(_branch(branch) for branch in query.split("UNION ALL"))


def _branch(text: str) -> str:
    for hop in _HOP.finditer(text):
        name = re.escape(hop["edge"])
        text = re.sub(rf"\btype\({name}\)", f"{hop['edge']}.kind", text)
        text = re.sub(rf"\bstartNode\({name}\) = {hop['near']}\b", f"{hop['edge']}.forward", text)
    joined = _HOP.sub(lambda hop: _joined(hop, text), text)
    return _COUNTED.sub(_neighbours, joined)


def _neighbours(match: re.Match[str]) -> str:
    """Neighbours in place of relationships."""
    near, types = match["near"], match["types"]
    label = "" if "|" in types else f":{EDGE_ENDS[types][1]}"
    edge = match["edge"] and f"any_{match['edge']}"
    condition = f" AND ({match['condition']})" if match["condition"] else ""
    condition = re.sub(rf"\b{match['edge']}\.", f"{edge}.", condition) if edge else condition
    pattern = f"({near})-[{edge}:{types}]{match['end']}(other{label})"
    returned = " RETURN DISTINCT other" if match["how"] == "COUNT" else ""
    return f"{match['how']} {{ MATCH {pattern} WHERE {near} <> other{condition}{returned} }}"


def _joined(hop: re.Match[str], text: str) -> str:
    """The hop with a map in place of the relationship, which has the columns that the query reads of it."""
    near, far, edge = hop["near"], hop["far"], hop["edge"]
    each = f"each_{edge}"
    columns = dict.fromkeys(re.findall(rf"\b{edge}\.(\w+)", text))
    values = ", ".join(f"{column}: {_value(column, each, near)}" for column in columns)
    nodes = f"{near}, {far}" if hop["by"] else far
    pattern = f"({near}{hop['by'] or ''}){hop['begin']}[{each}:{hop['types']}]{hop['end']}({far}{hop['label'] or ''})"
    returned = f"RETURN {nodes}, {{{values}}} AS {edge}" if columns else f"RETURN DISTINCT {nodes}"
    return f"CALL ({hop['id'] or near}) {{ MATCH {pattern} WHERE {near} <> {far}\n    {returned} }}\n  WITH * WHERE "


def _value(column: str, each: str, near: str) -> str:
    if column == "kind":
        return f"max(type({each}))"
    if column == "forward":
        return f"max(startNode({each}) = {near})"
    if column == "statements":
        said = ", ".join(f"{name}: {each}.{name}" for name in ("strength", "types", "description", "statements"))
        return f"collect({{{said}, forward: startNode({each}) = {near}}})"
    if column in LIST_COLUMNS:
        lists = f"collect(coalesce({each}.{column}, []))"
        return f"reduce(all = [], some IN {lists} | all + [name IN some WHERE NOT name IN all])"
    return f"max({each}.{column})"
