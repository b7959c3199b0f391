"""A question's entities, their synonyms and its keywords, with or without a language model.

Each function asks the index's service (`hopbench.retrieval.index.services`) where there is one, else it reads the
question against the graph's names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Asked, Batch, Index, Keywords, Linker, nearest_rows, spread
from hopbench.retrieval.search.cell_search import SAMPLE
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.support.text_columns import Texts
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.types import Counters


def question_entities(batch: Batch, counters: Counters, linker: Linker) -> Sequence[Sequence[str]]:
    """Per question the ids of its entities, each once: by the index's service, else by matching names in its text."""
    service = batch.index.services.question_entities
    if service is not None:
        return service(batch.questions, counters, linker)
    return [list(dict.fromkeys(link.entity for link in links)) for links in batch.links(linker)]


def question_keywords(batch: Batch, counters: Counters, linker: Linker) -> Sequence[Keywords]:
    """Each question's keywords: by the index's service, else its own entities, and its text for both levels."""
    service = batch.index.services.keywords
    if service is not None:
        return service(batch.questions, counters, linker)
    entities = question_entities(batch, counters, linker)
    return [Keywords(ids, one.text, one.text) for ids, one in zip(entities, batch.questions, strict=True)]


def synonyms(
    batch: Batch, counters: Counters, linker: Linker, wanted: Sequence[tuple[int, str]], limit: int
) -> Sequence[Sequence[str]]:
    """For each (question's index, entity id) at most `limit` names: by the index's service, else the nearest names."""
    service = batch.index.services.synonyms
    if service is not None:
        return service(counters, linker, wanted, limit)
    return nearest_names(batch, counters, linker, wanted, limit)


def nearest_names(
    batch: Batch, counters: Counters, linker: Linker, wanted: Sequence[tuple[int, str]], limit: int
) -> list[list[str]]:
    """For each entity the names whose embeddings are nearest to its own name's."""
    known = name_vectors(batch.index, linker, counters)
    entities = sorted({entity for _, entity in wanted})
    rows = [known.row_of[entity] for entity in entities]
    nearest = dict(zip(entities, known.nearest(batch.index, known.vectors[rows], limit, skip=rows), strict=True))
    return [[known.names[row] for row in nearest[entity]] for _, entity in wanted]


@dataclass(frozen=True, eq=False)
class NameVectors:
    """Embeddings of all entity names: `vectors` is (m, d), a row per entity, entities sorted by id.

    `row_of` is entity id → row.
    """

    entities: Sequence[str] | Texts
    names: Sequence[str] | Texts
    row_of: Mapping[str, int]
    vectors: Vectors

    def cosines(self, vector: Vectors, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of some rows with a vector of shape (d,)."""
        return cosines(self.vectors, rows, vector)

    def nearest(
        self, index: Index, vectors: Vectors, limit: int, minimum: float = -1.0, skip: Sequence[int] = ()
    ) -> list[list[int]]:
        """For each vector, shape (k, d), the rows of the `limit` nearest names, best first, ties to the smaller id.

        Only cosines of at least `minimum` count, and never the row that `skip` names for the vector.
        """

        def asking() -> Asked:  # names ask for their like, and questions are texts
            return Asked(np.concatenate([spread(each, SAMPLE // 2) for each in (self.vectors, index.vectors)]))

        nearest: list[list[int]] = []
        found = nearest_rows(index, "entity names", self.vectors, asking, Asked(vectors), limit + bool(skip))
        for number, best in enumerate(found):
            values = zip(best.rows.tolist(), best.scores.tolist(), strict=True)
            passing = [row for row, value in values if value >= minimum and (not skip or row != skip[number])]
            nearest.append(passing[:limit])
        return nearest


def name_vectors(index: Index, linker: Linker, counters: Counters) -> NameVectors:
    """The embeddings of the graph's entity names, computed once per index; whoever does it has the stage's seconds."""

    def embedded() -> NameVectors:
        def computed() -> Vectors:
            return index.embed([*linker.names])

        place = index.kept_of_graph()
        with stage(counters, "name embedding"):
            vectors = computed() if place is None else place[0].names(place[1], computed)
            return NameVectors(linker.entities, linker.names, linker.row_of, vectors)

    return index.memo.get("name vectors", embedded)
