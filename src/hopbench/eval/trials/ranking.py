"""Rank a batch whatever a strategy does: a question that cannot be ranked becomes a row with the reason."""

from __future__ import annotations

from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.support.resources import exhausted
from hopbench.retrieval.types import Counters, Ranking


def rank_batch(strategy: Strategy, batch: Batch, counters: Counters) -> list[Ranking]:
    """Rank a batch and add what it cost to `counters`; where it fails, rank each of its questions alone.

    A question that fails alone gets an empty ranking with the failure. Raises HopBenchError, and what stops every
    question, such as a full disk.
    """
    spent = Counters()
    try:
        rankings = strategy.rank(batch, spent)
    except Exception as error:  # a strategy may raise anything
        return rank_after_failure(error, strategy, batch, counters)
    counters.add(spent)
    return rankings


def rank_after_failure(error: Exception, strategy: Strategy, batch: Batch, counters: Counters) -> list[Ranking]:
    """The rankings of a batch that a strategy failed to rank with `error`: see `rank_batch`."""
    if isinstance(error, HopBenchError):
        raise error
    if len(batch.questions) == 1:
        if (lacking := exhausted(error)) is not None:
            raise lacking from error  # nothing that this question caused
        return [Ranking(batch.questions[0].id, failure=f"{type(error).__name__}: {error}")]
    singles = [Batch(batch.index, [question]) for question in batch.questions]
    return [ranking for single in singles for ranking in rank_batch(strategy, single, counters)]
