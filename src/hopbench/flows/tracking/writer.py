"""The one process that writes MLflow.

    python -m hopbench.flows.tracking.writer EXPERIMENT ARTIFACTS LOCK OWN [METRIC]

`import mlflow` takes 5 s and its first run on an empty database 3 s more, so this happens beside the main process.
Each line of standard input is a message of `hopbench.flows.tracking.payload.to_message`; each is answered by one line
`{"key", "run_id", "error", "note"}`. Standard input that closes without an `end` message means that the main process
was killed: runs still open are then marked KILLED.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hopbench.flows.tracking.client import lower_priority
from hopbench.flows.tracking.payload import MAX_TAG, Tag, comparison_page, redact, secrets
from hopbench.flows.tracking.registry import experiment_id
from hopbench.retrieval.support.errors import HopBenchError, exhausted
from hopbench.retrieval.support.locking import exclusive
from hopbench.retrieval.support.sqlite_files import damage, heal

if TYPE_CHECKING:
    from mlflow import MlflowClient


def folder_in(place: str, ours: Path) -> Path | None:
    """The folder that an artifact URI names, where that is within `ours`."""
    parts = urlsplit(place)
    folder = Path(url2pathname(parts.path))
    within = folder.is_relative_to(ours) and ".." not in folder.parts
    return folder if parts.scheme in ("", "file") and within else None


def refuse_secrets(path: Path, hidden: tuple[str, ...]) -> None:
    """Raise ValueError where a file contains one of these values."""
    content = path.read_bytes()
    if any(value.encode() in content for value in hidden):
        raise ValueError(f"{path.name} contains the value of a secret environment variable; it was not stored")


VALUES_PER_BATCH = {"metrics": 800, "params": 100, "tags": 100}  # at most 1,000 in a batch
NICENESS = 10  # a tenth of a processor that another process wants as well


class Writer:
    """Creates and updates the runs of one experiment; `uri` is a tracking server or an SQLAlchemy database.

    `own` is the home's database, which is repaired here if it is damaged; `note` reports that. The experiment's page
    shows the runs by `metric`.

    `lock` is held while a schema, an experiment or a run may be created: MLflow's own lock lets two first starts
    migrate one database together, and two writers of one key would each create its run.
    """

    def __init__(
        self, uri: str, experiment: str, artifacts: str, lock: Path, own: Path, metric: str | None = None
    ) -> None:
        self._uri = uri
        self._own = own
        self.note: str | None = None
        self._experiment = experiment
        self._artifacts = artifacts
        self._ours = Path(url2pathname(urlsplit(artifacts).path))
        self._metric = metric
        self._lock = lock
        self._hidden = secrets()
        self._run_ids: dict[str, str] = {}
        self._places: dict[str, str] = {}  # run id → artifact URI
        self._made: set[str] = set()  # keys whose runs were created here
        self._open: set[str] = set()

    @cached_property
    def client(self) -> MlflowClient:
        """The client; importing it takes seconds."""
        # The import allocates much and frees nothing: collecting there costs one of its four seconds.
        gc.disable()
        from mlflow import MlflowClient

        gc.enable()
        return MlflowClient(tracking_uri=self._uri, registry_uri=self._uri)

    @cached_property
    def experiment_id(self) -> str:
        """The experiment, created on first use."""
        return experiment_id(self.client, self._experiment, self._uri, self._artifacts, self._metric)

    def prepare(self) -> str:
        """Create the database's schema and the experiment where they are missing; returns the experiment's id."""
        from hopbench.flows.tracking.registry import refuse_closed, refuse_other_schema

        refuse_closed(self._uri)
        with exclusive(self._lock):
            consequence = "what is lost of past runs stays in their folders"
            ours = self._uri == f"sqlite:///{self._own}" and damage(self._own) is not None
            self.note = heal(self._own, consequence) if ours else None
            refuse_other_schema(self._uri)
            return self.experiment_id

    def write(self, message: dict[str, Any]) -> str:
        """Create or update one run; returns its MLflow id."""
        parent, key = message["parent_key"], message["key"]
        # There is none yet where its parent was created here, and the key begins with it.
        new = parent in self._made and key not in self._run_ids and key.startswith(f"{parent}/")
        with exclusive(self._lock):
            known = None if new else self._find(key)
            if known is not None and message["once"] and self.client.get_run(known).info.status == "FINISHED":
                return known
            if Tag.CHAMPION in message["tags"]:
                self._dethrone(message["tags"][Tag.CHAMPION])
            run_id = known or self._create(message)
        self._run_ids[key] = run_id
        self._open.add(run_id)
        self._log_values(run_id, message, known is not None)
        for path in message["artifacts"]:
            self._store(run_id, Path(path))
        if message["judged"] is not None:
            from hopbench.flows.tracking.traces import log_traces

            file, at_ms = Path(message["judged"]), message["started_ms"] or message["ended_ms"]
            refuse_secrets(file, self._hidden)
            log_traces(self._uri, self.experiment_id, run_id, file, at_ms or round(time.time() * 1000))
        if message["status"] != "RUNNING":
            self.client.set_terminated(run_id, message["status"], message["ended_ms"])
            self._open.discard(run_id)
        return run_id

    def drop_artifacts(self, key: str) -> str | None:
        """Remove the files of a run, where they are in the home, and record that in a tag; None for an unknown key."""
        run_id = self._find(key)
        if run_id is None:
            return None
        folder = folder_in(self._place(run_id), self._ours)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self.client.set_tag(run_id, Tag.ARTIFACTS, "removed by --keep")
        return run_id

    def crown(self, key: str, digest: str) -> str:
        """Give the run of `key` the champion tag of a benchmark, and remove it from the run that had it."""
        run_id = self._find(key)
        if run_id is None:
            raise LookupError(f"{key!r} has not been written, so it cannot be a champion")
        with exclusive(self._lock):
            self._dethrone(digest)
            self.client.set_tag(run_id, Tag.CHAMPION, digest)
        return run_id

    def _dethrone(self, digest: str) -> None:
        """Remove a benchmark's champion tag from the run that has it: there is one champion."""
        everywhere = [experiment.experiment_id for experiment in self.client.search_experiments()]
        for run in self.client.search_runs(everywhere, f"tags.`{Tag.CHAMPION}` = '{digest}'"):
            self.client.delete_tag(run.info.run_id, Tag.CHAMPION)

    def end(self, status: str) -> None:
        """Close the runs that are still open."""
        for run_id in sorted(self._open):
            self.client.set_terminated(run_id, status)
        self._open.clear()

    def _find(self, key: str) -> str | None:
        if key not in self._run_ids:
            runs = self.client.search_runs([self.experiment_id], f"tags.`{Tag.KEY}` = '{key}'", max_results=1)
            if not runs:
                return None
            self._run_ids[key] = str(runs[0].info.run_id)
        return self._run_ids[key]

    def _create(self, message: dict[str, Any]) -> str:
        # The key goes in with the creation itself: the run of a writer killed here can be found.
        tags: dict[str, str] = {Tag.KEY: message["key"]}
        if message["parent_key"] is not None:
            parent = self._find(message["parent_key"])
            if parent is None:
                raise LookupError(f"its parent {message['parent_key']!r} has not been written")
            tags[Tag.PARENT] = parent
        run = self.client.create_run(
            self.experiment_id, message["started_ms"], {**message["tags"], **tags}, message["name"]
        )
        run_id = str(run.info.run_id)
        self._made.add(message["key"])
        self._places[run_id] = str(run.info.artifact_uri)
        return run_id

    def _log_values(self, run_id: str, message: dict[str, Any], known: bool) -> None:
        """Log metrics, parameters, tags and the data set; the description ends with a link to the `compared` runs."""
        from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

        stamp = message["ended_ms"] or round(time.time() * 1000)
        # A new run was created with its tags: each kind of value is a transaction.
        texts = dict(message["tags"]) if known or message["compared"] else {}
        ids = [found for key in message["compared"] if (found := self._find(key)) is not None]
        if len(ids) > 1:
            link = f"\n\n[Compare these runs]({comparison_page('', self.experiment_id, ids)})"
            texts[Tag.NOTE] = texts.get(Tag.NOTE, "")[: MAX_TAG - len(link)] + link
        left: dict[str, list[Any]] = {
            "metrics": [Metric(name, value, stamp, 0) for name, value in message["metrics"].items()],
            "params": [Param(name, value) for name, value in message["params"].items()],
            "tags": [RunTag(name, value) for name, value in texts.items()],
        }
        while any(left.values()):
            self.client.log_batch(run_id, **{kind: left[kind][:most] for kind, most in VALUES_PER_BATCH.items()})
            left = {kind: left[kind][most:] for kind, most in VALUES_PER_BATCH.items()}
        if message["dataset"] is not None:
            parts = (
                message["dataset"][part] for part in ("name", "digest", "source_type", "source", "schema", "profile")
            )
            tags = [InputTag("mlflow.data.context", "evaluation")]
            self.client.log_inputs(run_id, [DatasetInput(Dataset(*parts), tags)])

    def _place(self, run_id: str) -> str:
        if run_id not in self._places:
            self._places[run_id] = str(self.client.get_run(run_id).info.artifact_uri)
        return self._places[run_id]

    def _store(self, run_id: str, path: Path) -> None:
        refuse_secrets(path, self._hidden)
        local = folder_in(self._place(run_id), self._ours)
        if local is None:
            self.client.log_artifact(run_id, str(path))
        else:  # as MLflow's client does after it has asked the database for the run and its data sets
            local.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, local)


def answer(writer: Writer, message: dict[str, Any]) -> dict[str, str | None]:
    """Handle one message; a failure is part of the answer, so that later runs are still written."""
    run_id: str | None = None
    reason: str | None = None
    try:
        match message["op"]:
            case "prepare":
                run_id = writer.prepare()
            case "end":
                writer.end(message["status"])
            case "drop_artifacts":
                run_id = writer.drop_artifacts(message["key"])
            case "champion":
                run_id = writer.crown(message["key"], message["digest"])
            case _:
                run_id = writer.write(message)
    except Exception as error:  # the reason travels to the main process, which raises it
        lacking = exhausted(error) or (error if isinstance(error, HopBenchError) else None)
        # Of another error its type too, and no SQL statement.
        plain = f"{type(error).__name__}: {str(error).partition(chr(10) + '[SQL')[0]}"
        reason = redact(plain if lacking is None else str(lacking), secrets())
    return {"key": message.get("key"), "run_id": run_id, "error": reason, "note": writer.note}


def serve(writer: Writer, lines: Iterable[str], answers: TextIO) -> None:
    """Answer each line up to the message `end`; without one, mark what is open as KILLED."""
    for line in lines:
        message = json.loads(line)
        answers.write(json.dumps(answer(writer, message)) + "\n")
        answers.flush()
        if message["op"] == "end":
            return
    writer.end("KILLED")


def main(experiment: str, artifacts: str, lock: str, own: str, metric: str = "") -> None:
    """Serve standard input for the store that MLFLOW_TRACKING_URI names."""
    answers = os.fdopen(os.dup(1), "w")
    lower_priority(NICENESS)
    os.dup2(2, 1)  # what a library prints must not look like an answer
    writer = Writer(os.environ["MLFLOW_TRACKING_URI"], experiment, artifacts, Path(lock), Path(own), metric or None)
    serve(writer, sys.stdin, answers)
    sys.stderr.flush()
    os._exit(0)  # all is written: taking down what `import mlflow` made would cost the waiting process a second


if __name__ == "__main__":
    main(*sys.argv[1:6])
