"""Read earlier runs from MLflow, by run id or the newest of a label, and serve its pages (`hopbench open --mlflow`)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hopbench.eval.metrics import mlflow_name
from hopbench.eval.metrics.registry import PRIMARIES
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import listener_on
from hopbench.flows.tracking.client import tracking_uri, writers_lock
from hopbench.flows.tracking.payload import (
    MODELS_EXPERIMENT,
    SWEEPS_EXPERIMENT,
    Param,
    Tag,
    is_server,
    redact,
    runs_page,
    secrets,
)
from hopbench.flows.tracking.registry import PRIMARY_TAG, experiment_id
from hopbench.retrieval.support.errors import IncompleteError, InputError
from hopbench.retrieval.support.locking import exclusive

if TYPE_CHECKING:
    from mlflow import MlflowClient

DECIDING = tuple(map(mlflow_name, PRIMARIES))
"""What a run is compared on: one that has none of these was made without gold passages and answers."""
RUN_ID = re.compile(r"^[0-9a-f]{32}$")
FILES = ("results.json", "questions.parquet", "details.json.gz")


@dataclass(frozen=True)
class TrackedRun:
    """One run in MLflow; `parent` is empty for a parent, `label` for a run of several labels."""

    id: str
    name: str
    parent: str
    tags: Mapping[str, str]
    started: float = 0.0  # since the epoch, in seconds
    label: str = ""


@dataclass
class TrackingReader:
    """Reads the store that MLFLOW_TRACKING_URI names, else the home's own database."""

    home: Home
    _folders: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def client(self) -> MlflowClient:
        """The client; importing it takes seconds.

        Raises InputError where nothing was ever tracked, or where the database is another MLflow's.
        """
        uri = tracking_uri(self.home)
        if uri == f"sqlite:///{self.home.mlflow_db}" and not self.home.mlflow_db.is_file():
            raise InputError(f"no run was tracked in {self.home.root} yet: name the --out folders of runs")
        self.home.apply_environment()
        from hopbench.flows.tracking.registry import refuse_closed, refuse_other_schema

        refuse_closed(uri)
        from mlflow import MlflowClient

        with exclusive(writers_lock(self.home)):
            refuse_other_schema(uri)
        return MlflowClient(tracking_uri=uri, registry_uri=uri)

    def run(self, run_id: str) -> TrackedRun:
        """The run of that id. Raises InputError where there is none."""
        from mlflow.exceptions import MlflowException

        try:
            return _plain(self.client.get_run(run_id))
        except MlflowException as error:
            uri = redact(tracking_uri(self.home), secrets())
            raise InputError(f"MLflow at {uri} has no run {run_id}: {error.message}") from error

    def newest(self, label: str, digest: str | None) -> TrackedRun | None:
        """The newest finished run of a label that can be compared, on the benchmark of that digest if one is given.

        A run on a benchmark with neither gold nor answers is passed over: it has no metric to compare on.
        """
        if "'" in label:
            return None
        where = ["attributes.status = 'FINISHED'", f"params.label = '{label}'"]
        if digest is not None:
            where.append(f"tags.{Tag.BENCHMARK_DIGEST} = '{digest}'")
        everywhere = self.client.search_experiments()
        # A sweep's trials have labels too, but no files to compare question by question.
        experiments = [
            one.experiment_id for one in everywhere if one.name not in (SWEEPS_EXPERIMENT, MODELS_EXPERIMENT)
        ]
        order = ["attributes.start_time DESC"]
        results = [
            _plain(run)
            for metric in DECIDING
            for run in self.client.search_runs(
                experiments, " and ".join([*where, f"metrics.{metric} >= 0"]), max_results=1, order_by=order
            )
        ]
        return max(results, key=lambda run: run.started, default=None)

    def folder(self, run: TrackedRun) -> Path:
        """The files of a parent run: in place, or a copy in the home's scratch folder.

        Raises InputError where they are no longer stored.
        """
        if run.id in self._folders:
            return self._folders[run.id]
        stored = {file.path for file in self.client.list_artifacts(run.id)}
        if not {"results.json", "questions.parquet"} <= stored:
            gone = run.tags.get(Tag.ARTIFACTS)
            why = f"its files were {gone}" if gone else "it is no finished run of HopBench, or its files are gone"
            raise InputError(f"run {run.id} ({run.name}) cannot be compared question by question: {why}")
        uri = urlsplit(str(self.client.get_run(run.id).info.artifact_uri))
        folder = Path(url2pathname(uri.path))
        if uri.scheme not in ("", "file"):
            folder = self.home.scratch / "compared" / run.id
            folder.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                if name in stored:
                    self.client.download_artifacts(run.id, name, str(folder))
        self._folders[run.id] = folder
        return folder


def _plain(run: Any) -> TrackedRun:
    tags, about = dict(run.data.tags), run.info
    label = str(run.data.params.get(Param.LABEL, ""))
    started = (about.start_time or 0) / 1000
    return TrackedRun(about.run_id, str(about.run_name), tags.get(Tag.PARENT, ""), tags, started, label)


START_SECONDS = 120
STOP_SECONDS = 10


def experiment_pages(home: Home, server: str) -> dict[str, str]:
    """The page of each experiment's runs on `server`, by name, the one with the newest run first.

    An experiment without a view gets one here. Raises InputError where nothing was tracked yet.
    """
    from hopbench.eval.metrics import PRIMARY

    client, uri = TrackingReader(home).client, tracking_uri(home)
    found = []
    for experiment in client.search_experiments(filter_string="name LIKE 'hopbench/%'"):
        metric = experiment.tags.get(PRIMARY_TAG) or PRIMARY
        number = experiment_id(client, experiment.name, uri, home.mlartifacts.as_uri(), metric)
        runs = client.search_runs([number], max_results=1, order_by=["attributes.start_time DESC"])
        newest = (runs[0].info.start_time or 0) if runs else 0
        found.append((newest, experiment.name, runs_page(server, number, metric)))
    if not found:
        raise InputError(f"no run was tracked at {redact(uri, secrets())} yet: hopbench run, nightly or sweep does")
    return {name: page for _, name, page in sorted(found, key=lambda one: -one[0])}


@contextmanager
def mlflow_server(home: Home, port: int) -> Iterator[str]:
    """The address of MLflow's server: the one that MLFLOW_TRACKING_URI names, else one of our own on 127.0.0.1.

    Ours ends with the block. Raises InputError where the port is taken, IncompleteError where it does not start.
    """
    uri = tracking_uri(home)
    if is_server(uri):
        yield uri
        return
    with listener_on(port) as probe:
        port = int(probe.getsockname()[1])
    log = home.logs / "mlflow-server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command(home, port),
            # In the environment, not the arguments, which all users of the machine can read: a URI may hold a password.
            env={**os.environ, **home.environment(os.environ), "MLFLOW_BACKEND_STORE_URI": uri},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it has processes of its own, which end together
        )
        try:
            address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
            while not _answers(address):
                if server.poll() is not None or time.monotonic() > deadline:
                    code = server.poll()
                    raise IncompleteError(
                        f"MLflow's server did not start (exit code {code}): {log} says why; try again"
                    )
                time.sleep(0.1)
            yield address
        finally:
            for way in (signal.SIGTERM, signal.SIGKILL):
                if server.poll() is None:
                    os.killpg(server.pid, way)
                    with suppress(subprocess.TimeoutExpired):
                        server.wait(STOP_SECONDS)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def command(home: Home, port: int) -> list[str]:
    """The command of MLflow's server; its store is named in the environment."""
    place = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    return [sys.executable, "-m", "mlflow", "server", "--default-artifact-root", home.mlartifacts.as_uri(), *place]
