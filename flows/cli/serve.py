"""`hopbench serve`: the nightly on a schedule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.panels import EXECUTION, option
from hopbench.retrieval.support.errors import InputError


def serve_command(
    context: typer.Context,
    cron: Annotated[str, option(EXECUTION, help="When: minute hour day month weekday.")] = "0 2 * * *",
    timezone: Annotated[str, option(EXECUTION, help="The time zone of --cron.")] = "UTC",
    port: Annotated[
        int, option(EXECUTION, min=0, max=65535, help="Port of Prefect's pages on 127.0.0.1; 0: any.")
    ] = 4200,
) -> None:
    """Run `hopbench nightly` on a schedule until stopped; all further flags are nightly's own."""
    from hopbench.flows.nightly.serve import check_schedule, serve

    check_schedule(cron, timezone)
    arguments = without_webhook(context.args)
    group: Any = context.find_root().command
    _check_nightly(group.commands, arguments)

    def started(pages: str) -> None:
        shown = " ".join(["hopbench nightly", *arguments])
        typer.echo(
            f"serving  {shown}\nwhen     {cron} ({timezone})\npages    {pages}\nstop it with Ctrl-C; the schedule stays"
        )

    serve(arguments, cron, timezone, port, started)


def without_webhook(words: list[str]) -> list[str]:
    """The flags without `--webhook URL`, which goes into the environment: Prefect's pages show parameters."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--webhook" or word.startswith("--webhook="):
            os.environ["HOPBENCH_WEBHOOK"] = word.partition("=")[2] or next(rest, "")
        else:
            kept.append(word)
    return kept


def _check_nightly(commands: Mapping[str, Any], arguments: list[str]) -> None:
    """Refuse now what would fail at night: unknown flags and labels, values that cannot be meant, no such data set."""
    from hopbench.flows.cli.flags.run import RunFlags
    from hopbench.flows.nightly.options import NightlyOptions

    given = commands["nightly"].make_context("hopbench nightly", list(arguments)).params
    NightlyOptions(
        keep=given["keep"], latency_factor=given["latency_factor"], webhook=os.environ.get("HOPBENCH_WEBHOOK") or None
    )
    if "--no-prefect" in arguments:
        raise InputError("serve runs on Prefect: leave out --no-prefect, or use a cron line (docs/nightly.md)")
    flags = RunFlags(**{one.name: given[one.name] for one in fields(RunFlags)})
    options = flags.options("nightly", dataset=given["dataset"], out=Path())
    options.checked_targets(list(options.labels()))
    options.models.check()
    options.benchmark()
