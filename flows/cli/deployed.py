"""The nightly as a Prefect deployment runs it: `hopbench serve`, and the work pool of prefect.yaml.

Its one parameter holds the flags of `hopbench nightly` as on the command line; a webhook's URL comes from the
environment (HOPBENCH_WEBHOOK), since parameters are shown to everybody who sees Prefect's pages. Each night leaves one
line on standard output, and an artifact with the verdict and a link to the report.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime

import typer.main
from prefect import flow
from prefect.runtime import flow_run

from hopbench.flows.orchestration.processes import process_tag

NAME = "hopbench-nightly"


@flow(name=NAME, retries=0, persist_result=False)
def nightly(arguments: Sequence[str] = ()) -> None:
    """`hopbench nightly ARGUMENTS`; a regression or an incomplete night fails the run, with the reason."""
    from hopbench.flows.cli.main import app

    _name_process()
    sys.argv = ["hopbench", "nightly", *arguments]
    with _reported():
        typer.main.get_command(app).main(sys.argv[1:], prog_name="hopbench", standalone_mode=False)


@contextmanager
def _reported() -> Iterator[None]:
    """Print how the nightly run ended in one line instead of its table, and create the artifact."""
    from hopbench.flows.nights.ending import ending, exit_code_of

    begun, code, reason = datetime.now(UTC), 0, ""
    try:
        with redirect_stdout(io.StringIO()):  # the table is in the report
            yield
    except BaseException as error:
        code, reason = exit_code_of(error), str(error) or type(error).__name__
        raise
    finally:
        summary = ending(begun, code, reason)
        sys.stdout.write(f"{summary.line}\n")
        sys.stdout.flush()
        _create_artifact(summary.markdown)


def _create_artifact(content: str) -> None:
    """On the scheduled flow run; the nightly's own flow, with the whole verdict, is a subflow of it."""
    from prefect.artifacts import create_markdown_artifact

    if flow_run.id:
        create_markdown_artifact(content, "hopbench-night", "How the night ended, and its report")


def _name_process() -> None:
    """Tag the run with its process: should it be killed, the next start can tell."""
    from prefect.client.orchestration import get_client

    if flow_run.id:
        with get_client(sync_client=True) as client:
            tags = {*client.read_flow_run(flow_run.id).tags, "hopbench", process_tag()}
            client.update_flow_run(flow_run.id, tags=sorted(tags))
