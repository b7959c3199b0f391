"""Scores: a registry of self-describing metrics, rows per question, and summaries beside their ceilings."""

from eval.metrics.base import Batch, GoldFacts, Metric
from eval.metrics.normalise import normalise_answer
from eval.metrics.registry import PRIMARY, all_metrics, get_metric, mlflow_name, register
from eval.metrics.scoring import score
from eval.metrics.summary import measured_shares, summarise, with_coverage

__all__ = [
    "PRIMARY",
    "Batch",
    "GoldFacts",
    "Metric",
    "all_metrics",
    "get_metric",
    "measured_shares",
    "mlflow_name",
    "normalise_answer",
    "register",
    "score",
    "summarise",
    "with_coverage",
]
