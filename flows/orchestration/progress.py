"""How long work tells what it is doing; a terminal shows it, tests do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from hopbench.flows.orchestration.steps import Steps

P = ParamSpec("P")
T = TypeVar("T")


class Report(Protocol):
    """Told when work begins and ends."""

    def expect(self, steps: int) -> None:
        """So many steps more are to come."""
        ...

    def begin(self, name: str) -> None:
        """A step has begun."""
        ...

    def end(self) -> None:
        """The step has ended."""
        ...


class Silent:
    """No progress: for tests, and where nobody watches."""

    def expect(self, steps: int) -> None:
        """See `Report`."""

    def begin(self, name: str) -> None:
        """See `Report`."""

    def end(self) -> None:
        """See `Report`."""


class ReportedSteps:
    """Steps that tell a report when they begin and end; with `announce` also that there are more than it expected."""

    def __init__(self, steps: Steps, report: Report, *, announce: bool = False) -> None:
        self._steps = steps
        self._report = report
        self._announce = announce

    def __call__(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the step between the two messages."""
        if self._announce:
            self._report.expect(1)
        self._report.begin(name)
        result = self._steps(name, fn, *args, **kwargs)
        self._report.end()
        return result
