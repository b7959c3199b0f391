"""`hopbench ls`, `open` and `history`: all runs at a glance, a run's report, and each label over the nights."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopbench.flows.cli.flags.declare import DATA, OUTPUT, argument, option
from hopbench.flows.cli.printing.output import add_row, console, number, print_csv, print_json, table

if TYPE_CHECKING:
    from hopbench.flows.cli.overview.runs import ListedRun

Json = Annotated[bool, option(OUTPUT, "--json", help="Print JSON for machines.")]
Csv = Annotated[bool, option(OUTPUT, "--csv", help="Print CSV, with a heading.")]


def ls_command(
    folders: Annotated[
        list[Path] | None, argument(metavar="[DIR …]", help="Look for runs in these folders too, and in theirs.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """List every run of the home, and of the folders named: when, on what, and the best label."""
    from hopbench.flows.cli.overview.runs import list_runs
    from hopbench.flows.settings.home import Home

    home = Home.resolve()
    runs, notes = list_runs(home, folders or ())
    if as_json or as_csv:
        _for_machines([{**asdict(run), "folder": str(run.folder)} for run in runs], as_json)
    elif not runs:
        console().print(f"no run is kept in {home.root}: hopbench run makes one", markup=False, soft_wrap=True)
    else:
        _print_runs(runs)
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _print_runs(runs: Sequence[ListedRun]) -> None:
    counts, heads = ("questions", "labels"), ("run", "started (UTC)", "command", "data set")
    rows = table(
        *heads, *counts, "ahead", "metric", "mean", right=(*counts, "mean"), drop=("command", *counts), fold=("run",)
    )
    for run in runs:
        when = run.started[:16].replace("T", " ")
        cells = (run.name, when, run.command, run.dataset, f"{run.questions:,}", str(run.labels))
        add_row(rows, *cells, run.best or "–", run.metric or "–", number(run.value))
    console().print(rows)


def open_command(
    run: Annotated[
        str | None,
        argument(metavar="[RUN]", help="A run's folder, or its name as `hopbench ls` shows it (default: the newest)."),
    ] = None,
    mlflow: Annotated[
        bool, option(OUTPUT, "--mlflow", help="Open MLflow's pages on all runs instead, best first; stop with Ctrl-C.")
    ] = False,
    port: Annotated[int, option(OUTPUT, help="MLflow's port on 127.0.0.1 (0: any).", min=0, max=65535)] = 5000,
) -> None:
    """Open a run's report in the browser and print where it is; where there is no browser, print it only."""
    if mlflow:
        _open_mlflow(port)
        return
    from hopbench.flows.cli.overview.runs import find_run
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.support.errors import InputError

    found = find_run(run, Home.resolve())
    if found.report is None:
        raise InputError(f"{found.folder}: has no report.html: hopbench report {found.folder} makes it again")
    typer.echo(found.report.absolute())
    if not _has_browser() or not webbrowser.open(found.report.absolute().as_uri()):
        typer.echo("no browser here: open the file above in one", err=True)


def _open_mlflow(port: int) -> None:
    """Serve MLflow's pages and print the address of each experiment's runs."""
    from hopbench.flows.settings.home import Home
    from hopbench.flows.tracking.server import experiment_pages, mlflow_server

    home = Home.resolve().prepare()
    home.apply_environment()
    names = experiment_pages(home, "")  # refuses a home without runs before a server is started
    with mlflow_server(home, port) as address:
        for name, page in names.items():
            typer.echo(f"{name}  {address}/{page}")
        sys.stdout.flush()
        first = f"{address}/{next(iter(names.values()))}"
        if not _has_browser() or not webbrowser.open(first):
            typer.echo("no browser here: open an address above in one", err=True)
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            typer.echo("stop it with Ctrl-C", err=True)
            with suppress(KeyboardInterrupt):
                signal.pause()


def _has_browser() -> bool:
    """Whether a page can be shown: a text browser would take over the terminal."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def history_command(
    benchmark: Annotated[str, argument(help="The benchmark's name, as its nights have it.")],
    label: Annotated[str | None, option(DATA, help="Only this label.")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show each label over the nights: its mean with a 95% interval, and its latency."""
    from hopbench.flows.cli.overview.history import history
    from hopbench.flows.settings.home import Home

    points = history(benchmark, Home.resolve(), label)
    if as_json or as_csv:
        _for_machines([asdict(point) for point in points], as_json)
        return
    rows = table(
        "label", "night (UTC)", "metric", "mean", "95% interval", "p50 ms", "outcome", right=("mean", "p50 ms")
    )
    for point in sorted(points, key=lambda point: (point.label, point.started)):
        interval = "" if point.low is None else f"[{number(point.low)}, {number(point.high)}]"
        when = point.started[:16].replace("T", " ")
        latency = number(point.latency_ms_p50, 1)
        add_row(rows, point.label, when, point.metric, number(point.value), interval, latency, point.outcome)
    console().print(rows)


def _for_machines(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(list(rows))
    else:
        print_csv(rows)
