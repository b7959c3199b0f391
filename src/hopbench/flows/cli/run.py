"""`hopbench run`, and `hopbench report DIR`, which makes a run's report again from its other files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hopbench.flows.cli.flags.declare import DATA, OUTPUT, Config, argument, option, with_flags
from hopbench.flows.cli.flags.run import command_line, estimate
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.run_settings import RunSettings, run_options


@with_flags(GraphOptions, RunSettings)
def run_command(
    out: Annotated[Path, option(OUTPUT, help="Folder for results.json, questions.parquet and report.html.")],
    force: Annotated[
        bool, option(OUTPUT, "--force", help="Replace another benchmark's finished run in --out.")
    ] = False,
    config: Config = None,
    **flags: Any,
) -> None:
    """Run strategies over a benchmark: rank, score, compare, track, report."""
    options = run_options(flags, out, command_line("run"))
    if flags["dry_run"]:
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


def report_command(
    folder: Annotated[Path, argument(metavar="DIR", help="The --out folder of a run.")],
    dataset: Annotated[
        str | None, option(DATA, help="Where the run's benchmark is now (default: where it was).")
    ] = None,
) -> None:
    """Make a run's report.html again, from results.json, questions.parquet and details.json.gz."""
    from hopbench.eval.report import read_run, write_report
    from hopbench.flows.run.folder import RunFolder

    benchmark = RunFolder.read(folder).benchmark(dataset)
    target = folder / "report.html"
    write_report(read_run(folder, benchmark), target)
    typer.echo(f"report  {target}")
