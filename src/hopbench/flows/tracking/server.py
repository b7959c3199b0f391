"""MLflow's pages on the runs of a home: `hopbench open --mlflow`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hopbench.flows.settings.home import Home
from hopbench.flows.settings.ports import listener_on
from hopbench.flows.tracking.client import tracking_uri
from hopbench.flows.tracking.experiments import PRIMARY_TAG, experiment_id
from hopbench.flows.tracking.names import MODELS_EXPERIMENT
from hopbench.flows.tracking.pages import is_server, runs_page
from hopbench.flows.tracking.payload import redact, secrets
from hopbench.flows.tracking.reader import TrackingReader
from hopbench.retrieval.support.errors import IncompleteError, InputError

if TYPE_CHECKING:
    from mlflow import MlflowClient

START_SECONDS = 120
STOP_SECONDS = 10


def experiment_pages(home: Home, server: str) -> dict[str, str]:
    """The page of each experiment's runs on `server`, by name, the one with the newest run first.

    An experiment of an older HopBench gets its view here. Raises InputError where nothing was tracked yet.
    """
    from hopbench.eval.metrics import PRIMARY

    client, uri = TrackingReader(home).client, tracking_uri(home)
    found = {}
    for experiment in client.search_experiments(filter_string="name LIKE 'hopbench/%'"):
        if experiment.name != MODELS_EXPERIMENT:
            metric = experiment.tags.get(PRIMARY_TAG) or PRIMARY
            number = experiment_id(client, experiment.name, uri, home.mlartifacts.as_uri(), metric)
            found[experiment.name] = _newest(client, number), runs_page(server, number, metric)
    if not found:
        raise InputError(f"no run was tracked at {redact(uri, secrets())} yet: hopbench run, nightly or sweep does")
    return {name: found[name][1] for name in sorted(found, key=lambda name: -found[name][0])}


def _newest(client: MlflowClient, experiment: str) -> int:
    runs = client.search_runs([experiment], max_results=1, order_by=["attributes.start_time DESC"])
    return (runs[0].info.start_time or 0) if runs else 0


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
            address = f"http://127.0.0.1:{port}"
            _wait(server, address, str(log))
            yield address
        finally:
            _stop(server)


def command(home: Home, port: int) -> list[str]:
    """The command of MLflow's server; its store is named in the environment."""
    place = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    return [sys.executable, "-m", "mlflow", "server", "--default-artifact-root", home.mlartifacts.as_uri(), *place]


def _wait(server: subprocess.Popen[bytes], address: str, log: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise IncompleteError(f"MLflow's server did not start (exit code {server.poll()}): {log} says why; try again")


def _stop(server: subprocess.Popen[bytes]) -> None:
    for way in (signal.SIGTERM, signal.SIGKILL):
        if server.poll() is not None:
            return
        os.killpg(server.pid, way)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
