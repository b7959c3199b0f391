"""The same plain functions, called directly or as tasks of a Prefect flow, with the progress of long work."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from hopbench.flows.orchestration.runtime import process_tag

if TYPE_CHECKING:
    from uuid import UUID

    from rich import progress as rich_progress

    from hopbench.flows.orchestration.runtime import PrefectRuntime

P = ParamSpec("P")
T = TypeVar("T")

ARTIFACT_KEY = "hopbench-progress"
FIRST_SECONDS = 3.0  # shorter work has no progress artifact
EVERY_SECONDS = 3.0  # an update is a request
LOGGED_SECONDS = 0.05  # of shorter steps the list of task runs says enough

_log = logging.getLogger(__name__)


class Progress:
    """Counts the steps of some work and shows them on `bar`, if there is one.

    While `in_flow` is set, steps are also logged, and shown as an artifact of the flow run under way.
    """

    def __init__(self, bar: rich_progress.Progress | None = None) -> None:
        self.in_flow = False
        self._bar = bar
        self._task = bar.add_task("starting", total=None) if bar is not None else None
        self._expected = self._done = 0
        self._begun: list[tuple[str, float]] = []
        self._updated = time.monotonic()
        self._artifact: UUID | None = None
        self._lost = False

    def expect(self, steps: int) -> None:
        """Add to the number of steps to come."""
        self._expected += steps
        self._show_bar(total=max(self._expected, self._done))

    def begin(self, name: str) -> None:
        """A step begins."""
        self._begun.append((name, time.monotonic()))
        self._show_bar(description=name)

    def end(self) -> None:
        """The step that began last has ended. One that was not expected is added to the total."""
        self._done += 1
        self._show_bar(completed=self._done, total=max(self._expected, self._done))
        name, begun = self._begun.pop() if self._begun else ("", time.monotonic())
        if self.in_flow:
            if (seconds := time.monotonic() - begun) >= LOGGED_SECONDS:
                _log.info("%s: %.1f s", name, seconds)
            self._show_artifact()

    def _show_bar(self, **values: Any) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, **values)

    def _show_artifact(self) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact
        from prefect.context import FlowRunContext

        now = time.monotonic()
        last = self._artifact is not None and self._done >= self._expected
        due = last or now - self._updated >= (FIRST_SECONDS if self._artifact is None else EVERY_SECONDS)
        if self._lost or not due or FlowRunContext.get() is None:
            return
        self._updated = now
        share = min(100.0, 100 * self._done / max(self._expected, self._done))
        try:
            if self._artifact is None:
                made: Any = create_progress_artifact(share, ARTIFACT_KEY, "steps of the run that are done")
                self._artifact = made
            else:
                update_progress_artifact(self._artifact, share)
        except Exception as error:  # whatever the client raises: the work itself does not need the server
            self._lost = True
            _log.warning("progress is no longer shown on Prefect's pages: %s: %s", type(error).__name__, error)


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """A bar on standard error when it is a terminal, else silence."""
    from rich import progress as rich_progress
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Progress()
        return
    columns = (
        rich_progress.SpinnerColumn(),
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=console, transient=True) as bar:
        yield Progress(bar)


WRITING = {"retries": 2, "retry_delay_seconds": [1, 5], "timeout_seconds": 1800}
"""Of the step `write`, alone: a share or a server that was away for a moment is back a little later.

Computing done again would fail again, and how long it may take depends on the corpus. What a trial asks of a model or
of Neo4j is asked again by their own clients.
"""


class Steps:
    """Runs the named steps of a flow, as plain calls or as Prefect tasks (`prefect`, only inside `run_flow`).

    `progress` hears of each; with `announce`, each also adds itself to the number of steps to come.
    """

    def __init__(self, prefect: bool = False, progress: Progress | None = None, announce: bool = False) -> None:
        self._prefect = prefect
        self._progress = progress or Progress()
        self._announce = announce

    def __call__(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn(*args, **kwargs)` under `name`; returns what it returns.

        Prefect visits, hashes and may pickle a task's arguments and result. Ours are corpora, graphs and arrays, so
        both are passed in a closure that it does not inspect: a task costs the same whatever the size of its arguments.
        """
        outcome: list[T] = []
        if self._announce:
            self._progress.expect(1)
        self._progress.begin(name)
        self.task(name, lambda: outcome.append(fn(*args, **kwargs)))()
        self._progress.end()
        return outcome[0]

    def task(self, name: str, fn: Callable[[], None]) -> Callable[[], None]:
        """`fn` as a step to be called by the caller, which keeps the call stack short; `progress` does not hear of it.

        It has no tags: of a task with tags Prefect asks the server for a slot under each of them, which took a night of
        25 tasks 5 s. The flow run has them; tasks are told apart by their names.
        """
        if not self._prefect:
            return fn
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        kind: dict[str, Any] = {"retries": 0}
        if name == "write":
            kind = {**WRITING, "retry_condition_fn": _may_pass}
        return task(
            name=name,
            task_run_name=literal(name),
            cache_policy=NO_CACHE,  # our own caches know what a result depends on; Prefect's would hash arguments
            persist_result=False,
            **kind,
        )(fn)


plain_steps = Steps()


def _may_pass(task: object, task_run: object, state: Any) -> bool:
    """Whether a failed write is worth another try: what the system reported may pass, what we refuse does not."""
    return isinstance(state.result(raise_on_failure=False), OSError)


def literal(name: str) -> str:
    """`name` as a run's name template, which Prefect formats with the parameters."""
    return name.replace("{", "{{").replace("}", "}}")


def run_flow(
    name: str,
    body: Callable[[Steps], T],
    *,
    runtime: PrefectRuntime | None,
    parameters: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    progress: Progress | None = None,
    announce: bool = False,
) -> T:
    """Run `body` as a Prefect flow, or plainly when `runtime` is None; its result and exceptions are unchanged.

    `parameters` and `tags` are what Prefect shows of the run; they are not passed to `body`. A flow inside a flow
    becomes a subflow; where Prefect called the flow itself, `body` is run in its flow run. Waits for the API first. A
    tag names this process, so that the runs of a killed process are recognised. See `Steps` for the others.
    """
    steps = Steps(runtime is not None, progress, announce)
    if runtime is None:
        return body(steps)
    runtime.wait()
    if runtime.adopts():
        return body(steps)
    import prefect
    from prefect.context import TagsContext

    outcome: list[T] = []

    def hopbench(**_: Any) -> None:
        with TagsContext(current_tags=set()):  # the flow run's, which its tasks would take over
            outcome.append(body(steps))

    shown = dict(parameters or {})
    named = [Parameter(parameter, Parameter.KEYWORD_ONLY) for parameter in shown]
    # Prefect shows what the signature declares: each parameter by itself, not one mapping of all.
    hopbench.__signature__ = Signature(named)  # type: ignore[attr-defined]
    run_name = f"{literal(name)} {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    flow = prefect.flow(name=name, flow_run_name=run_name, validate_parameters=False, persist_result=False, retries=0)
    with runtime.flow_settings(), prefect.tags("hopbench", process_tag(), *tags):
        flow(hopbench)(**shown)
    return outcome[0]
