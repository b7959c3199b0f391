"""`hopbench run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hopbench.flows.cli.flags.graph import Dataset
from hopbench.flows.cli.flags.groups import takes
from hopbench.flows.cli.flags.panels import OUTPUT, option
from hopbench.flows.cli.flags.run import RunFlags, estimate

if TYPE_CHECKING:
    from hopbench.flows.settings.options import RunOptions


@takes(RunFlags)
def run_command(
    flags: RunFlags,
    dataset: Dataset,
    out: Annotated[Path, option(OUTPUT, help="Folder for results.json, questions.parquet and report.html.")],
    force: Annotated[
        bool, option(OUTPUT, "--force", help="Replace another benchmark's finished run in --out.")
    ] = False,
) -> None:
    """Run strategies over a benchmark: rank, score, compare, track, report."""
    options = flags.options("run", dataset=dataset, out=out)
    if flags.dry_run:
        estimate(options)
        return
    _execute(options, force)


def _execute(options: RunOptions, force: bool) -> None:
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.cli.printing.table import print_finished
    from hopbench.flows.run.completeness import refuse_incomplete, refuse_missed
    from hopbench.flows.run.evaluate import run

    with terminal_progress() as progress:
        finished = run(options, "evaluate", progress, force=force)
    print_finished(finished, options.out)
    refuse_incomplete(finished)
    refuse_missed(finished)
