"""The linking step made visible: which words of a question mean which entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.linking import Names, linker
from hopbench.retrieval.traversal.adjacency import mentioning
from hopbench.retrieval.types import Counters

__all__ = ["Linked", "Names", "linked_entities"]


@dataclass(frozen=True, slots=True)
class Linked:
    """Words of the question and the entity they mean; `chunks` is how many chunks mention it, `weight` the linker's."""

    words: str
    entity: str
    name: str
    weight: float
    chunks: int


def linked_entities(batch: Batch) -> Sequence[Linked]:
    """The entities that the surface linker recognises in the batch's one question, left to right."""
    (question,) = batch.questions
    reader = linker(batch, Counters())
    words, links = reader.tokens(question.text), reader.links(question.text)
    return [
        Linked(
            " ".join(word.text for word in words[link.start : link.end]),
            link.entity,
            reader.name_of.get(link.entity, link.entity),
            link.weight,
            chunks,
        )
        for link, chunks in zip(links, mentioning(batch, [link.entity for link in links]), strict=True)
    ]
