"""Relations stated by triples, with their wording; relations guessed by rules are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RULE_RELATIONS
from hopbench.retrieval.index import Arrays, Batch
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, Words
from hopbench.retrieval.text import tokens, units
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Counters

VERSION = "relations-2"  # of what is kept in files
NO_RELATIONS: Mapping[str, Any] = {"source": (), "target": (), "types": (), "weight": ()}


@dataclass(frozen=True, eq=False)
class Relations:
    """k relations between m entities, each from both of its ends, sorted by the first.

    `of_entity` (m + 1,) are offsets of each entity's relations; `other` (k,) is the far end, `strength` (k,) the
    triple's confidence. `word_start` (k + 1,) are offsets into `wording`: the numbers of the relation's words.
    """

    of_entity: Numbers
    other: Numbers
    strength: Floats
    word_start: Numbers
    wording: Numbers

    @classmethod
    def read(cls, record: Mapping[str, Any], graph: Adjacency, words: Words) -> Relations:
        """The relations of a store's record; words that no chunk has are left out."""
        rows, row_of = [], {entity: row for row, entity in enumerate(graph.entities)}
        columns = (record[name] for name in ("source", "target", "types", "weight"))
        for source, target, types, strength in zip(*columns, strict=True):
            stated = [kind for kind in types if kind not in RULE_RELATIONS]
            spelled = {unit for kind in stated for word in tokens(kind) for unit in units(word.folded)}
            known = sorted(words.vocabulary[word] for word in spelled if word in words.vocabulary)
            ends = row_of[source], row_of[target]
            rows += [(first, second, strength, known) for first, second in (ends, ends[::-1])]
        rows.sort(key=lambda row: row[:2])
        first = np.array([row[0] for row in rows], np.int64)
        return cls(
            np.searchsorted(first, np.arange(len(graph.entities) + 1)),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.float64),
            np.cumsum([0, *(len(row[3]) for row in rows)]),
            np.array([number for row in rows for number in row[3]], np.int64),
        )


def relations(batch: Batch, counters: Counters, graph: Adjacency, words: Words) -> Relations | None:
    """The relations that triples state, None without any; read once per index, charged to each batch."""

    def read() -> Relations | None:
        found = Relations(**batch.index.graph_arrays("hoprank-relations", VERSION, arrays))
        return found if len(found.other) else None

    def arrays() -> Arrays:
        (record,) = batch.index.store.read(cypher.RELATIONS, usual=list(RULE_RELATIONS)) or [NO_RELATIONS]
        return vars(Relations.read(record, graph, words))

    stated = batch.index.memo.get("relations", read)
    counters.round_trips += 1
    counters.rows += len(stated.other) // 2 if stated else 0
    return stated
