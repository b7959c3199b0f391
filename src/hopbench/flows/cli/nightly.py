"""`hopbench nightly`: a run that is compared with the nights before it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.declare import NIGHTLY, OUTPUT, Config, option, with_flags
from hopbench.flows.cli.flags.run import command_line, estimate
from hopbench.flows.nights.options import EVERYTHING, NightlyOptions
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.run_settings import RunSettings, run_options
from hopbench.flows.settings.setting import declared


@with_flags(GraphOptions, RunSettings, NightlyOptions, dataset="hopworld", strategies=EVERYTHING)
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
            help="URL to which regressions and failures are posted.",
        ),
    ] = None,
    config: Config = None,
    **flags: Any,
) -> None:
    """Build if needed, run all strategies, score, track, report, compare with the last good night."""
    own = {one.name: flags[one.name] for one in declared(NightlyOptions)}
    night = NightlyOptions(webhook=webhook, **own)
    options = run_options(flags, out or Path(), command_line("nightly"))
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
