"""`hopbench serve`: a schedule that survives its process. Each night is a process of its own.

Prefect's server keeps the deployment and its schedule in the home's database (or is the one that PREFECT_API_URL
names), so a restart finds both. A night that was due while nothing ran is late, and starts with the next `serve`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError

DEPLOYMENT = "nightly"
FLOW = "hopbench.flows.cli.deployed.nightly"


def check_schedule(cron: str, timezone: str) -> None:
    """Raises InputError for a cron line or a time zone that cannot be read."""
    from prefect.client.schemas.schedules import CronSchedule  # pydantic's errors are ValueErrors

    try:
        CronSchedule(cron=cron)
    except ValueError as error:
        example = 'such as "0 2 * * *" (minute hour day month weekday)'
        raise InputError(f"--cron {cron!r}: a cron line has five fields, {example}") from error
    try:
        CronSchedule(cron=cron, timezone=timezone)
    except ValueError as error:
        raise InputError(f"--timezone {timezone!r}: no such zone; write one like UTC or Europe/Berlin") from error


def serve(arguments: Sequence[str], cron: str, timezone: str, port: int, started: Callable[[str], None]) -> None:
    """Run the nightly on schedule until stopped; `started` is called with the address of Prefect's pages."""
    home = Home.resolve().prepare()
    os.environ["HOPBENCH_HOME"] = str(home.root)  # nights run elsewhere
    home.apply_environment()
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime.start(home, serving_port=port))
        runtime.wait()
        from prefect.flows import load_flow_from_entrypoint
        from prefect.runner import Runner
        from prefect.schedules import Schedule
        from prefect.types.entrypoint import EntrypointType

        nightly: Any = load_flow_from_entrypoint(FLOW)

        class Served(Runner):
            def handle_sigterm(self, *_: Any, **__: Any) -> None:
                os.kill(os.getpid(), signal.SIGINT)  # Prefect's own handler forgets to await its end

        with runtime.flow_settings():
            deployment: Any = nightly.to_deployment(
                DEPLOYMENT,
                schedule=Schedule(cron=cron, timezone=timezone),
                parameters={"arguments": list(arguments)},
                tags=["hopbench"],
                entrypoint_type=EntrypointType.MODULE_PATH,
            )
            started(runtime.api_url.removesuffix("/api"))
            runner = Served(pause_on_shutdown=False, limit=1)
            runner.add_deployment(deployment)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
            asyncio.run(runner.start())
