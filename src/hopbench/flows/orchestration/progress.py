"""Progress of long work: shown on a terminal, silent in scripts and tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from hopbench.flows.orchestration.steps import Steps

P = ParamSpec("P")
T = TypeVar("T")


class Progress(Protocol):
    """Called as steps of the work begin and end."""

    def expect(self, steps: int) -> None:
        """Add to the number of steps to come."""
        ...

    def begin(self, name: str) -> None:
        """A step begins."""
        ...

    def end(self) -> None:
        """The step that began last has ended."""
        ...


class NoProgress:
    """Shows nothing."""

    def expect(self, steps: int) -> None:
        """See `Progress`."""

    def begin(self, name: str) -> None:
        """See `Progress`."""

    def end(self) -> None:
        """See `Progress`."""


class ProgressSteps:
    """Steps that report progress; with `announce`, each also adds itself to the number of steps to come."""

    def __init__(self, steps: Steps, progress: Progress, *, announce: bool = False) -> None:
        self._steps = steps
        self._progress = progress
        self._announce = announce

    def __call__(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the step."""
        if self._announce:
            self._progress.expect(1)
        self._progress.begin(name)
        result = self._steps(name, fn, *args, **kwargs)
        self._progress.end()
        return result
