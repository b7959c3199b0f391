"""What is stated of the entities on a path, each relation the way round that it was stated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hopbench.retrieval.context import Relationship, relation_words
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO, RULE_RELATIONS
from hopbench.retrieval.graph.statements import statements_of
from hopbench.retrieval.index import Index
from hopbench.retrieval.types import Step

MOST = 3  # relations told of one pair, strongest first
Pair = tuple[str, str]


def pairs_of(path: Iterable[Step]) -> list[Pair]:
    """The entities that each RELATED_TO step joins, sorted, each pair once."""
    joined = (sorted((step.source, step.target)) for step in path if step.edge == RELATED_TO)
    return list(dict.fromkeys((first, second) for first, second in joined))


def stated(index: Index, pairs: Iterable[Pair], name: Callable[[str], str]) -> Mapping[Pair, Sequence[str]]:
    """`Auth Service -> OAuth Provider: "depends_on" (strength: 8)` for each of some sorted pairs of entities.

    Pairs of which nothing is stated are left out: names that rules found together have no direction to tell.
    """
    wanted = [{"id": first, "other_id": second} for first, second in sorted(set(pairs))]
    if not wanted:
        return {}
    found: dict[Pair, dict[object, Relationship]] = {}
    for record in index.store.read(cypher.STATED, pairs=wanted, usual=list(RULE_RELATIONS)):
        pair = record["source"], record["target"]
        first, second = pair if record["forward"] else pair[::-1]
        said = record["types"] or (), record["description"] or ""
        for one in statements_of(first, second, record["weight"], *said, record["statements"]):
            if one.directed:
                ends = name(one.subject), name(one.object)
                told = Relationship(*ends, one.type, one.description, round(one.weight, 1))
                found.setdefault(pair, {}).setdefault(one.key, told)
    return {pair: [relation_words(one) for one in _strongest(told.values())] for pair, told in found.items()}


def _strongest(told: Iterable[Relationship]) -> list[Relationship]:
    ordered = sorted(told, key=lambda one: (-one.weight, one.source, one.type, one.target, one.description))
    return ordered[:MOST]
