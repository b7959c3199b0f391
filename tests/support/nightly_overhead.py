"""What Prefect and MLflow add to a night: `python -m tests.support.nightly_overhead`.

Nights of hopworld by turns without either, with MLflow (`--no-prefect`), and with both, each in a home of its own whose
graph is built; and Prefect's server alone, started, awaited and stopped. Seconds on the clock depend on what else the
machine does; seconds of processors, of the command and all processes that it started, hardly do. `--limit` takes the
first N questions of the night: what Prefect and MLflow do hardly depends on their number.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

SERVER = """
from hopbench.flows.settings.home import Home
from hopbench.flows.orchestration.runtime import PrefectRuntime
with PrefectRuntime(Home.resolve()) as runtime:
    runtime.wait()
"""
COMMAND = (sys.executable, "-m", "hopbench.flows.cli.main")


def measured(command: Sequence[str], home: Path) -> tuple[float, float]:
    """Seconds on the clock and of processors that a command takes; its children and theirs included."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, env={**environment, "HOPBENCH_HOME": str(home)}, check=True, capture_output=True)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(nights: int, strategies: str, limit: int | None) -> None:
    """Measure and print medians."""
    night = ("nightly", "--strategies", strategies, *(() if limit is None else ("--limit", str(limit))))
    ways: Mapping[str, Sequence[str]] = {
        "neither": (sys.executable, "-m", "tests.support.untracked", *night, "--no-prefect"),
        "MLflow (--no-prefect)": (*COMMAND, *night, "--no-prefect"),
        "MLflow and Prefect": (*COMMAND, *night),
        "Prefect's server alone": (sys.executable, "-c", SERVER),
    }
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        subprocess.run(  # graph, caches and both databases: a first night makes them
            [*COMMAND, "nightly", "--strategies", "bm25"],
            env={**os.environ, "HOPBENCH_HOME": str(home)},
            check=True,
            capture_output=True,
        )
        shutil.rmtree(home / "nightly")
        for number in range(nights):
            for way, command in ways.items():
                copy = shutil.copytree(home, Path(folder) / "copy")
                found[way].append(measured(command, copy))
                shutil.rmtree(copy)
            print(f"{number + 1} of {nights}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)  # noqa: T201
    clock = {way: median(seconds for seconds, _ in one) for way, one in found.items()}
    cpu = {way: median(seconds for _, seconds in one) for way, one in found.items()}
    for way in ways:
        print(f"{way:24}  {clock[way]:6.1f} s on the clock  {cpu[way]:6.1f} s of processors")  # noqa: T201
    both, none, server = "MLflow and Prefect", "neither", "Prefect's server alone"
    for what, seconds in (("on the clock", clock), ("of processors", cpu)):
        beyond = seconds[both] - seconds[none] - seconds[server]
        print(f"beyond the server's start: {beyond:+.1f} s {what}")  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=3)
    parser.add_argument("--strategies", default="all,all:tuned")
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    main(given.nights, given.strategies, given.limit)
