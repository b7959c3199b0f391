"""The data that is logged about a run, within MLflow's limits and without secrets."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hopbench.flows.tracking.names import Tag
from hopbench.retrieval.support.errors import InputError

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
class Dataset:
    """The benchmark a run was scored on; `profile` holds its counts, `folder` is where it was read from."""

    name: str
    digest: str
    profile: Mapping[str, int] = field(default_factory=dict)
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file to store with a run, under `folder` there."""

    path: Path
    folder: str = ""


@dataclass(frozen=True, slots=True)
class RunPayload:
    """One MLflow run. `key` identifies it: logging a key again updates its run.

    `parent_key` makes it a child of a run that was logged before. Times are seconds since the epoch; give them when
    the run may be written again, since they are part of each metric's identity. Status RUNNING stays open until the
    key is logged again or the tracker ends. With `once`, a finished run of that key is left unchanged. The description
    gets a link to MLflow's comparison of the runs whose keys are `compared`. The questions in the file `judged` become
    traces (`hopbench.flows.tracking.traces`).
    """

    key: str
    name: str
    parent_key: str | None = None
    params: Mapping[str, Scalar] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    dataset: Dataset | None = None
    artifacts: tuple[Artifact, ...] = ()
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
        "dataset": None if run.dataset is None else _dataset(run.dataset),
        "artifacts": [[str(artifact.path.absolute()), artifact.folder] for artifact in run.artifacts],
        "status": run.status,
        "started_ms": _milliseconds(run.started_at),
        "ended_ms": _milliseconds(run.ended_at),
        "once": run.once,
        "compared": list(run.compared),
        "judged": None if run.judged is None else str(run.judged.absolute()),
    }


def _texts(kind: str, values: Mapping[str, Scalar], limit: int, hidden: tuple[str, ...]) -> dict[str, str]:
    kept = {name: value for name, value in values.items() if not _SECRET_NAME.search(name)}
    texts = {name: redact(str(value), hidden) for name, value in _renamed(kind, kept).items()}
    return {name: text if len(text) <= limit else text[: limit - 1] + "…" for name, text in texts.items()}


def _renamed(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for name, value in values.items():
        short = mlflow_name(name)
        if short in renamed:
            raise InputError(f"{kind} {name!r} and another one are both called {short!r} in MLflow: rename one")
        renamed[short] = value
    return renamed


def _dataset(dataset: Dataset) -> dict[str, Any]:
    local = dataset.folder is not None
    source = {"uri": str(dataset.folder)} if local else {"name": dataset.name}
    return {
        "name": dataset.name,
        "digest": dataset.digest[:MAX_DATASET_DIGEST],
        "source_type": "local" if local else "hopbench",  # the first is one that MLflow opens
        "source": json.dumps(source),
        "schema": json.dumps({"mlflow_colspec": QUESTION_COLUMNS}),
        "profile": json.dumps(dict(dataset.profile)),
    }


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
