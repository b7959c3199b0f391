"""The agreement of an extractor's graph with reference triples of the same corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hopbench.retrieval.graph.schema import ENTITY, RELATED_TO, GraphTables, entity_id
from hopbench.retrieval.text import name_key
from hopbench.retrieval.types import Triple

Pair = tuple[str, str]


@dataclass(frozen=True)
class Overlap:
    """Counts of predicted and expected items and of those in both. A share of nothing is None."""

    predicted: int
    expected: int
    common: int

    @property
    def precision(self) -> float | None:
        """Share of the predicted items that are expected."""
        return self.common / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """Share of the expected items that were predicted."""
        return self.common / self.expected if self.expected else None


@dataclass(frozen=True)
class Agreement:
    """A graph against reference triples: its entities, and its related pairs of entities in any direction.

    The wording of relations is not compared: two readers rarely choose the same.
    """

    entities: Overlap
    relations: Overlap


def agreement(graph: GraphTables, reference: Sequence[Triple]) -> Agreement:
    """Compare RELATED_TO with the triples; names are equal by their words, or as aliases in the graph.

    Only entities that some relation names are compared: titles are entities of every graph.
    """
    known = _known_names(graph)
    expected = {_pair(known, triple.subject, triple.object) for triple in reference}
    edges = graph.edges[RELATED_TO]
    predicted = set(zip(edges["source"], edges["target"], strict=True))
    expected = {pair for pair in expected if pair[0] != pair[1]}
    return Agreement(_overlap(_ends(predicted), _ends(expected)), _overlap(predicted, expected))


def _known_names(graph: GraphTables) -> dict[str, str]:
    """Entity ids by the ids that their aliases would have."""
    nodes = graph.nodes[ENTITY]
    aliases = {
        entity_id(name_key(alias)): entity
        for entity, names in zip(nodes["id"], nodes["aliases"], strict=True)
        for alias in names
    }
    return aliases | {entity: entity for entity in nodes["id"]}


def _pair(known: dict[str, str], subject: str, thing: str) -> Pair:
    ids = [entity_id(name_key(name)) for name in (subject, thing)]
    first, second = sorted(known.get(entity, entity) for entity in ids)
    return first, second


def _ends(pairs: Iterable[Pair]) -> set[str]:
    return {end for pair in pairs for end in pair}


def _overlap(predicted: set[Pair] | set[str], expected: set[Pair] | set[str]) -> Overlap:
    return Overlap(len(predicted), len(expected), len(predicted & expected))
