"""The home's version: an older home is brought up to date before it is used, a newer one is refused.

The ledger and Prefect's database have their own versions and migrations, MLflow's is upgraded by
`tracking.schema`, and a graph's builder version is part of its build key. That leaves the nightly records.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.locking import exclusive
from hopbench.retrieval.support.notice import notice

VERSION = 2
STAMP = "home.json"


def bring_up_to_date(root: Path) -> None:
    """Upgrade the home step by step. Raises InputError for a home of a newer HopBench, or an unreadable stamp."""
    found = _version(root)
    if found == VERSION:
        return
    if found > VERSION:
        raise InputError(
            f"HOPBENCH_HOME: {root} has version {found}, this HopBench ({version('hopbench')}) knows up to {VERSION}: "
            "update HopBench, or name another folder with HOPBENCH_HOME=DIR"
        )
    with exclusive(root / ".upgrading"):
        for older in range(found, VERSION):
            _UPGRADES[older](root)
        stamp = {"version": VERSION, "hopbench": version("hopbench")}
        _write(root / STAMP, json.dumps(stamp).encode())
    (root / ".upgrading").unlink(missing_ok=True)


def _version(root: Path) -> int:
    try:
        return max(1, int(json.loads((root / STAMP).read_text(encoding="utf-8"))["version"]))
    except FileNotFoundError:
        return 1  # homes had no stamp before
    except OSError as error:
        raise InputError(
            f"HOPBENCH_HOME: {root / STAMP} cannot be read ({error.strerror}): move it away, and the home is looked "
            "through anew"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        notice(f"{root / STAMP} was damaged ({type(error).__name__}: {error}): the home is stamped anew")
        return 1  # every step leaves alone what is up to date


def _nights(root: Path) -> None:
    """1 → 2: nights keep their scores and circumstances themselves, where they pointed to results.json before."""
    for file in sorted(root.glob("nightly/*/nightly.json")):
        try:
            old = json.loads(file.read_bytes())
        except (ValueError, OSError, RecursionError):
            continue  # reported where nightly records are read
        if not isinstance(old, dict) or "schema" in old:
            continue
        table, results = file.parent / "questions.parquet", file.parent / "results.json"
        if not table.is_file() or not results.is_file():
            file.rename(file.with_suffix(".json.v1"))  # nothing is left to compare with
            continue
        _upgrade_night(file, old, json.loads(results.read_text(encoding="utf-8")), table)


def _upgrade_night(file: Path, old: dict[str, object], results: dict[str, object], table: Path) -> None:
    import pandas as pd

    rows = pd.read_parquet(table)
    kept = rows[[name for name in ("question_id", "strategy", "all_gold@10", "failure") if name in rows.columns]]
    buffer = io.BytesIO()
    kept.to_parquet(buffer, index=False, compression="zstd")
    _write(file.parent / "night.parquet", buffer.getvalue())
    _write(file, json.dumps(night_from_version_1(file.parent.name, old, results), indent=2).encode())


def night_from_version_1(name: str, old: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, object]:
    """nightly.json of version 2 from that of version 1 and the night's results.json."""
    benchmark, strategies, graph = results["benchmark"], results["strategies"], results["graph"]
    outcome = "regression" if old["regressions"] else "good" if old["previous"] else "baseline"
    return {
        "schema": "hopbench.nightly/2",
        "night": name,
        "started": _started(name),
        "benchmark": {key: benchmark[key] for key in ("name", "digest", "questions")},
        "outcome": outcome,
        "metric": "all_gold@10",
        "previous": {},
        "regressions": old["regressions"],
        "comparisons": [],
        "champion": None,
        "slower": [],
        "incomplete": [],
        "changed": old["changed"],
        "labels": {
            label: {"all_gold@10": one["metrics"].get("all_gold@10"), "latency_ms_p50": one.get("latency_ms_p50")}
            for label, one in strategies.items()
        },
        "circumstances": {
            "graph": {"fingerprint": graph["fingerprint"], "build_key": graph["build_key"]},
            "specs": {label: one["params"] for label, one in strategies.items()},
            **{key: results[key] for key in ("embedder", "store", "seed") if key in results},
        },
        "namespace": "",
        "tracking_key": "",
        "kept": {},
    }


def _started(name: str) -> str:
    """`hopworld-2026-11-22T024020Z` → `2026-11-22T02:40:20+00:00`; nights with names of their own sort first."""
    day, _, time = name[-18:].partition("T")
    if len(day) == 10 and len(time) == 7:
        return f"{day}T{time[:2]}:{time[2:4]}:{time[4:6]}+00:00"
    return "0001-01-01T00:00:00+00:00"


def _write(path: Path, content: bytes) -> None:
    from hopbench.eval.files import write_atomically

    write_atomically(path, content)


_UPGRADES: dict[int, Callable[[Path], None]] = {1: _nights}
