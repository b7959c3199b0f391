"""Metrics that other parts measure and join to the rows of `score`: the graph's reach, and those of RAGAS's judges."""

from __future__ import annotations

from hopbench.eval.metrics.base import Metric, Need

MAX_HOPS = 3
DEFINITION = "HopBench docs, metrics: reach@h"
RAGAS = "RAGAS 0.4 collections (Es et al., EACL 2024, arXiv 2309.15217), https://docs.ragas.io"

REACH = (
    *(
        Metric(
            f"reach@{h}",
            f"every gold passage lies within {h} expansion steps of the strategy's seeds",
            DEFINITION,
            ("gold", "graph"),
            group="graph",
        )
        for h in range(MAX_HOPS + 1)
    ),
    *(
        Metric(
            f"reach_share@{h}",
            f"share of the corpus within {h} expansion steps of the strategy's seeds: what reach@{h} costs",
            DEFINITION,
            ("graph",),
            higher_is_better=False,
            group="graph",
        )
        for h in range(MAX_HOPS + 1)
    ),
)


def _metric(name: str, meaning: str, *needs: Need, lower: bool = False) -> Metric:
    worst = 1.0 if lower else 0.0
    return Metric(name, meaning, RAGAS, (*needs, "judge"), higher_is_better=not lower, group="judge", worst=worst)


JUDGED = (
    _metric(
        "context_precision",
        "average precision of the context's parts that were useful for the gold answer",
        "reference",
        "context",
    ),
    _metric(
        "context_recall", "share of the gold answer's statements that the context supports", "reference", "context"
    ),
    _metric(
        "context_entity_recall", "share of the gold answer's entities that the context names", "reference", "context"
    ),
    _metric("faithfulness", "share of the answer's statements that the context supports", "reader", "context"),
    _metric("answer_relevancy", "mean cosine of the question with questions made from the answer alone", "reader"),
    _metric(
        "factual_correctness",
        "F1 of the claims of the answer and of the gold answer, each checked in the other",
        "reference",
        "reader",
    ),
    _metric(
        "answer_correctness",
        ".75 × F1 of the answer's statements with the gold answer's + .25 × cosine of the two",
        "reference",
        "reader",
    ),
    _metric(
        "noise_sensitivity",
        "share of the answer's statements that are wrong although a useful part of the context supports them",
        "reference",
        "reader",
        "context",
        lower=True,
    ),
)
