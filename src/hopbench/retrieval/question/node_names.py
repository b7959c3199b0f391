"""Readable names for the nodes of a graph, as people who read a path need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.types import Counters


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
