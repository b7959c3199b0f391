"""Names under which HopBench logs to MLflow: experiments and tags."""

from __future__ import annotations

SWEEPS_EXPERIMENT = "hopbench/sweeps"


def experiment_of(benchmark: str) -> str:
    """The experiment that holds the runs on a benchmark."""
    return f"hopbench/{benchmark}"
