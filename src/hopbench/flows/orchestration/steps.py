"""The same plain functions, called directly or as tasks of a Prefect flow; prefect is imported only for the latter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from hopbench.flows.orchestration.processes import process_tag

if TYPE_CHECKING:
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
