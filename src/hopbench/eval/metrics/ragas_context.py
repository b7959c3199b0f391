"""RAGAS's context metrics that need no LLM, computed by RAGAS's own classes over the budgeted context.

The classes are awaited at the method that each of them defines (`_single_turn_ascore`): the public call one level
above adds a tracer and a usage counter. The
similarity metrics get RAGAS's string distance with a cutoff at their threshold, as Levenshtein is quadratic in the
texts' lengths, and similarities are cached: the trials of a sweep read much the same passages. The numbers
are RAGAS's, to the last digit; a test compares them with the public call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from hopbench.eval.metrics.base import Batch, FloatArray, GoldFacts, Metric

CITATION = "RAGAS 0.4 (Es et al., EACL 2024, arXiv 2309.15217), https://docs.ragas.io, context metrics without LLM"
THRESHOLD = 0.5
"""RAGAS's default: texts count as the same from a Levenshtein similarity of 0.5."""

CACHED_PAIRS = 262_144
"""Pairs of texts whose similarity is cached, some 60 MB: 1,000 questions × 2 gold texts × 131 passages read."""


def import_untracked() -> None:
    """Import RAGAS, which takes 3-15 s, so that it neither reports its use nor keeps a user id. Call it before any use.

    RAGAS makes the id even where it must not report: it would write `~/.local/share/ragas/uuid.json`.
    """
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    from ragas import _analytics

    _analytics.user_data_dir = _no_folder


def _no_folder(appname: str) -> str:
    """RAGAS takes a random id for the process where it has no folder."""
    raise OSError(f"no folder for {appname}'s user id")


@lru_cache(maxsize=CACHED_PAIRS)
def _similarity(first: str, second: str) -> float:
    """1 − normalised Levenshtein distance, or 0 below the threshold, where RAGAS only asks on which side it lies.

    The cutoff saves the quadratic work on texts whose lengths alone put them below it.
    """
    from rapidfuzz.distance import Levenshtein  # only this metric needs it

    return float(Levenshtein.normalized_similarity(first, second, score_cutoff=THRESHOLD))


@cache
def _scorers() -> Mapping[str, Any]:
    """RAGAS metric name → its object; importing RAGAS takes 3-15 s, so it happens on first use."""
    import_untracked()
    # The public names in ragas.metrics warn that collections will replace them; collections has none of these four.
    from ragas.metrics._context_precision import (
        IDBasedContextPrecision,
        NonLLMContextPrecisionWithReference,
    )
    from ragas.metrics._context_recall import IDBasedContextRecall, NonLLMContextRecall
    from ragas.metrics._string import NonLLMStringSimilarity

    class UntracedSimilarity(NonLLMStringSimilarity):  # type: ignore[misc] # ragas has no usable types
        """RAGAS's string similarity without the tracer around each pair."""

        async def single_turn_ascore(self, sample: Any, callbacks: Any = None, timeout: Any = None) -> float:
            return _similarity(sample.reference, sample.response)

    distance = UntracedSimilarity()
    scorers = (
        IDBasedContextPrecision(),
        IDBasedContextRecall(),
        NonLLMContextPrecisionWithReference(distance_measure=distance, threshold=THRESHOLD),
        NonLLMContextRecall(_distance_measure=distance, threshold=THRESHOLD),
    )
    return {scorer.name: scorer for scorer in scorers}


def _samples(batch: Batch) -> list[Any]:
    """One RAGAS sample per gold set; None without context."""
    from ragas.dataset_schema import SingleTurnSample

    def texts(passages: Sequence[str]) -> list[str]:
        return [sys.intern(batch.content(passage)) for passage in passages]  # one copy, hashed once, for all pairs

    return [
        SingleTurnSample(
            retrieved_context_ids=list(ranking.context_ids),
            reference_context_ids=list(gold),
            retrieved_contexts=texts(ranking.context_ids),
            reference_contexts=texts(gold),
        )
        if (ranking := batch.rankings[row]).context_ids
        else None
        for row, gold in batch.gold_sets
    ]


async def _await_all(score: Callable[[Any, Any], Awaitable[float]], samples: list[Any]) -> list[float]:
    return [0.0 if sample is None else await score(sample, None) for sample in samples]


def _compute(name: str) -> Callable[[Batch], FloatArray]:
    """RAGAS's values; an empty context scores 0 (RAGAS: NaN or an error), a question without gold NaN."""

    def compute(batch: Batch) -> FloatArray:
        scorer = _scorers()[name]
        values = _run(_await_all(scorer._single_turn_ascore, batch.once("ragas", _samples)))
        return batch.best(values)

    return compute


def _run(work: Any) -> list[float]:
    """Run coroutines that never wait, also where an event loop already runs (a notebook, a Prefect flow)."""
    try:
        work.send(None)
    except StopIteration as finished:
        return list(finished.value)
    raise RuntimeError("a RAGAS metric without LLM waited for something")


def _id_recall_ceiling(gold: GoldFacts) -> float:
    return min(gold.present, gold.context_passages) / gold.passages


def _metric(name: str, meaning: str, ceiling: Callable[[GoldFacts], float] = lambda _: 1.0) -> Metric:
    return Metric(name, meaning, CITATION, ("gold", "context"), _compute(name), ceiling, group="ragas")


METRICS = (
    _metric("id_based_context_precision", "share of the context's passages that are gold"),
    _metric("id_based_context_recall", "share of the gold passages in the context", _id_recall_ceiling),
    _metric(
        "non_llm_context_precision_with_reference",
        "average precision of the context's texts, right where one resembles a gold text (Levenshtein ≥ 0.5)",
    ),
    _metric(
        "non_llm_context_recall",
        "share of the gold texts that some text of the context resembles",
        lambda gold: gold.present / gold.passages,
    ),
)
