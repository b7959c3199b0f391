"""Every finished run of a home and of some folders, as `hopbench ls` lists them; MLflow itself is not loaded."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hopbench.eval.metrics import primary_of, rank_key
from hopbench.eval.runs.files import DETAILS_FILE, RESULTS_SCHEMA
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, UnknownNameError

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

    @property
    def report(self) -> Path | None:
        """The run's report, where there is one."""
        file = self.folder / REPORT
        return file if file.is_file() else None


def list_runs(home: Home, folders: Sequence[Path] = ()) -> tuple[list[ListedRun], list[str]]:
    """The runs, newest first, and problems with those that could not be read.

    Looks into `folders` and the folders in them, into the home's nights and its runs from Python, and into the files
    that were stored with runs in the home's MLflow; a run that is in several of these is listed once, by the first.

    Raises
    ------
    InputError
        For one of `folders` that is no folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: is no folder: name one that holds runs, or the --out folder of one")
    found: dict[tuple[str, ...], ListedRun] = {}
    notes = []
    for place in _places(home, folders):
        try:
            run, key = _read(place)
        except (
            OSError,
            ValueError,
            EOFError,
            TypeError,
            KeyError,
            AttributeError,
            zlib.error,
            RecursionError,
        ) as error:
            notes.append(f"{place}: cannot be read ({str(error)[:100] or type(error).__name__}): run it again")
            continue
        if run is not None:
            found.setdefault(key, run)
    return sorted(found.values(), key=lambda run: (run.started, run.name), reverse=True), notes


def find_run(text: str | None, home: Home) -> ListedRun:
    """The run in the folder `text`, else the newest of that name (or whose name begins so); without text the newest.

    Raises
    ------
    InputError
        When there is none.
    """
    if text is not None and (Path(text) / RESULTS).is_file():
        return _only(Path(text))
    runs, _ = list_runs(home)
    if not runs:
        raise InputError(f"no run is kept in {home.root} yet: hopbench run makes one, or name its folder")
    if text is None:
        return runs[0]
    named = [run for run in runs if run.name == text] or [run for run in runs if run.name.startswith(text)]
    if not named:
        raise UnknownNameError("run", text, {run.name for run in runs})
    return named[0]


def _only(folder: Path) -> ListedRun:
    try:
        run, _ = _read(folder)
    except (OSError, ValueError, EOFError, TypeError, KeyError, AttributeError, zlib.error, RecursionError) as error:
        raise InputError(f"{folder}: a file of the run is damaged ({error}): run the benchmark again") from error
    if run is None:
        raise InputError(f"{folder / RESULTS}: not of schema {RESULTS_SCHEMA!r}: name the --out folder of a run")
    return run


def _places(home: Home, folders: Iterable[Path]) -> Iterator[Path]:
    patterns = [(folder, pattern) for folder in folders for pattern in (RESULTS, f"*/{RESULTS}")]
    patterns += [
        (home.nights, f"*/{RESULTS}"),
        (home.runs, f"*/{RESULTS}"),
        (home.mlartifacts, f"*/artifacts/{RESULTS}"),
    ]
    for folder, pattern in patterns:
        yield from (file.parent for file in sorted(folder.glob(pattern)))


def _read(folder: Path) -> tuple[ListedRun | None, tuple[str, ...]]:
    """The run, and its identity across places; None for another program's results.json."""
    results = json.loads((folder / RESULTS).read_bytes())
    if results.get("schema") != RESULTS_SCHEMA:
        return None, ()
    facts = _facts(folder)
    entries: Mapping[str, Mapping[str, Any]] = results["strategies"]
    metric = primary_of(results)
    started = str(facts.get("started") or _modified(folder))
    name = folder.name if folder.name != "artifacts" else folder.parent.name[:8]
    about = results["benchmark"]
    best = _best(entries, metric)
    value = None if best is None or metric is None else float(entries[best]["metrics"][metric])
    command = " ".join(str(facts.get("command", "")).split()[:2])
    run = ListedRun(
        name, started, command, str(about["name"]), int(about["questions"]), len(entries), metric, best, value, folder
    )
    return run, (started, str(facts.get("command")), str(about["digest"]), str(sorted(entries)))


def _best(entries: Mapping[str, Mapping[str, Any]], metric: str | None) -> str | None:
    fair = [label for label, entry in entries.items() if not entry.get("in_sample")]
    measured = [label for label in fair if metric is not None and entries[label]["metrics"].get(metric) is not None]
    return min(measured, key=lambda label: rank_key(metric or "", entries[label]["metrics"][metric]), default=None)


def _facts(folder: Path) -> Mapping[str, Any]:
    packed = folder / DETAILS_FILE
    details = json.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else {}
    facts: Mapping[str, Any] = details.get("run", {})
    return facts


def _modified(folder: Path) -> str:
    return datetime.fromtimestamp((folder / RESULTS).stat().st_mtime, UTC).isoformat(timespec="seconds")
