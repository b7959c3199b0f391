"""`hopbench nightly`: a run that is compared with the nights before it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.graph import Dataset
from hopbench.flows.cli.flags.groups import with_flags
from hopbench.flows.cli.flags.panels import NIGHT, OUTPUT, option
from hopbench.flows.cli.flags.run import RunFlags, estimate

EVERYTHING = "all,all:tuned"
"""Like beside like: every strategy as its source documents it, and as it was tuned."""


@with_flags(RunFlags, strategies=EVERYTHING)
def nightly_command(
    dataset: Dataset = "hopworld",
    out: Annotated[
        Path | None, option(OUTPUT, help="Folder for the files of this night (default: under home).")
    ] = None,
    keep: Annotated[
        int | None, option(NIGHT, help="Nights of this benchmark to keep; older ones go, with their graphs and files.")
    ] = None,
    latency_factor: Annotated[
        float, option(NIGHT, help="A label more than so many times as slow beside the yardstick is a regression.")
    ] = 2.0,
    webhook: Annotated[
        str | None,
        option(
            NIGHT, envvar="HOPBENCH_WEBHOOK", show_envvar=True, help="URL that is told of regressions and failures."
        ),
    ] = None,
    accept: Annotated[
        bool, option(NIGHT, "--accept", help="Take tonight as the new baseline, whatever it shows.")
    ] = False,
    **flags: Any,
) -> None:
    """Build if needed, run all strategies, score, track, report, compare with the last good night."""
    from hopbench.flows.nightly.options import NightlyOptions

    given = RunFlags(**flags)
    night = NightlyOptions(keep=keep, latency_factor=latency_factor, webhook=webhook, accept=accept)
    options = given.options("nightly", dataset=dataset, out=out or Path())
    if given.dry_run:
        estimate(options)
        return
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.cli.printing.table import print_finished
    from hopbench.flows.nightly.run import nightly

    with terminal_progress() as progress:
        done = nightly(options, night, progress, out)
    print_finished(done.finished, done.out)
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)
    if not done.told_by_error:
        for line in done.lines:
            typer.echo(line)
    done.refuse()
