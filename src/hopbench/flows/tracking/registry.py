"""Exported retrievers in MLflow's model registry, where teams look for the model to serve."""

from __future__ import annotations

import io
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import tracking_uri, writers_lock
from hopbench.flows.tracking.experiments import experiment_id
from hopbench.flows.tracking.names import MODELS_EXPERIMENT
from hopbench.retrieval.support.locking import exclusive

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

ALIAS = "champion"
PROGRESS_BAR = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


@dataclass(frozen=True)
class Registered:
    """A version of a registered model."""

    name: str
    version: str
    alias: str

    @property
    def uri(self) -> str:
        """How MLflow loads it: `models:/hopbench-NAME@champion`."""
        return f"models:/{self.name}@{self.alias}"


def model_name(dataset: str) -> str:
    """The registered model of a data set: `hopbench-NAME`."""
    return "hopbench-" + re.sub(r"[^\w.-]+", "-", dataset)


def register(home: Home, bundle: Path, dataset: str, label: str, question: str, alias: str = ALIAS) -> Registered:
    """Log an exported retriever as a pyfunc model with signature and example, and give the new version the alias.

    `question` is the example. The store is the one that MLFLOW_TRACKING_URI names, else the home's own.
    """
    home.prepare()
    home.apply_environment()
    uri = tracking_uri(home)
    from hopbench.flows.tracking.schema import bring_up_to_date, refuse_closed

    refuse_closed(uri)
    import mlflow
    import pandas as pd

    name = model_name(dataset)
    with exclusive(writers_lock(home)):
        bring_up_to_date(uri, home.mlflow_db)
        mlflow.set_tracking_uri(uri)
        mlflow.set_registry_uri(uri)
        client = mlflow.MlflowClient()
        experiment = experiment_id(client, MODELS_EXPERIMENT, uri, home.mlartifacts.as_uri())
    with _quiet(), mlflow.start_run(experiment_id=experiment, run_name=f"{label} on {dataset}"):
        mlflow.log_params({"label": label, "dataset": dataset})
        logged = mlflow.pyfunc.log_model(
            name="retriever",
            python_model=str(Path(__file__).with_name("served_model.py")),
            artifacts={"retriever": str(bundle)},
            signature=_signature(),
            input_example=pd.DataFrame({"question": [question]}),
            pip_requirements=[f"hopbench=={version('hopbench')}"],
            registered_model_name=name,
        )
    number = str(logged.registered_model_version)
    client.set_registered_model_alias(name, alias, number)
    client.set_model_version_tag(name, number, "label", label)
    return Registered(name, number, alias)


@contextmanager
def _quiet() -> Iterator[None]:
    """MLflow without its progress bars, its notes on standard error, and its advice on type hints."""
    logger = logging.getLogger("mlflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    before = os.environ.get(PROGRESS_BAR)
    os.environ[PROGRESS_BAR] = "false"
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        os.environ.pop(PROGRESS_BAR, None)
        if before is not None:
            os.environ[PROGRESS_BAR] = before


def _signature() -> ModelSignature:
    """Questions in, passages out, `k` as a parameter of the request."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    passage = Object(
        [
            Property("rank", DataType.long),
            Property("id", DataType.string),
            Property("title", DataType.string),
            Property("text", DataType.string),
            Property("score", DataType.double),
        ]
    )
    return ModelSignature(
        inputs=Schema([ColSpec(DataType.string, "question")]),
        outputs=Schema([ColSpec(Array(passage), "passages")]),
        params=ParamSchema([ParamSpec("k", DataType.long, 5)]),
    )
