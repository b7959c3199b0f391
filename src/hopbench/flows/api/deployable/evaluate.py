"""The flow `evaluate`: what `hopbench run` does, from Prefect's pages or from another flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hopbench.flows.api.deployable.definition import deployable, unfinished_folder
from hopbench.flows.api.runs import Run
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.parameters import as_flags, own, parameters_of
from hopbench.flows.settings.run_settings import RunSettings, run_options

OUT = own("out", str | None, None, "Folder for the files (default: one in the home, the same for the same parameters).")
PARAMETERS = [*parameters_of(GraphOptions, RunSettings, strategies="all"), OUT]


@deployable("evaluate", PARAMETERS, "evaluate {dataset}")
def evaluate(**values: Any) -> Run:
    """Run strategies over a benchmark: rank, score, compare, track, report. Returns the run.

    Fails, as `hopbench run` exits with 3 or 4, where a target is missed or over 5% of a label's questions failed.
    """
    from hopbench.flows.run.completeness import refuse_incomplete, refuse_missed
    from hopbench.flows.run.evaluate import run

    home = Home.resolve()
    name = Path(values["dataset"]).name
    out = Path(values["out"]) if values["out"] else unfinished_folder(home.runs, name, values, "report.html")
    options = run_options(as_flags(values, GraphOptions, RunSettings), out, "evaluate (Prefect)")
    finished = run(options, "evaluate")
    refuse_incomplete(finished)
    refuse_missed(finished)
    return Run(out, finished.warnings)
