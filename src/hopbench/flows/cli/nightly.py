"""`hopbench nightly`, a run compared with the nights before it, and `hopbench serve`, the same on a schedule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags import Config, option, with_flags
from hopbench.flows.cli.output import echo
from hopbench.flows.cli.run import command_line, estimate
from hopbench.flows.nights.options import EVERYTHING, NightlyOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.settings.setting import EXECUTION, NIGHTLY, OUTPUT, values_for
from hopbench.retrieval.support.errors import InputError


@with_flags(RunOptions, NightlyOptions, dataset="hopworld", strategies=EVERYTHING)
def nightly_command(
    out: Annotated[
        Path | None, option(OUTPUT, help="Folder for the files of this night (default: under home).")
    ] = None,
    webhook: Annotated[
        str | None,
        option(
            NIGHTLY,
            envvar="HOPBENCH_WEBHOOK",
            show_envvar=True,
            help="URL to which regressions and failures are posted. Other users can read a command line.",
        ),
    ] = None,
    config: Config = None,
    **flags: Any,
) -> None:
    """Build if needed, run all strategies, score, track, report, compare with the last good night."""
    night = NightlyOptions(**values_for(NightlyOptions, flags), webhook=webhook)
    options = RunOptions(**values_for(RunOptions, flags), out=out or Path(), command=command_line("nightly"))
    if options.dry_run:
        estimate(options)
        return
    from hopbench.flows.cli.run import print_finished
    from hopbench.flows.nights.run import nightly
    from hopbench.flows.orchestration.steps import terminal_progress

    with terminal_progress() as progress:
        done = nightly(options, night, progress, out)
    print_finished(done.finished, done.out)
    for note in done.notes:
        echo(f"note: {note}", err=True)
    if not done.error_has_lines:
        for line in done.lines:
            echo(line)
    done.refuse()


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
    from hopbench.flows.api.serving import schedules_of, serve

    Home.resolve().apply_environment()  # before prefect is imported, which then is quiet on this console
    schedules = schedules_of(cron, timezone, paused)
    arguments = without_webhook(context.args)
    group: Any = context.find_root().command
    night = _night(group.commands, arguments)

    def started(pages: str) -> None:
        shown = " ".join(["hopbench nightly", *arguments])
        when = "\n         ".join(f"{line} ({timezone})" for line in cron)
        echo(f"serving  {shown}\nwhen     {when}\npages    {pages}\nstop it with Ctrl-C; the schedule stays")

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
    given = commands["nightly"].make_context("hopbench nightly", list(arguments)).params
    webhook = os.environ.get("HOPBENCH_WEBHOOK") or None
    NightlyOptions(**values_for(NightlyOptions, {**given, "webhook": webhook}))
    if given["no_prefect"]:
        raise InputError("serve runs on Prefect: leave out --no-prefect, or use a cron line (docs/nightly.md)")
    options = RunOptions(**{**values_for(RunOptions, given), "out": Path(), "command": "hopbench serve"})
    options.checked_targets(list(options.labels()))
    options.check()
    options.benchmark()
    from hopbench.flows.api.prefect_flows import NIGHT_PARAMETERS
    from hopbench.flows.settings.parameters import from_flags

    given = {**given, "dataset": _place(given["dataset"]), "tuned_on": [*map(_place, given["tuned_on"] or ())] or None}
    return from_flags(given, NIGHT_PARAMETERS)


def _place(dataset: str) -> str:
    """A data set as its form takes it: a folder or file with its whole path, since a bare name is a shipped one's."""
    from hopbench.eval.benchmarks.loader import shipped_folders

    return dataset if dataset in shipped_folders() or not Path(dataset).exists() else str(Path(dataset).absolute())
