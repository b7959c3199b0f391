"""Experiments in MLflow with their views of runs, and exported retrievers in its model registry."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import tracking_uri, writers_lock
from hopbench.flows.tracking.payload import (
    MODELS_EXPERIMENT,
    VIEW_TAG,
    Param,
    mlflow_name,
    redact,
    runs_page,
    secrets,
    view_id,
)
from hopbench.retrieval.llm.endpoint import refusal
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.locking import exclusive

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.models import ModelSignature

NOTE = "mlflow.note.content"
KIND = "mlflow.experimentKind"
MODEL_TRAINING = "custom_model_development"  # of MLflow's kinds the one whose pages begin with the runs
PRIMARY_TAG = "mlflow.experiment.primaryMetric.name"
PARAMS = (Param.LABEL, Param.DATASET, Param.QUESTIONS)
LABEL_WIDTH = 260  # pixels


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
    tags: dict[str, Callable[[], str]] = {KIND: lambda: MODEL_TRAINING}  # a value is computed only where it is missing
    if metric is not None:
        link = runs_page("", made, metric)
        tags[PRIMARY_TAG] = lambda: mlflow_name(metric)
        tags[NOTE] = lambda: f"HopBench's runs of {name}. [The runs by {metric}, best first]({link})"
        tags[f"{VIEW_TAG}{view_id(metric)}"] = lambda: saved_view(metric)
    for tag, value in tags.items():
        if tag not in known:
            client.set_experiment_tag(made, tag, value())
    return made


def saved_view(metric: str) -> str:
    """A saved view as MLflow 3 stores it: the runs by `metric`, best first, with it, label and data set as columns."""
    from hopbench.eval.metrics import rank_key, shown_in  # needed once for an experiment: its import takes a second

    columns = [
        f"metrics.`{mlflow_name(metric)}`",
        *(f"params.`{param}`" for param in PARAMS),
        "attributes.`Dataset`",
        *(
            f"metrics.`{mlflow_name(other)}`"
            for other in (*shown_in("mlflow"), "coverage", "latency_ms_p50")
            if other != metric
        ),
    ]
    state = {
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": {f"params.`{Param.LABEL}`": LABEL_WIDTH},
        "orderByKey": columns[0],
        "orderByAsc": rank_key(metric, 0.0) < rank_key(metric, 1.0),
    }
    return json.dumps({"name": f"by {metric}", "createdAt": round(time.time() * 1000), "state": json.dumps(state)})


DATABASES = ("sqlite", "postgresql", "mysql", "mssql")  # what else MLflow opens is a server with a database of its own
DIGITS = 12


def refuse_other_schema(uri: str) -> None:
    """Raise InputError where the database at `uri` has the schema of another MLflow; it is left as it is."""
    scheme, _, path = uri.partition(":///")
    if urlsplit(uri).scheme.partition("+")[0] not in DATABASES or (scheme == "sqlite" and not Path(path).exists()):
        return
    import mlflow
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    with create_engine(uri, poolclass=NullPool).connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    script = ScriptDirectory(str(Path(mlflow.__file__).parent / "store" / "db_migrations"))
    newest = str(script.get_current_head())
    if current in (None, newest):
        return
    shown = redact(uri, secrets())
    schemas = f"its schema is {str(current)[:DIGITS]}, that of MLflow {version('mlflow')} is {newest[:DIGITS]}"
    if all(revision.revision != current for revision in script.walk_revisions()):
        raise InputError(
            f"MLflow's database at {shown} was written by a newer MLflow: {schemas}. Update HopBench, or name another "
            "database with MLFLOW_TRACKING_URI"
        )
    raise InputError(
        f"MLflow's database at {shown} is that of an older MLflow: {schemas}. Others may use it, so it was not "
        f"touched: make a copy of it, then run: mlflow db upgrade {shown}"
    )


def refuse_closed(uri: str) -> None:
    """Raise InputError where MLflow's server is named and nothing listens there: its client would try for minutes."""
    reason = refusal(uri) if uri.startswith(("http://", "https://")) else None
    if reason is not None:
        shown = redact(uri, secrets())
        raise InputError(f"nothing answers at MLFLOW_TRACKING_URI ({shown}): {reason}. Start the server or correct it")


ALIAS = "champion"
PROGRESS_BAR = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


def model_name(dataset: str) -> str:
    """The registered model of a data set: `hopbench-NAME`."""
    return "hopbench-" + re.sub(r"[^\w.-]+", "-", dataset)


def register(home: Home, bundle: Path, dataset: str, label: str, question: str) -> tuple[str, str]:
    """Log an exported retriever as a pyfunc model and make the new version the champion; returns its URI and number.

    `question` is the example. The store is the one that MLFLOW_TRACKING_URI names, else the home's own.
    """
    home.prepare()
    home.apply_environment()
    uri = tracking_uri(home)

    refuse_closed(uri)
    import mlflow
    import pandas as pd

    name = model_name(dataset)
    with exclusive(writers_lock(home)):
        refuse_other_schema(uri)
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
    client.set_registered_model_alias(name, ALIAS, number)
    client.set_model_version_tag(name, number, "label", label)
    return f"models:/{name}@{ALIAS}", number


@contextmanager
def _quiet() -> Iterator[None]:
    """MLflow without its progress bars, its notes on standard error, and its advice on type hints."""
    logger, before = logging.getLogger("mlflow"), os.environ.get(PROGRESS_BAR)
    level = logger.level
    logger.setLevel(logging.ERROR)
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

    texts = [Property(name, DataType.string) for name in ("id", "title", "text")]
    passage = Object([Property("rank", DataType.long), *texts, Property("score", DataType.double)])
    return ModelSignature(
        inputs=Schema([ColSpec(DataType.string, "question")]),
        outputs=Schema([ColSpec(Array(passage), "passages")]),
        params=ParamSchema([ParamSpec("k", DataType.long, 5)]),
    )
