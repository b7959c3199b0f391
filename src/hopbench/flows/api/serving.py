"""`hopbench serve`: the five flows on Prefect's pages, and nightly runs on schedules that survive the process."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from hopbench.flows.api.definition import refuse_others
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.server import STOP_SECONDS, ServerEndedError
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.runner import Runner

REFUSED = re.compile(r"Validation failed for (field '\w+[^']*')\. Failure reason: ([^\n]{1,500}?)(?:\"|', 'input')")
CHECK_SECONDS = 1.0  # between two looks at the server
DEPLOYMENT = "serve"
FLOWS = ("nightly", "sweep", "evaluate", "build_graph", "train")
SLUG_PREFIX = "hopbench-"
"""Begins the slugs of the schedules that --cron makes; others were added on the pages, and stay as they are."""


def schedules_of(crons: Sequence[str], timezone: str, paused: bool) -> list[DeploymentScheduleCreate]:
    """Schedules of cron lines in a time zone; where `paused`, new ones wait for somebody to resume them.

    Raises InputError for a cron line or a time zone that cannot be read.
    """
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule  # pydantic's errors are ValueErrors

    result = []
    for cron in dict.fromkeys(crons):
        try:
            CronSchedule(cron=cron)
        except ValueError as error:
            example = 'such as "0 2 * * *" (minute hour day month weekday)'
            raise InputError(f"--cron {cron!r}: a cron line has five fields, {example}") from error
        try:
            schedule = CronSchedule(cron=cron, timezone=timezone)
        except ValueError as error:
            raise InputError(f"--timezone {timezone!r}: no such zone; write one like UTC or Europe/Berlin") from error
        slug = SLUG_PREFIX + sha256(f"{cron} {timezone}".encode()).hexdigest()[:8]
        result.append(DeploymentScheduleCreate(schedule=schedule, active=not paused, slug=slug))
    return result


def _with_present(wanted: Sequence[DeploymentScheduleCreate], present: Sequence[Any]) -> list[Any]:
    """The schedules, paused or not as they are on the server, and those that were added on its pages."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate

    known = {one.slug: one for one in present}
    result = [one.model_copy(update={"active": known[one.slug].active}) if one.slug in known else one for one in wanted]
    return result + [
        DeploymentScheduleCreate(
            schedule=one.schedule, active=one.active, parameters=one.parameters or {}, slug=one.slug
        )
        for one in present
        if not (one.slug or "").startswith(SLUG_PREFIX)
    ]


def serve(
    night: Mapping[str, Any],
    schedules: Sequence[DeploymentScheduleCreate],
    port: int,
    limit: int,
    started: Callable[[str], None],
) -> None:
    """Run the flows when they are due or asked for, until stopped; `night` are the parameters of scheduled nights.

    `limit` flow runs at a time. `started` is called with the address of Prefect's pages.
    """
    home = Home.resolve().prepare()
    os.environ["HOPBENCH_HOME"] = str(home.root)  # flow runs start elsewhere
    home.apply_environment()
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime(home, serving_port=port))
        runtime.wait()
        from prefect.runner import Runner

        with runtime.flow_settings():
            deployments = [_deployment(name, night, schedules) for name in FLOWS]
            os.environ["HOPBENCH_SERVED"] = "1"
            runner: Any = Runner(pause_on_shutdown=False, limit=limit)
            # Prefect's own handler forgets to await its end.
            runner.handle_sigterm = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
            for deployment in deployments:
                with _refused_parameters():
                    runner.add_deployment(deployment)
            started(runtime.api_url.removesuffix("/api"))
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
            asyncio.run(_run(runner, runtime))


@contextmanager
def _refused_parameters() -> Iterator[None]:
    """Raise InputError with the server's reason where it takes no deployment with these parameters."""
    from prefect.deployments.runner import DeploymentApplyError
    from prefect.exceptions import PrefectHTTPStatusError

    try:
        yield
    except (DeploymentApplyError, PrefectHTTPStatusError) as error:  # the latter where the deployment is there already
        reason = REFUSED.search(str(error))
        if reason is None:
            raise
        raise InputError(
            f"a scheduled night cannot have these parameters: {reason[1]}: {reason[2]}; leave out that flag of serve, "
            "or run hopbench nightly from a line of cron (docs/nightly.md)"
        ) from error


async def _run(runner: Runner, runtime: PrefectRuntime) -> None:
    """Run what is due until stopped. Raises ServerEndedError where our own server ends first: a supervisor restarts."""
    running = asyncio.ensure_future(runner.start())
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=CHECK_SECONDS)
            runtime.check()
    except ServerEndedError:
        logging.disable()  # Prefect's own watchers report that end with a traceback each
        raise
    finally:
        running.cancel()
        await asyncio.wait({running}, timeout=STOP_SECONDS)
    await running


def _deployment(name: str, night: Mapping[str, Any], schedules: Sequence[DeploymentScheduleCreate]) -> Any:
    from prefect.types.entrypoint import EntrypointType

    import hopbench.flows

    nights = name == "nightly"
    deployment: Any = getattr(hopbench.flows, name).to_deployment(
        DEPLOYMENT,
        parameters=dict(night) if nights else STARTS.get(name, {}),
        schedules=_with_present(schedules, _present(f"{name}/{DEPLOYMENT}")) if nights else None,
        concurrency_limit=1 if nights else None,  # a second night in a home is refused
        tags=["hopbench"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    refuse_others(deployment)
    return deployment


STARTS: Mapping[str, Mapping[str, Any]] = {
    "sweep": {"file": "grid"},
    "evaluate": {"dataset": "hopworld"},
    "train": {"datasets": ["hopworld-tune"]},
}
"""What the form of a flow opens with, where its own defaults are no run."""


def _present(deployment: str) -> Sequence[Any]:
    """The schedules that a deployment has on the server; none of one that is not there."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        return list(client.read_deployment_by_name(deployment).schedules)
    return []
