"""`--keep N`: which nightly records are kept, why, and what is deleted with the others."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hopbench.flows.nights.history import STAMP, NightlyRecord, last_good, remove
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.stores import open_store
from hopbench.retrieval.support.errors import HopBenchError


@dataclass(frozen=True)
class Retention:
    """The nightly records of one benchmark: `kept`, with the reason of each, and `expired`."""

    kept: Mapping[str, str]
    expired: Sequence[NightlyRecord]


def plan(earlier: Sequence[NightlyRecord], keep: int, good_tonight: Sequence[str], champion: str | None) -> Retention:
    """What stays of `earlier` (newest first) when tonight is counted among the `keep` newest.

    The last good night of each label stays whatever its age, unless tonight is it (`good_tonight` has its labels then);
    so does the night whose name is `champion`.
    """
    needed = _last_good(earlier, good_tonight)
    kept, expired = {}, []
    for place, night in enumerate(earlier, 2):
        if place <= keep:
            kept[night.name] = f"among the newest {keep}"
        elif night.name in needed:
            kept[night.name] = f"the last good night of {', '.join(needed[night.name])}"
        elif night.name == champion:
            kept[night.name] = "the champion's night"
        else:
            expired.append(night)
    return Retention(kept, expired)


def _last_good(earlier: Sequence[NightlyRecord], have: Sequence[str]) -> dict[str, list[str]]:
    needed: dict[str, list[str]] = {}
    for label in dict.fromkeys(label for night in earlier for label in night.labels if label not in have):
        night = last_good(earlier, label)
        if night is not None:
            needed.setdefault(night.name, []).append(label)
    return needed


def apply(retention: Retention, home: Home, everything: Sequence[NightlyRecord], graph_now: str) -> list[str]:
    """Remove the expired nights, and the graphs that only they used; returns what was removed, in words.

    Graphs that no night used (of runs and sweeps) are left alone, as are files outside the home.
    """
    gone = {night.name for night in retention.expired}
    used = {graph_now, *(_graph(night)[1] for night in everything if night.name not in gone)}
    removed = []
    for night in retention.expired:
        remove(night)
        removed.append(f"the night {night.name}")
    for engine, namespace in dict.fromkeys(_graph(night) for night in retention.expired):
        if namespace and namespace not in used:
            removed.append(_drop(engine, namespace, home))
    return removed


def _graph(night: NightlyRecord) -> tuple[str, str]:
    return str(night.circumstances.get("store", "")), str(night.content.get("namespace", ""))


def _drop(engine: str, namespace: str, home: Home) -> str:
    try:
        open_store(engine, namespace, home).drop()
        (home.graphs / f"{namespace}.{engine}.json").unlink(missing_ok=True)
    except HopBenchError as error:  # a server that is away tonight: its graph stays
        return f"nothing of the graph {namespace} ({error})"
    return f"the graph {namespace}"


def leftovers(folder: Path, earlier: Sequence[NightlyRecord], keep: int, benchmark: str) -> list[Path]:
    """Folders of nightly runs of this benchmark without a verdict that are older than the `keep` newest."""
    oldest = earlier[keep - 1].name if len(earlier) >= keep else ""
    names = {night.name for night in earlier}
    return [
        path
        for path in folder.glob(f"{glob.escape(benchmark)}-{STAMP}")
        if path.is_dir() and path.name not in names and path.name < oldest
    ]


def drop_leftover(folder: Path) -> str:
    """Remove the folder of a nightly run that never finished."""
    shutil.rmtree(folder, ignore_errors=True)
    return f"the unfinished night {folder.name}"
