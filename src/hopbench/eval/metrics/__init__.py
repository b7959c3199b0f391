"""Scores: a registry of self-describing metrics, rows per question, and summaries beside their ceilings."""

from hopbench.eval.metrics.base import Batch, GoldFacts, Metric, MetricFamily
from hopbench.eval.metrics.catalogue import added_names, catalogue, mlflow_name
from hopbench.eval.metrics.normalise import normalise_answer
from hopbench.eval.metrics.registry import (
    ADD_ANSWERS,
    ADD_GOLD,
    PRIMARY,
    all_metrics,
    asked_metrics,
    best_value,
    get_metric,
    lacking,
    metric_code,
    metrics_among,
    primary_metric,
    primary_of,
    ragas_metrics,
    rank_key,
    register,
    sign_of,
    worst_of,
)
from hopbench.eval.metrics.scoring import score
from hopbench.eval.metrics.summary import Summary, measured_shares, summarise, with_coverage

__all__ = [
    "ADD_ANSWERS",
    "ADD_GOLD",
    "PRIMARY",
    "Batch",
    "GoldFacts",
    "Metric",
    "MetricFamily",
    "Summary",
    "added_names",
    "all_metrics",
    "asked_metrics",
    "best_value",
    "catalogue",
    "get_metric",
    "lacking",
    "measured_shares",
    "metric_code",
    "metrics_among",
    "mlflow_name",
    "normalise_answer",
    "primary_metric",
    "primary_of",
    "ragas_metrics",
    "rank_key",
    "register",
    "score",
    "sign_of",
    "summarise",
    "with_coverage",
    "worst_of",
]
