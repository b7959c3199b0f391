"""Progress on a terminal: which step runs, how many are done, and the time left by the pace so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

from hopbench.flows.orchestration.progress import Report, Silent


class Bar:
    """A Rich progress bar as a `Report`."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)
        self._total = self._done = 0

    def expect(self, steps: int) -> None:
        """See `Report`."""
        self._total += steps
        self._progress.update(self._task, total=max(self._total, self._done))

    def begin(self, name: str) -> None:
        """See `Report`."""
        self._progress.update(self._task, description=name)

    def end(self) -> None:
        """See `Report`. What nobody expected is part of the total all the same."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, total=max(self._total, self._done))


@contextmanager
def terminal_progress() -> Iterator[Report]:
    """A bar on standard error when it is a terminal, else silence."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Silent()
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), Remaining(), console=console, transient=True) as progress:
        yield Bar(progress)
