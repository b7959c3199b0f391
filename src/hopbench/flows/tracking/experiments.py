"""Experiments in MLflow: found or made, described, and given a view of their runs by the primary metric.

The columns of MLflow's runs page are fixed (source, model, data set) unless a saved view of the experiment names
others. A view is an experiment's tag, and its link opens the page with it: see `hopbench.flows.tracking.pages`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hopbench.flows.tracking.names import Param
from hopbench.flows.tracking.pages import VIEW_TAG, runs_page, view_id
from hopbench.flows.tracking.payload import mlflow_name
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from mlflow import MlflowClient

NOTE = "mlflow.note.content"
KIND = "mlflow.experimentKind"
MODEL_TRAINING = "custom_model_development"  # of MLflow's kinds the one whose pages begin with the runs
PRIMARY_TAG = "mlflow.experiment.primaryMetric.name"
PARAMS = (Param.LABEL, Param.DATASET, Param.QUESTIONS)
LABEL_WIDTH = 260  # pixels
METRICS = ("recall@5", "nDCG@10", "coverage", "latency_ms_p50")


def experiment_id(client: MlflowClient, name: str, uri: str, artifacts: str, metric: str | None = None) -> str:
    """The id of the experiment called `name`, made where it is missing, with a view by `metric` (as HopBench names it).

    `artifacts` is where files of its runs go, unless `uri` is a server's, which decides itself. Tags that are there
    already, such as a description that someone has edited, stay. Raises InputError for one that was deleted in MLflow.
    """
    found = client.get_experiment_by_name(name)
    if found is None:
        location = None if uri.startswith(("http://", "https://", "databricks")) else artifacts
        made, known = str(client.create_experiment(name, artifact_location=location)), {}
    elif found.lifecycle_stage == "deleted":
        number = found.experiment_id
        raise InputError(
            f"the experiment {name!r} was deleted in MLflow: restore it (`mlflow experiments restore -x {number}`), or "
            f"remove it for good (`mlflow gc --experiment-ids {number}`); MLFLOW_TRACKING_URI names the store to both"
        )
    else:
        made, known = str(found.experiment_id), dict(found.tags)
    for tag, value in _tags(name, made, metric).items():
        if tag not in known:
            client.set_experiment_tag(made, tag, value())
    return made


def _tags(name: str, experiment: str, metric: str | None) -> dict[str, Callable[[], str]]:
    """The tags of an experiment; a value is computed only where it is missing."""
    kind = {KIND: lambda: MODEL_TRAINING}
    if metric is None:
        return kind
    link = runs_page("", experiment, metric)
    return kind | {
        PRIMARY_TAG: lambda: mlflow_name(metric),
        NOTE: lambda: f"HopBench's runs of {name}. [The runs by {metric}, best first]({link})",
        f"{VIEW_TAG}{view_id(metric)}": lambda: saved_view(metric),
    }


def saved_view(metric: str) -> str:
    """A saved view as MLflow 3 stores it: the runs by `metric`, best first, with it, label and data set as columns."""
    from hopbench.eval.metrics import rank_key  # needed once for an experiment: its import takes a second

    columns = [
        f"metrics.`{mlflow_name(metric)}`",
        *(f"params.`{param}`" for param in PARAMS),
        "attributes.`Dataset`",
        *(f"metrics.`{mlflow_name(other)}`" for other in METRICS if other != metric),
    ]
    state = {
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": {f"params.`{Param.LABEL}`": LABEL_WIDTH},
        "orderByKey": columns[0],
        "orderByAsc": rank_key(metric, 0.0) < rank_key(metric, 1.0),
    }
    return json.dumps({"name": f"by {metric}", "createdAt": round(time.time() * 1000), "state": json.dumps(state)})
