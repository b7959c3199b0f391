"""MLflow's writer in the process of the test: the same writer and messages, without a process that imports mlflow."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Self, cast

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker, tracking_uri, writers_lock
from hopbench.flows.tracking.writer import Writer, answer


class WriterHere:
    """In place of the writer's process, for `Tracker`: what is written to `stdin` is obeyed and answered at once."""

    pid = os.getpid()

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._answers: list[str] = []
        self._ended = False
        self.stdin = self.stdout = self

    def write(self, line: str) -> None:
        message = json.loads(line)
        self._ended = self._ended or message["op"] == "end"
        self._answers.append(json.dumps(answer(self._writer, message)) + "\n")

    def flush(self) -> None:
        pass

    def readline(self) -> str:
        return self._answers.pop(0)

    def close(self) -> None:
        if not self._ended:
            self._writer.end("KILLED")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        pass


def starting_here(empty: Callable[[], Path]) -> Callable[..., Tracker]:
    """What `Tracker.start` is in tests; a home without a database gets a copy of the one that `empty` names."""

    def start(
        cls: type[Tracker], home: Home, experiment: str, metric: str | None = None, after: Event | None = None
    ) -> Tracker:
        home.prepare()
        home.apply_environment()
        uri = tracking_uri(home)
        if uri == f"sqlite:///{home.mlflow_db}":
            copy_database(empty(), home.mlflow_db)
        writer = Writer(uri, experiment, home.mlartifacts.as_uri(), writers_lock(home), home.mlflow_db, metric)
        return cls(uri, cast("Any", WriterHere(writer)), home.logs / "mlflow-writer.log", metric, after)

    return start


def copy_database(source: Path, target: Path) -> None:
    """Copy an SQLite database to where there is none yet."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)


def empty_database(folder: Path) -> Path:
    """MLflow's database before its first run, made once in `folder`, which all workers share: that takes seconds."""
    file = folder / "empty-mlflow.db"
    with (folder / "empty-mlflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            unfinished = file.with_suffix(".new")
            # In a process of its own: the migrations' logging configuration silences the loggers that tests listen to.
            code = "import sys; from mlflow import MlflowClient; MlflowClient(*sys.argv[1:]).search_experiments()"
            uri = f"sqlite:///{unfinished}"
            environment = {**os.environ, **Home(folder).environment(os.environ)}
            subprocess.run([sys.executable, "-c", code, uri, uri], env=environment, check=True, capture_output=True)
            os.replace(unfinished, file)
    return file
