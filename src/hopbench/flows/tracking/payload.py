"""What is logged to MLflow and under which names: experiments, tags, parameters, pages, payloads, tables."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from hopbench.eval.files import write_atomically
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.types import BenchmarkQuestion

SWEEPS_EXPERIMENT = "hopbench/sweeps"
MODELS_EXPERIMENT = "hopbench-models"

MAX_RUN_NAME = 40
"""MLflow's pages cut longer names: two that begin alike look the same there."""
ID_DIGITS = 6
BUILD = "build."


def run_name(name: str) -> str:
    """`name` in at most 40 characters: one that is cut ends in six characters of its digest."""
    return name if len(name) <= MAX_RUN_NAME else _cut(name, hashlib.sha256(name.encode()).hexdigest())


def trial_name(label: str, varied: Mapping[str, object], without: Sequence[str], trial_id: str) -> str:
    """A sweep's trial in at most 40 characters: its label, the values that vary, and six characters of its id.

    Parameters go by their initials where their names do not fit: `pagerank[restart=0.1, question_weight=0.5]` becomes
    `pagerank r=.1 qw=.5 4f2a1c`.
    """
    names = [name.removeprefix(BUILD) for name in varied]
    initials = ["".join(word[0] for word in re.split(r"[_.]", name) if word) for name in names]
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in varied.values()]
    values = [re.sub(r"^(-?)0\.", r"\1.", text) for text in texts]
    full, short = (
        " ".join(
            [label.partition("[")[0], *map("=".join, zip(called, values, strict=True)), *(f"-{o}" for o in without)]
        )
        for called in (names, initials)
    )
    return _cut(full if len(full) + 1 + ID_DIGITS <= MAX_RUN_NAME else short, trial_id)


def _cut(text: str, digest: str) -> str:
    room = MAX_RUN_NAME - ID_DIGITS - 1
    return f"{text if len(text) <= room else text[: room - 1] + '…'} {digest[:ID_DIGITS]}"


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


Scalar = str | int | float | bool | None
Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]

# Limits of MLflow 3 (mlflow.utils.validation); a dataset's digest is a database column of 36 characters.
MAX_NAME = 250
MAX_PARAM = 6000
MAX_TAG = 8000
MAX_DATASET_DIGEST = 36

QUESTION_COLUMNS = [
    {"name": name, "type": "string", "required": required}
    for name, required in (("id", True), ("text", True), ("type", False), ("answer", False), ("gold", False))
]
"""A benchmark's columns as MLflow shows them: its rows are questions."""

REDACTED = "[redacted]"
_REFUSED_IN_NAMES = re.compile(r"[^\w\-. :/]")
_SECRET_NAME = re.compile(
    r"api_?key|secret|passw(or)?d|credential|authorization|(^|[_.\-])(auth|access|bearer|hf)?_?token$", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MIN_SECRET = 6  # shorter values ("none", "x") would blank out innocent text


@dataclass(frozen=True, slots=True)
class RunPayload:
    """One MLflow run. `key` identifies it: logging a key again updates its run.

    `parent_key` makes it a child of a run that was logged before. Times are seconds since the epoch; give them when
    the run may be written again, since they are part of each metric's identity. Status RUNNING stays open until the
    key is logged again or the tracker ends. With `once`, a finished run of that key is left unchanged. The description
    gets a link to MLflow's comparison of the runs whose keys are `compared`. The questions in the file `judged` become
    traces (`hopbench.flows.tracking.traces`). `dataset` is what `mlflow_dataset` makes, `artifacts` are files.
    """

    key: str
    name: str
    parent_key: str | None = None
    params: Mapping[str, Scalar] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] | None = None
    artifacts: tuple[Path, ...] = ()
    status: Status = "FINISHED"
    started_at: float | None = None
    ended_at: float | None = None
    once: bool = False
    compared: tuple[str, ...] = ()
    judged: Path | None = None


def mlflow_name(name: str) -> str:
    """A metric's, parameter's or tag's name as MLflow takes it: `recall@5` → `recall_at_5`, at most 250 characters."""
    return _REFUSED_IN_NAMES.sub("_", name.replace("@", "_at_"))[:MAX_NAME]


def secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The values of environment variables whose names suggest a secret, longest first."""
    source = os.environ if environment is None else environment
    found = {value for name, value in source.items() if _SECRET_NAME.search(name) and len(value) >= _MIN_SECRET}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def redact(text: str, hidden: tuple[str, ...]) -> str:
    """`text` without the `hidden` values and without user and password in URLs."""
    for value in hidden:
        text = text.replace(value, REDACTED)
    return _URL_PASSWORD.sub(REDACTED, text)


def to_message(run: RunPayload) -> dict[str, Any]:
    """`run` as JSON-able values that MLflow accepts. Raises InputError where two names become one.

    A metric that is no finite number is not logged (MLflow 3.17.2 keeps NaN as 0), but named in the tag `NO_VALUE`.
    """
    if "'" in run.key:
        raise InputError(f"tracking key {run.key!r} contains a single quote, which MLflow's search cannot express")
    hidden = secrets()
    metrics = {name: float(value) for name, value in _renamed("metric", run.metrics).items()}
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    without = ", ".join(sorted(metrics.keys() - finite))
    tags = {**run.tags, Tag.NO_VALUE: without} if without else run.tags
    return {
        "op": "run",
        "key": run.key,
        "name": redact(run.name, hidden),
        "parent_key": run.parent_key,
        "params": _texts("parameter", run.params, MAX_PARAM, hidden),
        "metrics": finite,
        "tags": _texts("tag", tags, MAX_TAG, hidden),
        "dataset": run.dataset,
        "artifacts": [str(file.absolute()) for file in run.artifacts],
        "status": run.status,
        "started_ms": None if run.started_at is None else round(run.started_at * 1000),
        "ended_ms": None if run.ended_at is None else round(run.ended_at * 1000),
        "once": run.once,
        "compared": list(run.compared),
        "judged": None if run.judged is None else str(run.judged.absolute()),
    }


def _texts(kind: str, values: Mapping[str, Scalar], limit: int, hidden: tuple[str, ...]) -> dict[str, str]:
    shown = {name: redact(str(value), hidden) for name, value in values.items() if not _SECRET_NAME.search(name)}
    return {
        name: text if len(text) <= limit else text[: limit - 1] + "…" for name, text in _renamed(kind, shown).items()
    }


def _renamed(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for name, value in values.items():
        short = mlflow_name(name)
        if short in renamed:
            raise InputError(f"{kind} {name!r} and another one are both called {short!r} in MLflow: rename one")
        renamed[short] = value
    return renamed


def mlflow_dataset(name: str, digest: str, counts: Mapping[str, int], folder: Path | None = None) -> dict[str, str]:
    """The benchmark a run was scored on, as MLflow's data set of a run; `folder` is where it was read from."""
    return {
        "name": name,
        "digest": digest[:MAX_DATASET_DIGEST],
        "source_type": "hopbench" if folder is None else "local",  # the latter is one that MLflow opens
        "source": json.dumps({"name": name} if folder is None else {"uri": str(folder)}),
        "schema": json.dumps({"mlflow_colspec": QUESTION_COLUMNS}),
        "profile": json.dumps(dict(counts)),
    }


VIEW_TAG = "mlflow.sharedViewState."
"""An experiment's tag with this prefix is a saved view of its runs page; the rest of its name is the view's id."""
MAX_COMPARED = 100
"""The page asks for each run by itself, so its time grows with their number."""


def view_id(metric: str) -> str:
    """The id of HopBench's view by `metric`."""
    return f"hopbench-{mlflow_name(metric)}"


def is_server(uri: str) -> bool:
    """Whether a tracking URI is a server's, whose pages a browser can open."""
    return uri.startswith(("http://", "https://"))


def runs_page(server: str, experiment: str, metric: str | None) -> str:
    """The runs of an experiment by `metric`, best first; without one, as MLflow shows them.

    Without a server the link is for MLflow's own pages.
    """
    view = f"&viewStateShareKey={view_id(metric)}" if metric else ""
    # Without its workflow type, MLflow 3 opens the page of language models' traces.
    return f"{server and server.rstrip('/') + '/'}#/experiments/{experiment}/runs?workflowType=machine_learning{view}"


def comparison_page(server: str, experiment: str, run_ids: Sequence[str]) -> str:
    """MLflow's comparison of the runs with these ids, at most the first hundred (see `runs_page`)."""
    asked = [json.dumps(list(ids), separators=(",", ":")) for ids in (run_ids[:MAX_COMPARED], [experiment])]
    runs, experiments = (quote(text, safe="[],") for text in asked)
    return f"{server and server.rstrip('/') + '/'}#/compare-runs?runs={runs}&experiments={experiments}"


TABLE = "questions.json"
TABLE_TAG: Mapping[str, str] = {Tag.TABLES: json.dumps([{"path": TABLE, "type": "table"}])}
"""Names the table to MLflow, which shows no other file in that view."""


def write_table(folder: Path, rows: pd.DataFrame, questions: Sequence[BenchmarkQuestion]) -> Path:
    """Write the scores of a label, indexed by question id, into `folder` as a table of MLflow; returns the file."""
    scores = rows.drop(columns="ranked_ids", errors="ignore")
    known = {question.id: question for question in questions}
    values = scores.astype(object).where(scores.notna(), None).values.tolist()
    # MLflow groups by the first column, and compares the second one until told otherwise.
    table = {
        "columns": ["question", *scores.columns, "question_id", "type", "answer"],
        "data": [
            [known[name].text, *row, name, known[name].type, known[name].answer]
            for name, row in zip(scores.index, values, strict=True)
        ],
    }
    write_atomically(folder / TABLE, json.dumps(table, ensure_ascii=False).encode())
    return folder / TABLE
