"""The linking step made visible: which words of a question mean which entity; and readable names for graph nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.text import tokens
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters


@dataclass(frozen=True, slots=True)
class Linked:
    """Words of the question and the entity they mean; `chunks` is how many chunks mention it, `weight` the linker's."""

    words: str
    entity: str
    name: str
    weight: float
    chunks: int


@dataclass(frozen=True)
class Names:
    """Node id → what a person calls it: `[a chunk's title]`, an entity's name; an unknown id stays as it is."""

    index: Index
    entities: Mapping[str, str]

    @classmethod
    def read(cls, index: Index) -> Names:
        """The names of an index's graph."""
        return cls(index, linker(Batch(index, []), Counters()).name_of)

    def __call__(self, node: str) -> str:
        """The readable name of a chunk or entity."""
        row = self.index.row_of.get(node)
        if row is None:
            return self.entities.get(node, node)
        chunk = self.index.chunks[row]
        part = "" if chunk.id == chunk.passage_id else f", part {chunk.index + 1}"
        return f"[{chunk.title or chunk.passage_id}{part}]"


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
