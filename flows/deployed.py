"""The nightly as a Prefect deployment runs it: `hopbench serve`, and the work pool of prefect.yaml.

Its one parameter holds the flags of `hopbench nightly` as they stand on the line; a webhook's URL comes from the
environment (HOPBENCH_WEBHOOK), since parameters are shown to everybody who sees Prefect's pages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from prefect import flow
from prefect.runtime import flow_run

from flows.processes import process_tag

NAME = "hopbench-nightly"


@flow(name=NAME, retries=0, persist_result=False)
def nightly(arguments: Sequence[str] = ()) -> None:
    """`hopbench nightly ARGUMENTS`; a regression or an incomplete night fails the run, with the reason."""
    import typer.main

    from flows.cli.main import app

    _name_process()
    sys.argv = ["hopbench", "nightly", *arguments]
    typer.main.get_command(app).main(sys.argv[1:], prog_name="hopbench", standalone_mode=False)


def _name_process() -> None:
    """Tag the run with its process: should it be killed, the next start can tell."""
    from prefect.client.orchestration import get_client

    if flow_run.id:
        with get_client(sync_client=True) as client:
            tags = {*client.read_flow_run(flow_run.id).tags, "hopbench", process_tag()}
            client.update_flow_run(flow_run.id, tags=sorted(tags))
