"""Whether the retrieved text contains the answer, whatever the gold passages are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from hopbench.eval.metrics.base import Batch, FloatArray, Metric
from hopbench.eval.metrics.containment import contains_answer
from hopbench.retrieval.text.model_tokens import count_tokens, first_tokens

CITATION = "top-k retrieval accuracy (DPR, Karpukhin et al., EMNLP 2020)"
ANSWER_CUTOFFS = (5, 10)
TOKEN_CUTOFFS = (300, 700)  # about what five HotpotQA passages take, and the same with a full graph block beside them
NOT_APPLICABLE = "yes/no questions do not count"


def _context_contains(batch: Batch) -> FloatArray:
    values = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            values[i] = any(contains_answer(part, answers) for part in ranking.context_parts)
    return values


HAS_ANSWER = Metric(
    "has_answer",
    f"the budgeted context contains the answer or an alias; {NOT_APPLICABLE}",
    CITATION,
    ("answers", "context"),
    _context_contains,
)


def _answer_ranks(batch: Batch) -> FloatArray:
    """Rank (from 1) of the first passage that contains an answer, inf below the last cutoff; NaN: not applicable."""
    ranks = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            top = enumerate(ranking.ranked_ids[: max(ANSWER_CUTOFFS)], start=1)
            hits = (rank for rank, p in top if contains_answer(batch.content(p), answers))
            ranks[i] = next(hits, np.inf)
    return ranks


def has_answer_at(k: int) -> Metric:
    """The `has_answer@k` metric: one of the top k passages (title and text, no budget) contains an answer."""

    def compute(batch: Batch) -> FloatArray:
        rank = batch.once("answer_ranks", _answer_ranks)
        return np.where(np.isnan(rank), np.nan, rank <= k)

    meaning = f"one of the top {k} passages contains the answer or an alias; {NOT_APPLICABLE}"
    return Metric(f"has_answer@{k}", meaning, CITATION, ("answers",), compute)


def _answer_tokens(batch: Batch, limit: int) -> FloatArray:
    """Whether the first `limit` tokens contain an answer: the graph block, then the passages as ranked."""
    values = np.full(len(batch.questions), np.nan)
    for i, (answers, ranking) in enumerate(zip(batch.answers, batch.rankings, strict=True)):
        if answers:
            parts = (ranking.graph_context, *map(batch.content, ranking.ranked_ids))
            values[i] = any(contains_answer(part, answers) for part in _within(parts, limit))
    return values


def _within(parts: Iterable[str], left: int) -> Iterator[str]:
    """The parts that fit into `left` tokens, the last one cut."""
    for part in parts:
        if left <= 0:
            return
        yield first_tokens(part, left)
        left -= count_tokens(part)


def has_answer_in(tokens: int) -> Metric:
    """The `has_answer@Nt` metric: all labels fill the same number of tokens, however many passages that takes."""
    meaning = (
        f"the first {tokens} tokens, the graph block and then passages as ranked, contain the answer or an alias: "
        f"labels at equal context; {NOT_APPLICABLE}"
    )
    return Metric(f"has_answer@{tokens}t", meaning, CITATION, ("answers",), lambda batch: _answer_tokens(batch, tokens))


METRICS = (
    HAS_ANSWER,
    *(has_answer_at(k) for k in ANSWER_CUTOFFS),
    *(has_answer_in(tokens) for tokens in TOKEN_CUTOFFS),
)
