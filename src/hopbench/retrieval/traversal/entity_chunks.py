"""Chunks by the entities they mention: document 4's entity→chunk expansion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.support.arithmetic import ln
from hopbench.retrieval.types import Counters

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class EntityMentions(NamedTuple):
    """The mentions of an entity: chunks as index rows, with the weights of the mentions."""

    rows: Ints
    weights: Floats


def read_mentions(batch: Batch, counters: Counters, entities: Sequence[str]) -> dict[str, EntityMentions]:
    """The mentions of each of a batch's entities, in one round trip."""
    if not entities:
        return {}
    mentions = {}
    for record in batch.read(counters, cypher.ENTITY_CHUNKS, ids=list(entities)):
        counters.edges_touched += len(record["target"])
        rows = batch.index.rows([record["target"]])
        mentions[record["id"]] = EntityMentions(rows, np.array(record["weight"], dtype=np.float64))
    return mentions


def inverse_frequency(mentions: EntityMentions, chunks: int) -> float:
    """ln((N + 1)/df), the idf of an entity that df of N chunks mention."""
    return ln((chunks + 1) / max(len(mentions.rows), 1))


@dataclass(frozen=True, slots=True)
class Matches:
    """The chunks that mention a question's entities: index rows, ascending, with values of each.

    `values` is the sum over the distinct entities matched (1 each, as documented), `cosines` the similarity to the
    question. The matched entities of row i are `owners[begins[i]:begins[i + 1]]`, numbers into the question's entities,
    and `weights` those of their mentions.
    """

    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Floats = field(default_factory=lambda: np.zeros(0))
    cosines: Floats = field(default_factory=lambda: np.zeros(0))
    begins: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    owners: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    weights: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def scores(self) -> Floats:
        """Value + (1 + cosine)/4. Below half a count, so chunks are ranked by matched entities, ties by cosine."""
        return self.values + (1.0 + self.cosines) / 4.0

    def matched(self, place: int) -> list[tuple[int, float]]:
        """(number of the entity, weight of its mention) for what the chunk at a place mentions, ascending."""
        part = slice(self.begins[place], self.begins[place + 1])
        return list(zip(self.owners[part].tolist(), self.weights[part].tolist(), strict=True))


def matches(
    batch: Batch, q: int, entities: Sequence[str], values: Sequence[float], mentions: Mapping[str, EntityMentions]
) -> Matches:
    """Sum for each chunk the values of those distinct entities of a question that it mentions."""
    places = [mentions[entity] for entity in entities]
    if not any(len(place.rows) for place in places):
        return Matches()
    sizes = [len(place.rows) for place in places]
    rows, owners = np.concatenate([place.rows for place in places]), np.repeat(np.arange(len(places)), sizes)
    order = np.argsort(rows, kind="stable")  # owners stay ascending within a row
    unique, begins = np.unique(rows[order], return_index=True)
    total = np.add.reduceat(np.asarray(values)[owners[order]], begins)
    near = cosines(batch.index.vectors, unique, batch.vectors[q])
    weights = np.concatenate([place.weights for place in places])[order]
    return Matches(unique, total, near, np.append(begins, len(rows)).astype(np.int64), owners[order], weights)
