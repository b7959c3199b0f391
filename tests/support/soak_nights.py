"""Nights on a busy machine: `python -m tests.support.soak_nights [--nights 20] [--planted 5]`, a part of `make soak`.

A first night while the machine is as quiet as it is, then, beside four busy processes, nights of the same code, none of
which may raise an alarm, and nights in which one label takes three times as long, each of which must. Ends with exit
code 1 where that is not so. All run in one process, without MLflow: starting would take most of the time.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.flows.cli.conftest import Done, call

from hopbench.flows.run import evaluate
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.baselines import Hybrid
from hopbench.retrieval.strategies.neighborhood import Neighborhood
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.types import Counters, Ranking

# Of `bm25` three times .1 ms would be too little to be called slower (`latency.LEAST_MS`).
LABELS: dict[str, type[Strategy]] = {"neighborhood": Neighborhood, "hybrid": Hybrid, "pagerank": PageRank}
PYTHON = "while True: sum(range(10_000))"
NUMPY = "import numpy as np\na = np.ones((700, 700))\nwhile True: a @ a"  # takes both processors, and their caches
FLAGS = ("--dataset", "hopworld", "--limit", "60", "--no-prefect", "--no-ragas", "--strategies", ",".join(LABELS))
SAID = re.compile(r"no regression|regression of|yardstick|busier|Error")


@contextmanager
def busy() -> Iterator[None]:
    """Four processes that never rest."""
    started = [subprocess.Popen([sys.executable, "-c", code]) for code in (PYTHON, PYTHON, NUMPY, NUMPY)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


@contextmanager
def slowed(strategy: type[Strategy], waits: bool) -> Iterator[None]:
    """The strategy takes three times as long: it waits for twice its processor time, or does everything three times."""
    rank = strategy.rank

    def slow(self: Strategy, batch: Batch, counters: Counters) -> list[Ranking]:
        begun = time.thread_time()
        found = rank(self, batch, counters)
        if waits:
            time.sleep(2 * (time.thread_time() - begun))
            return found
        for _ in range(2):  # of a new batch: one keeps what was computed
            rank(self, Batch(batch.index, batch.questions, batch.alone), Counters())
        return found

    with patch.object(strategy, "rank", slow):
        yield


def soak(home: Path, nights: int, planted: int) -> bool:
    """Whether every night ended as it should."""
    good = [tell("quiet", 0, home)]
    with busy():
        good += [tell(f"unchanged {number}", 0, home) for number in range(1, nights + 1)]
        for number in range(planted):
            label, waits = list(LABELS)[number % len(LABELS)], bool(number % 2)
            what = f"planted {number + 1}: {label} {'waits' if waits else 'works'} three times as long"
            with slowed(LABELS[label], waits):
                good.append(tell(what, 3, home, f"regression of {label},"))
    return all(good)


def tell(what: str, code: int, home: Path, words: str = "no regression") -> bool:
    """Run a night, print a line on it, and return whether it ended with this code, saying these words."""
    begun = time.monotonic()
    found: Done = call("nightly", *FLAGS, home=home)
    said = [line.strip() for line in (found.out + found.err).splitlines() if SAID.search(line)]
    right = found.code == code and (what == "quiet" or any(words in line for line in said))
    took = f"{time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}"
    head = f"{'ok   ' if right else 'WRONG'} {what}: exit {found.code}, {took}"
    sys.stdout.write("\n        ".join([head, *said]) + "\n")
    sys.stdout.flush()
    return right


@contextmanager
def untracked() -> Iterator[None]:
    """Runs reach no MLflow."""
    with patch.object(evaluate, "Tracker") as tracker:
        started = tracker.start.return_value.__enter__.return_value
        started.notes, started.run_ids = [], {}
        yield


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=20)
    parser.add_argument("--planted", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, untracked():
        sys.exit(0 if soak(Path(folder), asked.nights, asked.planted) else 1)
