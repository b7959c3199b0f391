"""`hopbench nightly`: a run that is compared with the nights before it; `hopbench serve`: the same on a schedule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.declare import EXECUTION, NIGHTLY, OUTPUT, option, with_flags
from hopbench.flows.cli.flags.run import RunFlags, estimate, run_options
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.retrieval.support.errors import InputError

EVERYTHING = "all,all:tuned"
"""Every strategy as its source documents it, and as it was tuned."""


@with_flags(GraphOptions, RunFlags, dataset="hopworld", strategies=EVERYTHING)
def nightly_command(
    out: Annotated[
        Path | None, option(OUTPUT, help="Folder for the files of this night (default: under home).")
    ] = None,
    keep: Annotated[
        int | None,
        option(NIGHTLY, help="Nights of this benchmark to keep; older ones go, with their graphs and files."),
    ] = None,
    latency_factor: Annotated[
        float,
        option(NIGHTLY, help="A label that became this many times slower, relative to the yardstick, is a regression."),
    ] = 2.0,
    webhook: Annotated[
        str | None,
        option(
            NIGHTLY,
            envvar="HOPBENCH_WEBHOOK",
            show_envvar=True,
            help="URL to which regressions and failures are posted.",
        ),
    ] = None,
    accept: Annotated[
        bool, option(NIGHTLY, "--accept", help="Take tonight as the new baseline, whatever it shows.")
    ] = False,
    **flags: Any,
) -> None:
    """Build if needed, run all strategies, score, track, report, compare with the last good night."""
    from hopbench.flows.nights.run import NightlyOptions

    night = NightlyOptions(keep=keep, latency_factor=latency_factor, webhook=webhook, accept=accept)
    options = run_options("nightly", out or Path(), flags)
    if flags["dry_run"]:
        estimate(options)
        return
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.cli.printing.table import print_finished
    from hopbench.flows.nights.run import nightly

    with terminal_progress() as progress:
        done = nightly(options, night, progress, out)
    print_finished(done.finished, done.out)
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)
    if not done.error_has_lines:
        for line in done.lines:
            typer.echo(line)
    done.refuse()


def serve_command(
    context: typer.Context,
    cron: Annotated[str, option(EXECUTION, help="When: minute hour day month weekday.")] = "0 2 * * *",
    timezone: Annotated[str, option(EXECUTION, help="The time zone of --cron.")] = "UTC",
    port: Annotated[
        int, option(EXECUTION, min=0, max=65535, help="Port of Prefect's pages on 127.0.0.1; 0: any.")
    ] = 4200,
) -> None:
    """Run `hopbench nightly` on a schedule until stopped; all further flags are nightly's own."""
    from hopbench.flows.nights.serve import check_schedule, serve

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
    """Refuse now what would fail at night: unknown flags and labels, invalid values, missing data sets."""
    from hopbench.flows.nights.run import NightlyOptions

    given = commands["nightly"].make_context("hopbench nightly", list(arguments)).params
    NightlyOptions(
        keep=given["keep"], latency_factor=given["latency_factor"], webhook=os.environ.get("HOPBENCH_WEBHOOK") or None
    )
    if "--no-prefect" in arguments:
        raise InputError("serve runs on Prefect: leave out --no-prefect, or use a cron line (docs/nightly.md)")
    options = run_options("nightly", Path(), given)
    options.checked_targets(list(options.labels()))
    options.models.check()
    options.benchmark()
