"""A question's entities, their synonyms and its keywords, with or without a language model.

Each function calls the index's service (`hopbench.retrieval.index.linker`) where there is one, and otherwise matches
the question against the names in the graph. `recognise` is the entity recognition of hybrid GraphRAG: n-grams against
entity names, else the names nearest to the whole question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch, Index, Keywords, Link, Linker, Queries, nearest_rows, spread
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.search.cells import SAMPLE
from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.support.texts import Texts
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.types import Counters


def question_entities(batch: Batch, counters: Counters, linker: Linker) -> Sequence[Sequence[str]]:
    """The distinct entity ids of each question, by the index's service, else by matching names in its text."""
    service = batch.index.services.question_entities
    if service is not None:
        return service(batch.questions, counters, linker)
    return [list(dict.fromkeys(link.entity for link in links)) for links in batch.links(linker)]


def question_keywords(batch: Batch, counters: Counters, linker: Linker) -> Sequence[Keywords]:
    """Each question's keywords, by the index's service, else its entities, and its text for both levels."""
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
    """For each entity the names whose embeddings are nearest to that of its own name."""
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

        def asking() -> Queries:  # queries are names or questions
            return Queries(np.concatenate([spread(each, SAMPLE // 2) for each in (self.vectors, index.vectors)]))

        nearest: list[list[int]] = []
        found = nearest_rows(index, "entity names", self.vectors, asking, Queries(vectors), limit + bool(skip))
        for number, best in enumerate(found):
            values = zip(best.rows.tolist(), best.scores.tolist(), strict=True)
            passing = [row for row, value in values if value >= minimum and (not skip or row != skip[number])]
            nearest.append(passing[:limit])
        return nearest


def name_vectors(index: Index, linker: Linker, counters: Counters) -> NameVectors:
    """The embeddings of the graph's entity names, computed once per index and timed where computed."""

    def computed() -> Vectors:
        return index.embed([*linker.names])

    def embedded() -> NameVectors:
        place = index.kept_of_graph()
        with stage(counters, "name embedding"):
            vectors = computed() if place is None else place[0].names(place[1], computed)
            return NameVectors(linker.entities, linker.names, linker.row_of, vectors)

    return index.memo.get("name vectors", embedded)


MAX_NGRAM = 3


@dataclass(frozen=True, slots=True)
class Recognised:
    """A question's entities, and the method that found them: "ngrams", "names", "embedding" or "nothing"."""

    entities: Sequence[str]
    by: str


@dataclass(frozen=True, slots=True)
class Card:
    """An entity's attributes in the graph; `frequency` is the number of chunks that mention it."""

    name: str
    type: str
    description: str
    frequency: int


def recognise(
    batch: Batch,
    counters: Counters,
    limit: int,
    names_only: bool,
    nearest: int,
    minimum: float,
    max_ngram: int = MAX_NGRAM,
) -> tuple[list[Recognised], dict[str, Card]]:
    """Find at most `limit` entities of each question, longest match first, then the rarest; and their cards.

    `names_only` uses the longest capitalised names (`linking`) instead of all n-grams. A question without a match gets
    the `nearest` entities whose names have a cosine of at least `minimum` with it.
    """
    reader = linker(batch, counters)
    by = "names" if names_only else "ngrams"
    if names_only:
        matches = [_names(links) for links in batch.links(reader)]
    else:
        matches = [_ngrams(reader, question.text, max_ngram) for question in batch.questions]
    unnamed = [number for number, words in enumerate(matches) if not words]
    similar: dict[int, list[str]] = {number: [] for number in unnamed}
    if unnamed and nearest:
        known = name_vectors(batch.index, reader, counters)
        rows = known.nearest(batch.index, batch.vectors[unnamed], nearest, minimum)
        similar = {number: [known.entities[row] for row in own] for number, own in zip(unnamed, rows, strict=True)}
    mentioned = {entity for words in (*matches, *similar.values()) for entity in words}
    cards = read_cards(batch, counters, reader, sorted(mentioned))
    recognised = []
    for number, words in enumerate(matches):
        if words:
            first = sorted(words, key=lambda entity: (-words[entity], cards[entity].frequency, entity))
            recognised.append(Recognised(first[:limit], by))
        else:
            recognised.append(Recognised(similar[number], "embedding" if similar[number] else "nothing"))
    return recognised, cards


def _ngrams(reader: Linker, question: str, longest: int) -> dict[str, int]:
    """Entity → number of words of its longest matching name or alias; stop words alone ("it") do not match."""
    words = [token.folded for token in reader.tokens(question)]
    length_of: dict[str, int] = {}
    for length in range(1, longest + 1):
        for start in range(len(words) - length + 1):
            gram = words[start : start + length]
            entity = None if reader.language.stop.issuperset(gram) else reader.resolve(" ".join(gram))
            if entity is not None:
                length_of[entity] = length
    return length_of


def _names(links: Sequence[Link]) -> dict[str, int]:
    length_of: dict[str, int] = {}
    for link in links:
        length_of[link.entity] = max(length_of.get(link.entity, 0), link.end - link.start)
    return length_of


def read_cards(batch: Batch, counters: Counters, reader: Linker, entities: Sequence[str]) -> dict[str, Card]:
    """Read the cards of entities in one round trip."""
    if not entities:
        return {}
    return {
        record["id"]: Card(
            reader.name_of[record["id"]], record["type"] or "", record["description"] or "", record["frequency"]
        )
        for record in batch.read(counters, cypher.ENTITY_CARDS, ids=entities)
    }
