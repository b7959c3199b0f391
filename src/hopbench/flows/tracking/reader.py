"""Reads earlier runs from MLflow: by run id, or the newest of a label, with their artifacts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hopbench.eval.metrics import mlflow_name
from hopbench.eval.metrics.registry import PRIMARIES
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import tracking_uri, writers_lock
from hopbench.flows.tracking.names import MODELS_EXPERIMENT, SWEEPS_EXPERIMENT, Param, Tag
from hopbench.flows.tracking.payload import redact, secrets
from hopbench.retrieval.support.errors import InputError
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
    note: str | None = None  # what was done to the database first
    _folders: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def client(self) -> MlflowClient:
        """The client; importing it takes seconds.

        Raises InputError where nothing was ever tracked, or where the database is an older MLflow's and not the home's.
        """
        uri = tracking_uri(self.home)
        if uri == f"sqlite:///{self.home.mlflow_db}" and not self.home.mlflow_db.is_file():
            raise InputError(f"no run was tracked in {self.home.root} yet: name the --out folders of runs")
        self.home.apply_environment()
        from hopbench.flows.tracking.schema import bring_up_to_date, refuse_closed

        refuse_closed(uri)
        from mlflow import MlflowClient

        with exclusive(writers_lock(self.home)):
            self.note = bring_up_to_date(uri, self.home.mlflow_db)
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
        if run.id not in self._folders:
            self._folders[run.id] = self._fetched(run)
        return self._folders[run.id]

    def _fetched(self, run: TrackedRun) -> Path:
        stored = {file.path for file in self.client.list_artifacts(run.id)}
        if not {"results.json", "questions.parquet"} <= stored:
            gone = run.tags.get(Tag.ARTIFACTS)
            why = f"its files were {gone}" if gone else "it is no finished run of HopBench, or its files are gone"
            raise InputError(f"run {run.id} ({run.name}) cannot be compared question by question: {why}")
        uri = urlsplit(str(self.client.get_run(run.id).info.artifact_uri))
        if uri.scheme in ("", "file"):
            return Path(url2pathname(uri.path))
        target = self.home.scratch / "compared" / run.id
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if name in stored:
                self.client.download_artifacts(run.id, name, str(target))
        return target


def _plain(run: Any) -> TrackedRun:
    tags = dict(run.data.tags)
    parent, started = tags.get(Tag.PARENT, ""), (run.info.start_time or 0) / 1000
    label = str(run.data.params.get(Param.LABEL, ""))
    return TrackedRun(run.info.run_id, str(run.info.run_name), parent, tags, started, label)
