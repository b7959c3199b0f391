"""Entities for a question and synonyms for an entity: two seams, each with a form that needs no language model.

A language model takes a seam's place when it is put into `Index.shared` under the seam's key. Whatever fills a seam is
charged to the counters it is given, and answers for a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index.index import Batch, Index
from hopbench.retrieval.question.linking import Linker
from hopbench.retrieval.search.exact import cosines, dense_top
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.types import Counters

BLOCK = 64  # questions compared with all names at once: bounds the memory
QUESTION_ENTITIES, SYNONYMS = "question_entities", "synonyms"
MODEL = "question_model"  # beside them: the name of the language model that fills the seams


class QuestionEntities(Protocol):
    """Finds what a question speaks of (document 4, stage 1)."""

    def __call__(self, batch: Batch, counters: Counters, reader: Linker) -> list[list[str]]:
        """Per question the ids of graph entities, each once, by importance or mention; `reader` resolves names."""
        ...


class Synonyms(Protocol):
    """Proposes other names for entities (document 4, stage 3); the caller checks them."""

    def __call__(
        self, batch: Batch, counters: Counters, reader: Linker, wanted: Sequence[tuple[int, str]], limit: int
    ) -> list[list[str]]:
        """For each (question's number in the batch, entity id) at most `limit` names, best first."""
        ...


def question_entities(batch: Batch) -> QuestionEntities:
    """What fills the seam of this index: the surface extractor unless a language model was put there."""
    return batch.index.shared.get(QUESTION_ENTITIES, surface_entities)  # type: ignore[no-any-return]


def synonyms(batch: Batch) -> Synonyms:
    """What fills the seam of this index: the nearest entity names unless a language model was put there."""
    return batch.index.shared.get(SYNONYMS, nearest_names)  # type: ignore[no-any-return]


def surface_entities(batch: Batch, counters: Counters, reader: Linker) -> list[list[str]]:
    """The names of the graph that stand in each question, left to right, each entity once."""
    return [list(dict.fromkeys(link.entity for link in reader.links(one.text))) for one in batch.questions]


def nearest_names(
    batch: Batch, counters: Counters, reader: Linker, wanted: Sequence[tuple[int, str]], limit: int
) -> list[list[str]]:
    """The entity names whose embeddings are nearest to each entity's, its own left out."""
    known = name_vectors(batch.index, reader, counters)
    entities = sorted({entity for _, entity in wanted})
    rows = [known.row_of[entity] for entity in entities]
    nearest = dict(zip(entities, known.nearest(known.vectors[rows], limit, skip=rows), strict=True))
    return [[known.names[row] for row in nearest[entity]] for _, entity in wanted]


@dataclass(frozen=True, eq=False)
class NameVectors:
    """Embeddings of all entity names: `vectors` is (m, d), a row per entity, entities sorted by id."""

    entities: Sequence[str]
    names: Sequence[str]
    vectors: Vectors

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Entity id → row."""
        return {entity: row for row, entity in enumerate(self.entities)}

    def cosines(self, vector: Vectors, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of some rows with a vector of shape (d,)."""
        return cosines(self.vectors, rows, vector)

    def nearest(self, vectors: Vectors, limit: int, minimum: float = -1.0, skip: Sequence[int] = ()) -> list[list[int]]:
        """For each vector, shape (k, d), the rows of the `limit` nearest names, best first, ties to the smaller id.

        Only cosines of at least `minimum` count, and never the row that `skip` names for the vector.
        """
        found: list[list[int]] = []
        for begin in range(0, len(vectors), BLOCK):
            near = dense_top(vectors[begin : begin + BLOCK], self.vectors, limit + bool(skip))
            for number, best in enumerate(near, begin):
                values = zip(best.rows.tolist(), best.scores.tolist(), strict=True)
                passing = [row for row, value in values if value >= minimum and (not skip or row != skip[number])]
                found.append(passing[:limit])
        return found


def name_vectors(index: Index, names: Linker, counters: Counters) -> NameVectors:
    """The embeddings of the graph's entity names, computed once per index: the stage "name embedding" of who did it."""
    if "name_vectors" not in index.shared:
        entities = sorted(names.name_of)
        spelled = [names.name_of[entity] for entity in entities]
        with stage(counters, "name embedding"):
            index.shared["name_vectors"] = NameVectors(entities, spelled, index.embed(spelled))
    return index.shared["name_vectors"]  # type: ignore[no-any-return]
