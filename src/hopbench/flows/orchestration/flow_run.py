"""A flow of ours as the flow run that is under way: called from Prefect's pages, a schedule, or another flow.

The command line starts a server and opens a run first, while it starts, and then a flow (`steps.run_flow`). A flow that
Prefect calls is already a flow run, on the API of its caller: nothing is started, and its body is run in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Self

from hopbench.flows.orchestration.processes import process_tag
from hopbench.flows.orchestration.run_log import log_to_runs
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.settings.home import Home

_inside: ContextVar[bool] = ContextVar("hopbench_inside_flow_run", default=False)


class FlowRunRuntime(PrefectRuntime):
    """Prefect's API of the flow run that is under way."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._adopted = False

    @classmethod
    def start(cls, home: Home, *, serving_port: int | None = None) -> Self:
        """Nothing is to be started."""
        home.prepare()
        home.apply_environment()
        runtime = cls(home)
        runtime.answering.set()
        return runtime

    def wait(self, seconds: float = 0) -> str:
        """The API answers: the flow run began on it."""
        return self.api_url

    def adopts(self) -> bool:
        """True once: the outermost flow is the one that Prefect called."""
        first, self._adopted = not self._adopted, True
        return first

    def flow_settings(self) -> AbstractContextManager[object]:
        """The caller's settings, unchanged."""
        return nullcontext()


def open_runtime(home: Home) -> PrefectRuntime:
    """The API of the flow run that is under way; of none, a server for the length of this command."""
    return (FlowRunRuntime if _inside.get() else PrefectRuntime).start(home)


@contextmanager
def inside_flow_run() -> Iterator[None]:
    """Mark what follows as the body of the flow run that is under way, and have our log shown with it."""
    _keep_prefects_settings()
    log_to_runs()
    _name_process()
    from prefect.context import TagsContext

    token = _inside.set(True)
    try:
        with TagsContext(current_tags=set()):  # the flow run's, which its tasks would take over (see `steps.TaskKind`)
            yield
    finally:
        _inside.reset(token)


def _keep_prefects_settings() -> None:
    """Have the settings that Prefect has read stand in the environment, where the home's would take their place."""
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    os.environ.setdefault("PREFECT_HOME", str(settings.home))
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", settings.logging.level)


def _name_process() -> None:
    """Tag the run with its process: should that be killed, the next start can tell."""
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    with get_client(sync_client=True) as client:
        tags = {tag for tag in context.flow_run.tags if not tag.startswith("process:")}
        client.update_flow_run(context.flow_run.id, tags=sorted({*tags, "hopbench", process_tag()}))
