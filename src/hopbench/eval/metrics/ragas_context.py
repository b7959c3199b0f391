"""RAGAS's context metrics that need no LLM, computed by RAGAS's own classes over the budgeted context.

The classes are awaited at the method that each of them defines (`_single_turn_ascore`): the public call one level
above adds a tracer and a usage counter. The similarity metrics get RAGAS's string distance with a cutoff at their
threshold, as Levenshtein is quadratic in the texts' lengths, and similarities are cached: the trials of a sweep read
much the same passages. The numbers are RAGAS's, to the last digit; a test compares them with the public call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from hopbench.eval.metrics.base import Batch, FloatArray, GoldFacts, Metric

CITATION = "RAGAS 0.4 (Es et al., EACL 2024, arXiv 2309.15217), https://docs.ragas.io, context metrics without LLM"
THRESHOLD = 0.5
"""RAGAS's default: texts count as the same from a Levenshtein similarity of 0.5."""

CACHED_PAIRS = 262_144
"""Pairs of texts whose similarity is cached, some 60 MB: 1,000 questions × 2 gold texts × 131 passages read."""


def import_untracked() -> None:
    """Import RAGAS, which takes 3-15 s, so that it neither reports its use nor keeps a user id. Call it before any use.

    RAGAS makes the id even where it must not report: it would write `~/.local/share/ragas/uuid.json`. Where it has no
    folder, it takes a random id for the process.
    """
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    from ragas import _analytics

    def no_folder(appname: str) -> str:
        raise OSError(f"no folder for {appname}'s user id")

    _analytics.user_data_dir = no_folder


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
    from ragas.metrics._context_precision import IDBasedContextPrecision, NonLLMContextPrecisionWithReference
    from ragas.metrics._context_recall import IDBasedContextRecall, NonLLMContextRecall
    from ragas.metrics._string import NonLLMStringSimilarity

    async def untraced(sample: Any, callbacks: Any = None, timeout: Any = None) -> float:
        return _similarity(sample.reference, sample.response)

    distance = NonLLMStringSimilarity()
    distance.single_turn_ascore = untraced
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

    samples = []
    for row, gold in batch.gold_sets:
        found = batch.rankings[row].context_ids
        # Texts are interned: one copy, hashed once, for all pairs.
        sample = SingleTurnSample(
            retrieved_context_ids=list(found),
            reference_context_ids=list(gold),
            retrieved_contexts=[sys.intern(batch.content(passage)) for passage in found],
            reference_contexts=[sys.intern(batch.content(passage)) for passage in gold],
        )
        samples.append(sample if found else None)
    return samples


def _compute(name: str, batch: Batch) -> FloatArray:
    """RAGAS's values; an empty context scores 0 (RAGAS: NaN or an error), a question without gold NaN.

    The coroutines never wait, so they run where an event loop already does (a notebook, a Prefect flow), too.
    """
    samples, score = batch.once("ragas", _samples), _scorers()[name]._single_turn_ascore
    values = np.zeros(len(samples))
    for place, sample in enumerate(samples):
        if sample is None:
            continue
        try:
            score(sample, None).send(None)
        except StopIteration as finished:
            values[place] = finished.value
        else:
            raise RuntimeError("a RAGAS metric without LLM waited for something")
    return batch.best(values)


_METRICS: Mapping[str, tuple[str, Callable[[GoldFacts], float]]] = {
    "id_based_context_precision": ("share of the context's passages that are gold", lambda gold: 1.0),
    "id_based_context_recall": (
        "share of the gold passages in the context",
        lambda gold: min(gold.present, gold.context_passages) / gold.passages,
    ),
    "non_llm_context_precision_with_reference": (
        "average precision of the context's texts, right where one resembles a gold text (Levenshtein ≥ 0.5)",
        lambda gold: 1.0,
    ),
    "non_llm_context_recall": (
        "share of the gold texts that some text of the context resembles",
        lambda gold: gold.present / gold.passages,
    ),
}
METRICS = tuple(
    Metric(name, meaning, CITATION, ("gold", "context"), partial(_compute, name), ceiling, group="ragas")
    for name, (meaning, ceiling) in _METRICS.items()
)
