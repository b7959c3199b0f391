"""What a question asks for on dual_level's two levels: found on its surface, or by a language model that takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hopbench.retrieval.index.index import Batch
from hopbench.retrieval.question.entities import question_entities
from hopbench.retrieval.question.linking import Linker
from hopbench.retrieval.types import Counters

KEYWORDS = "question_keywords"
SUMMARIES = "community_summaries"


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a question asks for: entities it means (ids), and the texts compared with entities and with communities."""

    entities: Sequence[str]
    low: str
    high: str


class QuestionKeywords(Protocol):
    """Finds low- and high-level keywords; LightRAG asks a language model, which goes into `Index.shared[KEYWORDS]`."""

    def __call__(self, batch: Batch, counters: Counters, reader: Linker) -> list[Keywords]:
        """The keywords of each question; `reader` resolves names to entities."""
        ...


def surface_keywords(batch: Batch, counters: Counters, reader: Linker) -> list[Keywords]:
    """The question's own entities, and the question itself as both texts."""
    found = question_entities(batch)(batch, counters, reader)
    return [Keywords(ids, one.text, one.text) for ids, one in zip(found, batch.questions, strict=True)]
