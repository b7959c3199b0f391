"""Adapters to other libraries: a strategy's answer to one question, and a library's documents as passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.types import Chunk, Counters, Hit, Question

QUESTION_ID = "question"


Metadata = dict[str, str | float]
"""`_id`, `title`, `score`, `origin`, `strategy` and, where an edge led to the passage, the `path` in words."""


def ask(index: Index, strategy: Strategy, text: str, k: int) -> list[tuple[Chunk, float, Metadata]]:
    """The best `k` passages for a question, each as its first chunk, with its score.

    Raises HopBenchError where the strategy fails.
    """
    (ranking,) = strategy.rank(Batch(index, [Question(QUESTION_ID, text)]), Counters())
    if ranking.failure is not None:
        raise HopBenchError(f"{strategy.name}: {ranking.failure}")
    first: dict[str, Hit] = {}
    for hit in ranking.hits:
        first.setdefault(index.passage_of[hit.chunk_id], hit)
    found: list[tuple[Chunk, float, Metadata]] = []
    for passage, hit in list(first.items())[:k]:
        chunk = index.chunks[index.row_of[hit.chunk_id]]
        about: Metadata = {"_id": passage, "title": chunk.title, "score": hit.score, "origin": hit.origin}
        about["strategy"] = strategy.name
        if hit.path:
            about["path"] = "; ".join(f"{step.source} -{step.edge}-> {step.target}" for step in hit.path)
        found.append((chunk, hit.score, about))
    return found


def first_of_each(passages: Iterable[str], k: int) -> Sequence[str]:
    """The first `k` different ids, in their order: libraries return parts of passages, several of one passage."""
    return list(dict.fromkeys(passages))[:k]
