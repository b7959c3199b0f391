"""The same plain functions, called directly or as tasks of a Prefect flow, with the progress of long work.

Prefect is imported only for the latter, Rich only for a terminal.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from hopbench.flows.orchestration.runtime import process_tag

if TYPE_CHECKING:
    from uuid import UUID

    from rich import progress as rich_progress

    from hopbench.flows.orchestration.runtime import PrefectRuntime

P = ParamSpec("P")
T = TypeVar("T")


class Steps(Protocol):
    """Runs the named steps of a flow."""

    def __call__(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn(*args, **kwargs)` under `name`; returns what it returns."""
        ...


class FlowSteps(Steps, Protocol):
    """The steps passed to a flow's body."""

    def task(self, name: str, fn: Callable[[], None]) -> Callable[[], None]:
        """`fn` as a step to be called by the caller, which keeps the call stack short."""
        ...


class PlainSteps:
    """Steps without Prefect: plain calls."""

    def __call__(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Steps`."""
        return fn(*args, **kwargs)

    def task(self, name: str, fn: Callable[[], None]) -> Callable[[], None]:
        """See `FlowSteps`."""
        return fn


class PrefectSteps:
    """Steps as Prefect tasks; only inside `run_flow`."""

    def __call__(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `Steps`.

        Prefect visits, hashes and may pickle a task's arguments and result. Ours are corpora, graphs and arrays, so
        both are passed in a closure that it does not inspect: a task costs the same whatever the size of its arguments.
        """
        outcome: list[T] = []
        self.task(name, lambda: outcome.append(fn(*args, **kwargs)))()
        return outcome[0]

    def task(self, name: str, fn: Callable[[], None]) -> Callable[[], None]:
        """See `FlowSteps`: a Prefect task of the kind that its name says."""
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        kind = kind_of(name)
        return task(
            name=name,
            task_run_name=_literal(name),
            cache_policy=NO_CACHE,  # our own caches know what a result depends on; Prefect's would hash arguments
            persist_result=False,
            retries=kind.retries,
            retry_delay_seconds=list(kind.retry_delays),
            retry_condition_fn=_may_pass if kind.retries else None,
            timeout_seconds=kind.timeout_seconds,
        )(fn)


@dataclass(frozen=True)
class TaskKind:
    """What Prefect shall do with a kind of task.

    No kind has tags: of a task with tags Prefect asks the server for a slot under each of them, which took a night of
    25 tasks 5 s. The flow run has them; tasks are told apart by their names.
    """

    retries: int = 0
    retry_delays: tuple[int, ...] = ()
    timeout_seconds: int | None = None


COMPUTE = TaskKind()
"""Done again it would fail again, and how long it may take depends on the corpus: neither retries nor a timeout.

What a trial asks of a model or of Neo4j is asked again by their own clients.
"""

WRITE = TaskKind(retries=2, retry_delays=(1, 5), timeout_seconds=1800)
"""Files or a graph written: a share or a server that was away for a moment is back a little later.
"""


def kind_of(name: str) -> TaskKind:
    """The kind of a step, which its name says."""
    return WRITE if name == "write" else COMPUTE


def _may_pass(task: object, task_run: object, state: Any) -> bool:
    """Whether a failed write is worth another try: what the system reported may pass, what we refuse does not."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, OSError)


plain_steps = PlainSteps()


def _literal(name: str) -> str:
    """`name` as a run's name template, which Prefect formats with the parameters."""
    return name.replace("{", "{{").replace("}", "}}")


def run_flow(
    name: str,
    body: Callable[[FlowSteps], T],
    *,
    runtime: PrefectRuntime | None,
    parameters: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
) -> T:
    """Run `body` as a Prefect flow, or plainly when `runtime` is None; its result and exceptions are unchanged.

    `parameters` and `tags` are what Prefect shows of the run; they are not passed to `body`. A flow inside a flow
    becomes a subflow; where Prefect called the flow itself, `body` is run in its flow run. Waits for the API first. A
    tag names this process, so that the runs of a killed process are recognised.
    """
    if runtime is None:
        return body(plain_steps)
    runtime.wait()
    if runtime.adopts():
        return body(PrefectSteps())
    import prefect
    from prefect.context import TagsContext

    outcome: list[T] = []

    def hopbench(**_: Any) -> None:
        with TagsContext(current_tags=set()):  # the flow run's, which its tasks would take over
            outcome.append(body(PrefectSteps()))

    shown = dict(parameters or {})
    named = [Parameter(parameter, Parameter.KEYWORD_ONLY) for parameter in shown]
    # Prefect shows what the signature declares: each parameter by itself, not one mapping of all.
    hopbench.__signature__ = Signature(named)  # type: ignore[attr-defined]
    run_name = f"{_literal(name)} {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    flow = prefect.flow(name=name, flow_run_name=run_name, validate_parameters=False, persist_result=False, retries=0)
    with runtime.flow_settings(), prefect.tags("hopbench", process_tag(), *tags):
        flow(hopbench)(**shown)
    return outcome[0]


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

    console = Console(stderr=True)
    if not console.is_terminal:
        yield NoProgress()
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    times = TimeElapsedColumn(), TimeRemainingColumn()
    with rich_progress.Progress(*columns, *times, console=console, transient=True) as progress:
        yield Bar(progress)
