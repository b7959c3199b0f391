"""Adapters to other libraries: a strategy's answer to one question, and a library's documents as passages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.types import Counters, Hit, Question

QUESTION_ID = "question"


class RetrievalError(HopBenchError):
    """Reports that a strategy failed on a question."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that answers a question: its text with the title, the strategy's score, and its origin.

    `metadata` has `_id`, `title`, `score`, `origin`, `strategy` and, where an edge led to it, the `path` in words.
    """

    passage: str
    text: str
    score: float
    metadata: Mapping[str, str | float]


def ask(index: Index, strategy: Strategy, text: str, k: int) -> list[Found]:
    """The best `k` passages for a question, each by its first chunk. Raises RetrievalError where the strategy fails."""
    (ranking,) = strategy.rank(Batch(index, [Question(QUESTION_ID, text)]), Counters())
    if ranking.failure is not None:
        raise RetrievalError(f"{strategy.name}: {ranking.failure}")
    first: dict[str, Hit] = {}
    for hit in ranking.hits:
        first.setdefault(index.passage_of[hit.chunk_id], hit)
    return [_found(index, strategy, passage, hit) for passage, hit in list(first.items())[:k]]


def _found(index: Index, strategy: Strategy, passage: str, hit: Hit) -> Found:
    chunk = index.chunks[index.row_of[hit.chunk_id]]
    about: dict[str, str | float] = {
        "_id": passage,
        "title": chunk.title,
        "score": hit.score,
        "origin": hit.origin,
        "strategy": strategy.name,
    }
    if hit.path:
        about["path"] = "; ".join(f"{step.source} -{step.edge}-> {step.target}" for step in hit.path)
    return Found(passage, chunk.content, hit.score, about)


def first_of_each(passages: Iterable[str], k: int) -> Sequence[str]:
    """The first `k` different ids, in their order: libraries return parts of passages, several of one passage."""
    return list(dict.fromkeys(passages))[:k]
