"""Services that a language model, or another component outside the graph, provides to strategies.

Every service is optional: a strategy has a form of each that needs none. A service answers for a whole batch of
questions in one call, and charges the counters it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hopbench.retrieval.index.linker import Linker
from hopbench.retrieval.types import Counters, Question


@dataclass(frozen=True, slots=True)
class Keywords:
    """A question's entities (ids), and the texts to compare with entities (`low`) and with communities (`high`)."""

    entities: Sequence[str]
    low: str
    high: str


class QuestionEntities(Protocol):
    """Finds the entities that questions mean (document 4, stage 1)."""

    def __call__(self, questions: Sequence[Question], counters: Counters, linker: Linker) -> Sequence[Sequence[str]]:
        """Per question the ids of graph entities, each once, most important first; `linker` resolves names."""
        ...


class Synonyms(Protocol):
    """Proposes other names for entities (document 4, stage 3); the caller checks them."""

    def __call__(
        self, counters: Counters, linker: Linker, wanted: Sequence[tuple[int, str]], limit: int
    ) -> Sequence[Sequence[str]]:
        """For each (index of the question in the batch, entity id) at most `limit` names, best first."""
        ...


class QuestionKeywords(Protocol):
    """Finds the low- and high-level keywords of questions, as LightRAG does with a language model."""

    def __call__(self, questions: Sequence[Question], counters: Counters, linker: Linker) -> Sequence[Keywords]:
        """The keywords of each question; `linker` resolves names to entities."""
        ...


class CommunitySummaries(Protocol):
    """Summarises communities of entities."""

    def __call__(self, counters: Counters, texts: Sequence[str]) -> Sequence[str]:
        """A summary for each text of entity names and relations."""
        ...


class TreeRelevance(Protocol):
    """Scores how relevant texts are to questions (KG²RAG's authors use a cross-encoder)."""

    def __call__(
        self, questions: Sequence[Question], counters: Counters, pairs: Sequence[tuple[int, str]]
    ) -> Sequence[float]:
        """A score for each (index of the question in the batch, a tree's chunks as one text); higher is better."""
        ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """The services of an index; None where there is none. `model` names the model behind them, for trial ids."""

    model: str = ""
    question_entities: QuestionEntities | None = None
    synonyms: Synonyms | None = None
    keywords: QuestionKeywords | None = None
    community_summaries: CommunitySummaries | None = None
    tree_relevance: TreeRelevance | None = None
