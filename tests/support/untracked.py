"""Without MLflow, whose start takes longer than the command: a tracker that only keeps its payloads.

`python -m tests.support.untracked ARGUMENTS…` is the command line with it, for processes that are killed or repeated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Self

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.payload import RunPayload, Status


class QuietTracker(Tracker):
    """Keeps what would go to MLflow, for tests that look elsewhere: starting MLflow takes longer than a sweep."""

    latest: QuietTracker

    def __init__(self) -> None:
        self.payloads: list[RunPayload] = []
        self.notes: list[str] = []
        QuietTracker.latest = self

    @classmethod
    def start(cls, home: Home, experiment: str, metric: str | None = None, after: Event | None = None) -> Self:
        return cls()

    @property
    def pid(self) -> int:
        return os.getpid()

    @property
    def run_ids(self) -> Mapping[str, str]:
        """A run's id in MLflow is its key here."""
        return {payload.key: payload.key for payload in self.payloads}

    def links(self, keys: Sequence[str]) -> dict[str, str]:
        return {}

    def log(self, run: RunPayload) -> None:
        self.payloads.append(run)

    def close(self, unfinished: Status = "FINISHED") -> None:
        pass


if __name__ == "__main__":
    from hopbench.flows.cli.main import main

    Tracker.start = QuietTracker.start  # type: ignore[method-assign]
    main()
