"""Progress on a terminal: which step runs, how many are done, and the time left by the pace so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as rich_progress
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hopbench.flows.orchestration.progress import NoProgress, Progress


class Bar:
    """A Rich progress bar as `Progress`."""

    def __init__(self, progress: rich_progress.Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)
        self._total = self._done = 0

    def expect(self, steps: int) -> None:
        """See `Progress`."""
        self._total += steps
        self._progress.update(self._task, total=max(self._total, self._done))

    def begin(self, name: str) -> None:
        """See `Progress`."""
        self._progress.update(self._task, description=name)

    def end(self) -> None:
        """See `Progress`. A step that was not expected is added to the total."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, total=max(self._total, self._done))


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """A bar on standard error when it is a terminal, else silence."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield NoProgress()
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    times = TimeElapsedColumn(), TimeRemainingColumn()
    with rich_progress.Progress(*columns, *times, console=console, transient=True) as progress:
        yield Bar(progress)
