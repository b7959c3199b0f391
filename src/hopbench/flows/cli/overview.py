"""`hopbench ls`, `open` and `history`: all runs at a glance, a run's report, and each label over the nights."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import webbrowser
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hopbench.flows.cli.flags import Csv, Json, argument, option
from hopbench.flows.cli.output import Grid, console, echo, number, print_csv, print_json, stdout
from hopbench.flows.settings.setting import DATA, OUTPUT
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.flows.nights.history import Point
    from hopbench.flows.settings.home import Home


RESULTS = "results.json"
REPORT = "report.html"


@dataclass(frozen=True)
class ListedRun:
    """A run: its name, start (UTC), data set, and the best label by the primary metric.

    `best` leaves out labels that were fitted on these questions; it and `value` are None where nothing ranks labels.
    """

    name: str
    started: str
    command: str
    dataset: str
    questions: int
    labels: int
    metric: str | None
    best: str | None
    value: float | None
    folder: Path


UNREADABLE = (OSError, ValueError, EOFError, TypeError, KeyError, AttributeError, zlib.error, RecursionError)


def list_runs(home: Home, folders: Sequence[Path] = ()) -> tuple[list[ListedRun], list[str]]:
    """The runs, newest first, and problems with those that could not be read.

    Looks into `folders` and the folders in them, into the home's nights and its runs from Python, and into the files
    that were stored with runs in the home's MLflow; a run that is in several of these is listed once, by the first.
    Raises InputError for one of `folders` that is no folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: is no folder: name one that holds runs, or the --out folder of one")
    patterns = [(folder, pattern) for folder in folders for pattern in (RESULTS, f"*/{RESULTS}")]
    patterns += [(folder, f"*/{RESULTS}") for folder in (home.nights, home.runs)]
    patterns += [(home.mlartifacts, f"*/artifacts/{RESULTS}")]
    found: dict[tuple[str, ...], ListedRun] = {}
    notes = []
    for place in (file.parent for folder, pattern in patterns for file in sorted(folder.glob(pattern))):
        try:
            run, key = _read(place)
        except UNREADABLE as error:
            notes.append(f"{place}: cannot be read ({str(error)[:100] or type(error).__name__}): run it again")
            continue
        if run is not None:
            found.setdefault(key, run)
    return sorted(found.values(), key=lambda run: (run.started, run.name), reverse=True), notes


def find_run(text: str | None, home: Home) -> ListedRun:
    """The run in the folder `text`, else the newest of that name (or whose name begins so); without text the newest.

    Raises InputError where there is none.
    """
    from hopbench.eval.runs.files import RESULTS_SCHEMA

    if text is not None and (Path(text) / RESULTS).is_file():
        folder = Path(text)
        try:
            run, _ = _read(folder)
        except UNREADABLE as error:
            raise InputError(f"{folder}: a file of the run is damaged ({error}): run the benchmark again") from error
        if run is None:
            raise InputError(f"{folder / RESULTS}: not of schema {RESULTS_SCHEMA!r}: name the --out folder of a run")
        return run
    runs, _ = list_runs(home)
    if not runs:
        raise InputError(f"no run is kept in {home.root} yet: hopbench run makes one, or name its folder")
    if text is None:
        return runs[0]
    named = [run for run in runs if run.name == text] or [run for run in runs if run.name.startswith(text)]
    if not named:
        raise UnknownNameError("run", text, {run.name for run in runs})
    return named[0]


def _read(folder: Path) -> tuple[ListedRun | None, tuple[str, ...]]:
    """The run, and its identity across places; None for another program's results.json."""
    from hopbench.eval.metrics import primary_of, rank_key
    from hopbench.eval.runs.files import DETAILS_FILE, RESULTS_SCHEMA

    results = json.loads((folder / RESULTS).read_bytes())
    if results.get("schema") != RESULTS_SCHEMA:
        return None, ()
    packed = folder / DETAILS_FILE
    details = json.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else {}
    facts: Mapping[str, Any] = details.get("run", {})
    entries: Mapping[str, Mapping[str, Any]] = results["strategies"]
    metric = primary_of(results)
    values = {
        label: entry["metrics"][metric]
        for label, entry in entries.items()
        if not entry.get("in_sample") and metric is not None and entry["metrics"].get(metric) is not None
    }
    best = min(values, key=lambda label: rank_key(metric or "", values[label]), default=None)
    modified = datetime.fromtimestamp((folder / RESULTS).stat().st_mtime, UTC).isoformat(timespec="seconds")
    about = results["benchmark"]
    run = ListedRun(
        name=folder.name if folder.name != "artifacts" else folder.parent.name[:8],
        started=str(facts.get("started") or modified),
        command=" ".join(str(facts.get("command", "")).split()[:2]),
        dataset=str(about["name"]),
        questions=int(about["questions"]),
        labels=len(entries),
        metric=metric,
        best=best,
        value=None if best is None else float(values[best]),
        folder=folder,
    )
    return run, (run.started, str(facts.get("command")), str(about["digest"]), str(sorted(entries)))


def history(benchmark: str, home: Home, label: str | None = None) -> list[Point]:
    """The points of a benchmark's labels, oldest night first, then by label.

    Raises UnknownNameError for a benchmark without nights or a label that none of them has, InputError without nights.
    """
    from hopbench.flows.nights.history import nights, points_of

    kept = nights(home.nights)
    if not kept:
        raise InputError(f"no night is kept in {home.nights} yet: hopbench nightly makes one")
    named = [night for night in reversed(kept) if night.content["benchmark"].get("name") == benchmark]
    if not named:
        raise UnknownNameError("benchmark with nights", benchmark, {str(n.content["benchmark"]["name"]) for n in kept})
    labels = {name for night in named for name in night.labels}
    if label is not None and label not in labels:
        raise UnknownNameError(f"label in the nights of {benchmark}", label, labels)
    return [point for night in named for point in points_of(night, label)]


def ls_command(
    folders: Annotated[
        list[Path] | None, argument(metavar="[DIR …]", help="Look for runs in these folders too, and in theirs.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """List every run of the home, and of the folders named: when, on what, and the best label."""
    from hopbench.flows.settings.home import Home

    home = Home.resolve()
    runs, notes = list_runs(home, folders or ())
    if as_json or as_csv:
        (print_json if as_json else print_csv)([{**asdict(run), "folder": str(run.folder)} for run in runs])
    elif not runs:
        console().print(f"no run is kept in {home.root}: hopbench run makes one", markup=False, soft_wrap=True)
    else:
        counts, heads = ("questions", "labels"), ("run", "started (UTC)", "command", "data set")
        columns, drop = (*heads, *counts, "ahead", "metric", "mean"), ("command", *counts)
        rows = Grid(*columns, right=(*counts, "mean"), drop=drop, fold=("run",))
        for run in runs:
            when = run.started[:16].replace("T", " ")
            cells = (run.name, when, run.command, run.dataset, f"{run.questions:,}", str(run.labels))
            rows.add_row(*cells, run.best or "–", run.metric or "–", number(run.value))
        console().print(rows)
    for note in notes:
        echo(f"note: {note}", err=True)


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
    from hopbench.flows.settings.home import Home

    if mlflow:
        _open_mlflow(port)
        return
    folder = find_run(run, Home.resolve()).folder
    report = folder / REPORT
    if not report.is_file():
        raise InputError(f"{folder}: has no report.html: hopbench report {folder} makes it again")
    echo(report.absolute())
    if not _has_browser() or not webbrowser.open(report.absolute().as_uri()):
        echo("no browser here: open the file above in one", err=True)


def _open_mlflow(port: int) -> None:
    """Serve MLflow's pages and print the address of each experiment's runs."""
    from hopbench.flows.settings.home import Home
    from hopbench.flows.tracking.reader import experiment_pages, mlflow_server

    home = Home.resolve().prepare()
    home.apply_environment()
    names = experiment_pages(home, "")  # refuses a home without runs before a server is started
    with mlflow_server(home, port) as address:
        for name, page in names.items():
            echo(f"{name}  {address}/{page}")
        stdout().flush()
        first = f"{address}/{next(iter(names.values()))}"
        if not _has_browser() or not webbrowser.open(first):
            echo("no browser here: open an address above in one", err=True)
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            echo("stop it with Ctrl-C", err=True)
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
    from hopbench.flows.settings.home import Home

    points = history(benchmark, Home.resolve(), label)
    if as_json or as_csv:
        (print_json if as_json else print_csv)([asdict(point) for point in points])
        return
    rows = Grid("label", "night (UTC)", "metric", "mean", "95% interval", "p50 ms", "outcome", right=("mean", "p50 ms"))
    for point in sorted(points, key=lambda point: (point.label, point.started)):
        interval = "" if point.low is None else f"[{number(point.low)}, {number(point.high)}]"
        when = point.started[:16].replace("T", " ")
        latency = number(point.latency_ms_p50, 1)
        rows.add_row(point.label, when, point.metric, number(point.value), interval, latency, point.outcome)
    console().print(rows)
