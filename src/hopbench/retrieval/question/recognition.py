"""Document 5's query entity recognition: n-grams against entity names, else the names nearest the whole question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch, Link, Linker
from hopbench.retrieval.question.entities import name_vectors
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.types import Counters

MAX_NGRAM = 3


@dataclass(frozen=True, slots=True)
class Recognised:
    """A question's entities, and what recognised them: "ngrams", "names", "embedding" or "nothing"."""

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
    """The entities of each question, longest match first, then the rarest, at most `limit`; and their cards.

    `names_only` takes the longest capitalised names (`linking`) in place of all n-grams. A question in which neither
    stands gets the `nearest` entities whose names have a cosine of at least `minimum` with it.
    """
    reader = linker(batch, counters)
    by = "names" if names_only else "ngrams"
    if names_only:
        matches = [_names(links) for links in batch.links(reader)]
    else:
        matches = [_ngrams(reader, question.text, max_ngram) for question in batch.questions]
    unnamed = [number for number, words in enumerate(matches) if not words]
    similar = dict(zip(unnamed, _similar(batch, counters, unnamed, reader, nearest, minimum), strict=True))
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
    """Entity → words of the longest run that is its name or alias; stop words alone ("it") are no name."""
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


def _similar(
    batch: Batch, counters: Counters, numbers: Sequence[int], reader: Linker, nearest: int, minimum: float
) -> list[list[str]]:
    """For each question the entities whose names are nearest to its whole text, best first."""
    if not numbers or not nearest:
        return [[] for _ in numbers]
    known = name_vectors(batch.index, reader, counters)
    found = known.nearest(batch.index, batch.vectors[numbers], nearest, minimum)
    return [[known.entities[row] for row in rows] for rows in found]


def read_cards(batch: Batch, counters: Counters, reader: Linker, entities: Sequence[str]) -> dict[str, Card]:
    """The cards of entities, in one round trip."""
    if not entities:
        return {}
    return {
        record["id"]: Card(
            reader.name_of[record["id"]], record["type"] or "", record["description"] or "", record["frequency"]
        )
        for record in batch.read(counters, cypher.ENTITY_CARDS, ids=entities)
    }
