"""Writes the values of one run to MLflow, in as few requests as it takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hopbench.flows.tracking.names import Tag
from hopbench.flows.tracking.payload import MAX_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARAMS_PER_BATCH = 100
METRICS_PER_BATCH = 800  # with parameters and tags at most 1,000 in a batch


def log_values(client: MlflowClient, run_id: str, message: dict[str, Any], comparison: str) -> None:
    """Log metrics, parameters and tags of a message of `to_message`; its description ends with `comparison`."""
    from mlflow.entities import Metric, Param, RunTag

    stamp = message["ended_ms"] or round(time.time() * 1000)
    metrics = [Metric(name, value, stamp, 0) for name, value in message["metrics"].items()]
    params = [Param(name, value) for name, value in message["params"].items()]
    texts = message["tags"]
    if comparison:
        texts = {**texts, Tag.NOTE: texts.get(Tag.NOTE, "")[: MAX_TAG - len(comparison)] + comparison}
    tags = [RunTag(name, value) for name, value in texts.items()]
    while metrics or params or tags:
        first, metrics = metrics[:METRICS_PER_BATCH], metrics[METRICS_PER_BATCH:]
        some, params = params[:PARAMS_PER_BATCH], params[PARAMS_PER_BATCH:]
        few, tags = tags[:PARAMS_PER_BATCH], tags[PARAMS_PER_BATCH:]
        client.log_batch(run_id, metrics=first, params=some, tags=few)


def log_dataset(client: MlflowClient, run_id: str, dataset: dict[str, Any]) -> None:
    """Log the benchmark as the dataset that a run was evaluated on."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    parts = (dataset[part] for part in ("name", "digest", "source_type", "source", "schema", "profile"))
    client.log_inputs(run_id, [DatasetInput(Dataset(*parts), [InputTag("mlflow.data.context", "evaluation")])])
