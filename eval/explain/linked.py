"""The linking step made visible: which words of a question mean which entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.question.node_names import Names
from hopbench.retrieval.text import tokens
from hopbench.retrieval.traversal.adjacency import adjacency
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
    reader, graph = linker(batch, Counters()), adjacency(batch, Counters())
    words = tokens(question.text)
    entities = []
    for link in reader.links(question.text):
        row = graph.entity_row.get(link.entity)
        mention = " ".join(word.text for word in words[link.start : link.end])
        frequency = 0 if row is None else int(graph.frequency[row])
        entities.append(
            Linked(mention, link.entity, reader.name_of.get(link.entity, link.entity), link.weight, frequency)
        )
    return entities
