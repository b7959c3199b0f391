"""The progress of long work as an artifact of the flow run under way, and its steps in the run's log."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from hopbench.flows.orchestration.progress import Progress

if TYPE_CHECKING:
    from uuid import UUID

ARTIFACT_KEY = "hopbench-progress"
FIRST_SECONDS = 3.0  # shorter work has no progress artifact
EVERY_SECONDS = 3.0  # an update is a request
LOGGED_SECONDS = 0.05  # of shorter steps the list of task runs says enough

_log = logging.getLogger(__name__)


class RunProgress:
    """Progress that is also logged, step by step, and shown as an artifact of the flow run under way."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._expected = self._done = 0
        self._begun: list[tuple[str, float]] = []
        self._started = self._updated = time.monotonic()
        self._artifact: UUID | None = None
        self._lost = False

    def expect(self, steps: int) -> None:
        """See `Progress`."""
        self._expected += steps
        self._shown.expect(steps)

    def begin(self, name: str) -> None:
        """See `Progress`."""
        self._begun.append((name, time.monotonic()))
        self._shown.begin(name)

    def end(self) -> None:
        """See `Progress`."""
        self._done += 1
        if self._begun:
            name, begun = self._begun.pop()
            if (seconds := time.monotonic() - begun) >= LOGGED_SECONDS:
                _log.info("%s: %.1f s", name, seconds)
        self._shown.end()
        self._update()

    def _update(self) -> None:
        if self._lost:
            return
        now = time.monotonic()
        since = now - (self._started if self._artifact is None else self._updated)
        last = self._artifact is not None and self._done >= self._expected
        if not _in_flow_run() or not (last or since >= (FIRST_SECONDS if self._artifact is None else EVERY_SECONDS)):
            return
        self._updated = now
        share = min(100.0, 100 * self._done / max(self._expected, self._done))
        try:
            self._show(share)
        except Exception as error:  # whatever the client raises: the work itself does not need the server
            self._lost = True
            _log.warning("progress is no longer shown on Prefect's pages: %s: %s", type(error).__name__, error)

    def _show(self, share: float) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        if self._artifact is None:
            made: Any = create_progress_artifact(share, ARTIFACT_KEY, "steps of the run that are done")
            self._artifact = made
        else:
            update_progress_artifact(self._artifact, share)


def _in_flow_run() -> bool:
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None
