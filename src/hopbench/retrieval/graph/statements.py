"""Statements about two entities, each relation in its own direction.

The graph keeps one RELATED_TO edge per unordered pair, since traversals are undirected; its ends are sorted by id and
say nothing of direction. What was stated stands on the edge, in the list property `statements`: a JSON object per
relation, which every engine can hold and a person can read in a query's result. What rules find is co-occurrence, which
has no direction: such an edge has no statements and its types are rule types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hopbench.retrieval.graph.schema import RULE_RELATIONS

DIRECTED, SYMMETRIC = "->", "<->"
INVERSE = "inverse of"
_RULES = frozenset(RULE_RELATIONS)


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation between two entities (ids), as it was stated; `weight` is 0..10, ten times a strength.

    A symmetric one (`directed` is False) holds from both ends.
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
        """Equal for equal statements; a symmetric one is equal whichever end comes first."""
        first, second = self.subject, self.object
        if not self.directed:
            first, second = sorted((first, second))
        return self.directed, first, second, self.type, self.description


def encoded(statements: Iterable[Statement]) -> list[str]:
    """The value of an edge's `statements`: strongest first, ties by subject, type, object."""
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

    An edge without statements of its own is symmetric where rules made it. Any other comes from a graph that HopBench
    did not build, and states its types in the direction in which it was drawn there.
    """
    known = _decoded(texts or ())
    if known:
        return known
    directed = not types or not _RULES.issuperset(types)
    weight = round(10.0 * strength, 6)
    return [Statement(source, ", ".join(sorted(types)), target, description or "", weight, directed)]


def _decoded(texts: Sequence[str]) -> list[Statement]:
    """The texts that are statements: a property of that name in another team's graph may hold anything."""
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
