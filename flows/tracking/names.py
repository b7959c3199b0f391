"""The names under which HopBench logs to MLflow: experiments, tags and parameters.

Metrics have the names of `hopbench.eval.metrics`, as `mlflow_name` writes them, and those of a run's costs; a
strategy's own parameters keep their names.
"""

from __future__ import annotations

from enum import StrEnum

SWEEPS_EXPERIMENT = "hopbench/sweeps"


def experiment_of(benchmark: str) -> str:
    """The experiment that holds the runs on a benchmark."""
    return f"hopbench/{benchmark}"


class Tag(StrEnum):
    """Tags of runs."""

    KEY = "hopbench.key"  # identifies the run: logging a key again updates its run
    CHAMPION = "hopbench.champion"  # the digest of the benchmark whose champion it is
    ARTIFACTS = "hopbench.artifacts"  # why its artifacts are gone
    NIGHTLY = "nightly"
    REGRESSION = "hopbench.regression"
    MISSING = "hopbench.missing"
    GRAPH_FINGERPRINT = "graph_fingerprint"
    BUILD_KEY = "build_key"
    CODE_VERSION = "code_version"
    BENCHMARK_DIGEST = "benchmark_digest"
    ROLE = "role"
    KIND = "kind"
    IN_SAMPLE = "in_sample"
    PLUGINS = "plugins"
    VERDICT = "verdict"
    COMPARISON = "comparison"
    TARGETS = "targets"
    SWEEP_ID = "sweep_id"
    TRIAL_ID = "trial_id"
    WITHOUT = "without"


def target_tag(metric: str) -> str:
    """The tag with the limit and the value of a targeted metric."""
    return f"target.{metric}"


class Param(StrEnum):
    """Parameters of runs that are not a strategy's own."""

    DATASET = "dataset"
    DATASETS = "datasets"
    QUESTIONS = "questions"
    STRATEGY = "strategy"
    STRATEGIES = "strategies"
    LABEL = "label"
    EMBEDDER = "embedder"
    STORE = "store"
    SEARCH = "search"
    SEED = "seed"
    LLM = "llm"
    JUDGE = "judge"
    JUDGE_PROFILE = "judge_profile"
    REPEATS = "repeats"
    FILE = "file"
    TRIALS = "trials"
    OBJECTIVE = "objective"
    BEST = "best"
