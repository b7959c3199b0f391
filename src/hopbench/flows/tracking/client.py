"""Tracking: one MLflow run per trial under a parent, written by a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, cast

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.payload import (
    RunPayload,
    Status,
    comparison_page,
    is_server,
    redact,
    runs_page,
    secrets,
    to_message,
)
from hopbench.retrieval.support.errors import IncompleteError, exhausted_by_message, full

SESSION = "/proc/{process}/autogroup"
"""Linux may share processors among sessions before it does within them; the writer has a session of its own."""
MAX_REASONS = 5
WAITING_SECONDS = 0.1
CLOSING_SECONDS = 0.5


def lower_priority(niceness: int) -> None:
    """Let other processes go first, as long as the main process does not wait for this one.

    Where the system would not let it go back, this process keeps its share: on a busy machine the main process would
    wait for minutes.
    """
    if may_go_back():
        os.nice(niceness)
    with suppress(OSError):
        Path(SESSION.format(process="self")).write_text(str(niceness), encoding="ascii")


def may_go_back() -> bool:
    """Whether the system lets this process take back a lower priority (root, or RLIMIT_NICE); tried on one thread."""
    found: list[bool] = []

    def attempt() -> None:
        with suppress(OSError):
            os.nice(1)
            os.nice(-1)
            found.append(True)

    if sys.platform == "linux":  # elsewhere all threads of a process have one priority, and Windows has none
        trial = Thread(target=attempt)
        trial.start()
        trial.join()
    return bool(found)


def restore_priority(process: int) -> None:
    """Give a process that called `lower_priority` the share of this one, all of its threads."""
    if sys.platform != "linux":
        return
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):  # it may have ended
        Path(SESSION.format(process=process)).write_text(str(own), encoding="ascii")
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), own)


class TrackingError(IncompleteError):
    """Some runs did not reach MLflow; the results on disk are complete and the same command writes them again."""


def tracking_uri(home: Home) -> str:
    """MLFLOW_TRACKING_URI, else the SQLite database in `home`."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{home.mlflow_db}"


def writers_lock(home: Home) -> Path:
    """Held while a schema, an experiment or a run may be created."""
    return home.scratch / "mlflow.lock"


class Tracker:
    """Hands runs to the writer process in the order they are logged; `log` never waits for MLflow."""

    def __init__(
        self, uri: str, process: subprocess.Popen[str], log: Path, metric: str | None = None, after: Event | None = None
    ) -> None:
        self.uri = redact(uri, secrets())
        self._process = process
        self._log = log
        self._metric = metric
        self._after = after
        self._messages: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.run_ids: dict[str, str] = {}  # MLflow's run id by key, of what has been written so far
        self._reasons: dict[str, str] = {}
        self.notes: list[str] = []  # the writer's other notes; complete when closed
        self.experiment_id: str | None = None  # set as soon as the writer is ready
        self._closed = False
        self._courier = Thread(target=self._deliver, name="tracking", daemon=True)
        self._courier.start()

    @classmethod
    def start(cls, home: Home, experiment: str, metric: str | None = None, after: Event | None = None) -> Self:
        """Start the writer, which imports mlflow and prepares the database meanwhile.

        The experiment's page shows its runs by `metric`. Without something to write the writer waits for `after`: a
        server that the command waits for starts sooner when mlflow is not imported beside it.
        """
        home.prepare()
        home.apply_environment()
        uri, log = tracking_uri(home), home.logs / "mlflow-writer.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [
                    sys.executable,
                    *("-P", "-m", "hopbench.flows.tracking.writer"),
                    *(experiment, home.mlartifacts.as_uri(), str(writers_lock(home)), str(home.mlflow_db)),
                    *([] if metric is None else [metric]),
                ],
                # In the environment, not the arguments: a URI may hold a password. MLflow leaves locks in TMPDIR.
                env=os.environ | {"MLFLOW_TRACKING_URI": uri, "TMPDIR": str(home.scratch)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for the main process, which still has to record its results
            )
        return cls(uri, process, log, metric, after)

    @property
    def pid(self) -> int:
        """The writer's process."""
        return self._process.pid

    def links(self, keys: Sequence[str]) -> dict[str, str]:
        """Addresses of MLflow's pages, once the tracker is closed: `runs` of the experiment, `compare` of these keys.

        Empty where the store is a database: no server shows its pages.
        """
        if self.experiment_id is None or not is_server(self.uri):
            return {}
        ids = [self.run_ids[key] for key in keys if key in self.run_ids]
        found = {"runs": runs_page(self.uri, self.experiment_id, self._metric)}
        return found | ({"compare": comparison_page(self.uri, self.experiment_id, ids)} if len(ids) > 1 else {})

    def log(self, run: RunPayload) -> None:
        """Queue one run. Artifacts are read later: leave the files in place until the tracker is closed."""
        self._messages.put(to_message(run))

    def drop_artifacts(self, key: str) -> None:
        """Queue the removal of a run's files; its figures stay. Files on a tracking server are left alone."""
        self._messages.put({"op": "drop_artifacts", "key": key})

    def crown(self, key: str, benchmark_digest: str) -> None:
        """Queue moving a benchmark's champion tag to a logged run."""
        self._messages.put({"op": "champion", "key": key, "digest": benchmark_digest})

    def close(self, unfinished: Status = "FINISHED") -> None:
        """Wait until all is written; runs still RUNNING end as `unfinished`.

        Raises TrackingError with the writer's reasons where something was not written. Harmless when called twice.
        """
        if self._closed:
            return
        self._closed = True
        self._messages.put({"op": "end", "status": unfinished})
        self._messages.put(None)
        while self._courier.is_alive():  # from now on nothing is timed, and this process waits for the other
            restore_priority(self.pid)
            self._courier.join(CLOSING_SECONDS)
        if not self._reasons:
            return
        results = [*map(exhausted_by_message, self._reasons.values()), full(self._log.parent)]
        if (lacking := next(filter(None, results), None)) is not None:
            raise TrackingError(f"runs were not written to MLflow at {self.uri}: {lacking}")
        shown = "\n".join(f"  {reason}" for reason in list(dict.fromkeys(self._reasons.values()))[:MAX_REASONS])
        raise TrackingError(
            f"{len(self._reasons.keys() - {'end'})} runs were not written to MLflow at {self.uri}; all results on disk "
            "are kept. Check MLFLOW_TRACKING_URI and run the same command again.\n"
            f"{shown}\n  Details: {self._log}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close("FAILED" if isinstance(error, Exception) else "KILLED")
        except TrackingError as also:
            error.add_note(str(also))

    def _deliver(self) -> None:
        """Send queued messages and collect the answers until None comes; runs in the courier thread."""
        with self._process as process:
            while self._after is not None and self._messages.empty() and not self._after.wait(WAITING_SECONDS):
                pass
            reason = self._exchange({"op": "prepare"})
            while (message := self._messages.get()) is not None:
                # The writer ends with this message: its input stays open where a fork of this process still has it.
                failed = self._exchange(message) if message["op"] == "end" else reason or self._exchange(message)
                if failed is not None:
                    self._reasons[message.get("key") or "end"] = failed
            with suppress(BrokenPipeError):  # a writer that died has been reported already
                cast("Any", process.stdin).close()

    def _exchange(self, message: dict[str, Any]) -> str | None:
        """Send one message; returns the error, or None."""
        source, target = cast("Any", self._process.stdout), cast("Any", self._process.stdin)
        try:
            target.write(json.dumps(message) + "\n")
            target.flush()
            line = source.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return f"the writer ended with code {self._process.wait()}"
        answer = json.loads(line)
        if answer["note"] is not None and answer["note"] not in self.notes:
            self.notes.append(answer["note"])
        if answer["error"] is None and answer["key"] is not None:
            self.run_ids[answer["key"]] = answer["run_id"]
        elif message["op"] == "prepare":
            self.experiment_id = answer["run_id"]
        return cast("str | None", answer["error"])
