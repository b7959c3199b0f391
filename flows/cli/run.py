"""`hopbench run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from hopbench.flows.cli.flags.graph import Dataset
from hopbench.flows.cli.flags.groups import with_flags
from hopbench.flows.cli.flags.panels import OUTPUT, option
from hopbench.flows.cli.flags.run import RunFlags, estimate


@with_flags(RunFlags)
def run_command(
    dataset: Dataset,
    out: Annotated[Path, option(OUTPUT, help="Folder for results.json, questions.parquet and report.html.")],
    force: Annotated[
        bool, option(OUTPUT, "--force", help="Replace another benchmark's finished run in --out.")
    ] = False,
    **flags: Any,
) -> None:
    """Run strategies over a benchmark: rank, score, compare, track, report."""
    given = RunFlags(**flags)
    options = given.options("run", dataset=dataset, out=out)
    if given.dry_run:
        estimate(options)
        return
    from hopbench.flows.cli.printing.progress import terminal_progress
    from hopbench.flows.cli.printing.table import print_finished
    from hopbench.flows.run.completeness import refuse_incomplete, refuse_missed
    from hopbench.flows.run.evaluate import run

    with terminal_progress() as progress:
        finished = run(options, "evaluate", progress, force=force)
    print_finished(finished, options.out)
    refuse_incomplete(finished)
    refuse_missed(finished)
