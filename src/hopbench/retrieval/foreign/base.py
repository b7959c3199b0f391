"""Retrievers that are not ours, as strategies: they return passage ids, and nothing of how these were found.

They are scored, compared and drilled into as any label. A ranking is never completed from one of ours, and its first
ten passages count as seeds, as bm25's do: reach@h then says what the graph could add to this retriever.
"""

from __future__ import annotations

import secrets
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from hopbench.retrieval.foreign.answer import Answer, shown
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.types import Counters, Hit, Question, Ranking

FOREIGN = "foreign"
SEEDS = 10
NOTES: Mapping[str, object] = {"traversal": "not known: a foreign retriever returns passages only"}
_PARTS = "foreign.first_parts"
THIS_PROCESS = secrets.token_hex(8)
"""Stands in the identity of a retriever that states no version: no other process takes its rankings for current."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Foreign(Strategy):
    """A strategy whose rankings come from outside. Fields declared with `param` are its parameters, others are not."""

    kind: ClassVar[str] = FOREIGN
    foreign: ClassVar[bool] = True
    keep: ClassVar[int] = sys.maxsize  # MRR depends on the whole ranking

    fill: bool = field(default=False, init=False, repr=False)

    # A retriever is itself, whatever its parameters: batches keep answers under it.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        """Refuse parameters outside their bounds."""
        for name, spec in self.parameters().items():
            self._check(spec, getattr(self, name))

    @classmethod
    def parameters(cls) -> Mapping[str, Field[Any]]:
        """The fields with bounds."""
        return {spec.name: spec for spec in fields(cls) if "bounds" in spec.metadata}

    def spec(self) -> dict[str, Any]:
        """Where its rankings come from, and its parameters."""
        return {**self.source(), **{name: getattr(self, name) for name in self.parameters()}}

    @abstractmethod
    def source(self) -> dict[str, Any]:
        """What names the retriever in results, without secrets and without paths of this machine."""

    @abstractmethod
    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """The retriever's answer to each question, in their order; a fault is an answer's failure."""

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The retriever's rankings; ids that the corpus lacks, or that come twice, fail their question."""
        found: Sequence[Answer] = batch.memo.charged(
            (FOREIGN, self), counters, lambda spent: self.answers(batch.questions, spent)
        )
        first = first_parts(batch.index)
        return [_ranking(question.id, one, first) for question, one in zip(batch.questions, found, strict=True)]

    def initial(self, batch: Batch) -> list[Scored]:
        """The rankings themselves: no other ranking is known from which they would have started."""
        return [[(hit.chunk_id, hit.score) for hit in one.hits] for one in self.search(batch, Counters())]

    def close(self) -> None:
        """Let go of connections."""


def first_parts(index: Index) -> Mapping[str, str]:
    """Passage id → its chunk, the first one of a passage that is split for its length."""
    return index.memo.get(_PARTS, lambda: {chunk.passage_id: chunk.id for chunk in index.chunks if chunk.index == 0})


def _ranking(question_id: str, answer: Answer, first: Mapping[str, str]) -> Ranking:
    passages = answer.passages
    failure = answer.failure or _fault(passages, first)
    if failure is not None:
        return Ranking(question_id, notes=NOTES, failure=failure)
    scores = answer.scores or [1 / rank for rank in range(1, len(passages) + 1)]
    hits = [Hit(first[passage], float(score), FOREIGN) for passage, score in zip(passages, scores, strict=True)]
    return Ranking(question_id, hits, [hit.chunk_id for hit in hits[:SEEDS]], NOTES)


def _fault(passages: Sequence[str], known: Mapping[str, str]) -> str | None:
    """Why a ranking cannot be scored, in words; None where it can."""
    unknown = [passage for passage in passages if passage not in known]
    if unknown:
        return f"{len(unknown)} of {len(passages)} passages are not in the corpus, such as {shown(unknown[0])}"
    seen: set[str] = set()
    for passage in passages:
        if passage in seen:
            return f"passage {shown(passage)} is returned twice"
        seen.add(passage)
    return None
