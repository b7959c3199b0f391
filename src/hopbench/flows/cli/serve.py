"""`hopbench serve`: the flows on Prefect's pages, and `hopbench nightly` on a schedule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.declare import EXECUTION, option
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.run_settings import run_options
from hopbench.retrieval.support.errors import InputError


def serve_command(
    context: typer.Context,
    cron: Annotated[
        list[str], option(EXECUTION, help="When nights run: minute hour day month weekday. May be repeated.")
    ] = ["0 2 * * *"],  # noqa: B006 - Typer reads it
    timezone: Annotated[str, option(EXECUTION, help="The time zone of --cron.")] = "UTC",
    paused: Annotated[
        bool, option(EXECUTION, "--paused", help="Begin with new schedules paused, to be resumed on the pages.")
    ] = False,
    limit: Annotated[int, option(EXECUTION, "--at-once", min=1, help="Flow runs at a time; others wait.")] = 2,
    port: Annotated[
        int, option(EXECUTION, min=0, max=65535, help="Port of Prefect's pages on 127.0.0.1; 0: any.")
    ] = 4200,
) -> None:
    """Serve the flows on Prefect's pages, and run `hopbench nightly` on schedule until stopped.

    All further flags are those of scheduled nights.
    """
    from hopbench.flows.api.deployable.serving import Schedules, serve

    Home.resolve().apply_environment()  # before prefect is imported, which then is quiet on this console
    schedules = Schedules(cron, timezone, paused)
    schedules.check()
    arguments = without_webhook(context.args)
    group: Any = context.find_root().command
    night = _night(group.commands, arguments)

    def started(pages: str) -> None:
        shown = " ".join(["hopbench nightly", *arguments])
        when = "\n         ".join(f"{line} ({timezone})" for line in cron)
        typer.echo(f"serving  {shown}\nwhen     {when}\npages    {pages}\nstop it with Ctrl-C; the schedule stays")

    serve(night, schedules, port, limit, started)


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


def _night(commands: Mapping[str, Any], arguments: list[str]) -> dict[str, Any]:
    """The flow's parameters of these flags. Refuses now what would fail at night: unknown labels, missing data sets."""
    from hopbench.flows.nights.options import NightlyOptions

    given = commands["nightly"].make_context("hopbench nightly", list(arguments)).params
    webhook = os.environ.get("HOPBENCH_WEBHOOK") or None
    NightlyOptions(keep=given["keep"], latency_factor=given["latency_factor"], webhook=webhook)
    if given["no_prefect"]:
        raise InputError("serve runs on Prefect: leave out --no-prefect, or use a cron line (docs/nightly.md)")
    options = run_options(given, Path(), "hopbench serve")
    options.checked_targets(list(options.labels()))
    options.models.check()
    options.benchmark()
    from hopbench.flows.api.deployable.nightly import PARAMETERS
    from hopbench.flows.settings.parameters import from_flags

    given = {**given, "dataset": _place(given["dataset"]), "tuned_on": [*map(_place, given["tuned_on"] or ())] or None}
    return from_flags(given, PARAMETERS)


def _place(dataset: str) -> str:
    """A data set as its form takes it: a folder or file with its whole path, since a bare name is a shipped one's."""
    from hopbench.eval.benchmarks.loader import shipped_folders

    return dataset if dataset in shipped_folders() or not Path(dataset).exists() else str(Path(dataset).absolute())
