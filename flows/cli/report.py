"""`hopbench report DIR`: makes a run's report.html again from its other files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hopbench.flows.cli.flags.panels import DATA, argument, option


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
