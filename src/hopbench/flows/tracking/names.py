"""The names under which HopBench logs to MLflow: experiments, tags and parameters.

Metrics have the names of `hopbench.eval.metrics`, as `mlflow_name` writes them, and those of a run's costs; a
strategy's own parameters keep their names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

SWEEPS_EXPERIMENT = "hopbench/sweeps"
MODELS_EXPERIMENT = "hopbench-models"

MAX_RUN_NAME = 40
"""MLflow's pages cut longer names: two that begin alike look the same there."""
ID_DIGITS = 6


def experiment_of(benchmark: str) -> str:
    """The experiment that holds the runs on a benchmark."""
    return f"hopbench/{benchmark}"


def run_name(name: str) -> str:
    """`name` in at most 40 characters: one that is cut ends in six characters of its digest."""
    if len(name) <= MAX_RUN_NAME:
        return name
    return _ended(name, hashlib.sha256(name.encode()).hexdigest())


def trial_name(label: str, varied: Mapping[str, object], without: Sequence[str], trial_id: str) -> str:
    """A sweep's trial in at most 40 characters: its label, the values that vary, and six characters of its id.

    Parameters go by their initials where their names do not fit: `pagerank[restart=0.1, question_weight=0.5]` becomes
    `pagerank r=.1 qw=.5 4f2a1c`.
    """
    base = label.partition("[")[0]
    rest = [f"-{name}" for name in without]
    full = " ".join([base, *(f"{name.removeprefix(BUILD)}={_short(value)}" for name, value in varied.items()), *rest])
    if len(full) + 1 + ID_DIGITS > MAX_RUN_NAME:
        full = " ".join([base, *(f"{_initials(name)}={_short(value)}" for name, value in varied.items()), *rest])
    return _ended(full, trial_id)


BUILD = "build."


def _ended(text: str, digest: str) -> str:
    room = MAX_RUN_NAME - ID_DIGITS - 1
    return f"{text if len(text) <= room else text[: room - 1] + '…'} {digest[:ID_DIGITS]}"


def _initials(name: str) -> str:
    return "".join(word[0] for word in re.split(r"[_.]", name.removeprefix(BUILD)) if word)


def _short(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"^(-?)0\.", r"\1.", text)


class Tag(StrEnum):
    """Tags of runs; those that begin with `mlflow.` are MLflow's own."""

    NOTE = "mlflow.note.content"  # the description that MLflow's pages show, in Markdown
    SOURCE = "mlflow.source.name"
    SOURCE_TYPE = "mlflow.source.type"
    PARENT = "mlflow.parentRunId"
    TABLES = "mlflow.loggedArtifacts"  # JSON: the artifacts that MLflow's evaluation view shows as tables

    KEY = "hopbench.key"  # identifies the run: logging a key again updates its run
    CHAMPION = "hopbench.champion"  # the digest of the benchmark whose champion it is
    ARTIFACTS = "hopbench.artifacts"  # why its artifacts are gone
    NIGHTLY = "nightly"
    REGRESSION = "hopbench.regression"
    MISSING = "hopbench.missing"
    NO_VALUE = "hopbench.no_value"  # metrics that are no finite number, and so not logged
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
    REASONING_EFFORT = "reasoning_effort"
    COMPLETION_TOKENS = "completion_tokens"
    JUDGE = "judge"
    JUDGE_PROFILE = "judge_profile"
    REPEATS = "repeats"
    FILE = "file"
    TRIALS = "trials"
    OBJECTIVE = "objective"
    BEST = "best"
