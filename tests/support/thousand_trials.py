"""MLflow's pages with a thousand trials: `python -m tests.support.thousand_trials [--trials 1000]`.

Writes a sweep's trials with HopBench's own writer, starts MLflow's server on them, opens its pages in a browser, and
prints the seconds and the writer's processor time for each trial.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pandas as pd
from tests.support.browser import headless

from hopbench.eval.types import BenchmarkQuestion
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import tracking_uri, writers_lock
from hopbench.flows.tracking.payload import (
    SWEEPS_EXPERIMENT,
    TABLE_TAG,
    Param,
    RunPayload,
    Tag,
    comparison_page,
    mlflow_dataset,
    runs_page,
    to_message,
    trial_name,
    write_table,
)
from hopbench.flows.tracking.reader import mlflow_server
from hopbench.flows.tracking.writer import Writer

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

METRIC = "all_gold@10"
METRICS = [f"{name}@{k}" for name in ("recall", "all_gold", "nDCG", "precision", "hit") for k in (2, 5, 10, 20)]
QUESTIONS = [BenchmarkQuestion(f"q{number}", f"Which city is number {number}?") for number in range(50)]
PATIENCE = 120


@dataclass(frozen=True)
class Written:
    """The trials in MLflow, best first, the best one's name; what writing one took, in milliseconds."""

    experiment: str
    run_ids: list[str]
    best: str
    wall_ms: float
    cpu_ms: float


def write_trials(home: Home, count: int) -> Written:
    """Write a sweep of `count` trials as `hopbench sweep` does: 12 parameters, 40 metrics, a table of 50 questions."""
    home.prepare()
    home.apply_environment()
    places = home.mlartifacts.as_uri(), writers_lock(home), home.mlflow_db
    writer = Writer(tracking_uri(home), SWEEPS_EXPERIMENT, *places, METRIC)
    experiment, random = writer.prepare(), Random(0)
    writer.write(to_message(RunPayload("sweep", "sweep grid", status="RUNNING", started_at=1.0)))
    rows = pd.DataFrame({METRIC: [1.0, 0.0] * 25}, index=[question.id for question in QUESTIONS])
    table = write_table(home.scratch / "table", rows, QUESTIONS)
    scores: dict[str, tuple[float, str]] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(count):
        payload = _trial(number, random, table)
        scores[writer.write(to_message(payload))] = payload.metrics[METRIC], payload.name
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    writer.write(to_message(RunPayload("sweep", "sweep grid", started_at=1.0)))
    best = sorted(scores, key=lambda run_id: -scores[run_id][0])
    return Written(experiment, best, scores[best[0]][1], 1000 * wall / count, 1000 * cpu / count)


def _trial(number: int, random: Random, table: Path) -> RunPayload:
    varied = {"restart": round(random.random(), 3), "question_weight": random.choice([0.5, 1.0, 2.0])}
    trial_id = f"{number:06x}{random.getrandbits(64):016x}"
    means = {name: random.random() for name in METRICS}
    label = f"pagerank[{','.join(f'{name}={value}' for name, value in varied.items())}]"
    return RunPayload(
        f"sweep/{trial_id}",
        trial_name(label, varied, (), trial_id),
        parent_key="sweep",
        params={Param.LABEL: label, Param.DATASET: "hopworld-tune", **varied, **{f"p{n}": n for n in range(8)}},
        metrics={**means, **{f"{name}.coverage": 1.0 for name in METRICS}},
        tags={Tag.SWEEP_ID: "sweep", Tag.TRIAL_ID: trial_id, Tag.KIND: "tuned", Tag.NOTE: label, **TABLE_TAG},
        dataset=mlflow_dataset("hopworld-tune", "d" * 64, {"num_rows": 300}),
        artifacts=(table,),
        started_at=1000.0 + number,
        ended_at=1001.0 + number,
        once=True,
    )


@contextmanager
def pages(home: Home, profile: Path) -> Iterator[tuple[Chrome, str]]:
    """A browser, and the address of MLflow's server."""
    with mlflow_server(home, 0) as url, headless(profile) as browser:
        browser.set_window_size(1600, 1000)
        yield browser, url


def seconds_until(browser: Chrome, url: str, shown: Callable[[str], bool]) -> float:
    """Open `url`, and wait until the text of the page is as `shown` expects."""
    browser.get("about:blank")
    begun = time.perf_counter()
    browser.get(url)
    while not shown(text := browser.find_element("tag name", "body").text):
        assert time.perf_counter() - begun < PATIENCE, f"{url}: {text[:2000]}"
        time.sleep(0.05)
    return time.perf_counter() - begun


def measure(folder: Path, count: int) -> Iterator[tuple[str, float]]:
    """What writing a trial took, then the seconds of each page."""
    home = Home(folder / "home")
    written = write_trials(home, count)
    yield "ms to write a trial", written.wall_ms
    yield "ms of processor to write a trial", written.cpu_ms
    with pages(home, folder / "profile") as (browser, url):
        leaderboard = runs_page(url, written.experiment, METRIC)
        for turn in ("first", "second"):
            yield f"runs by {METRIC}, {turn}", seconds_until(browser, leaderboard, lambda text: written.best in text)
        for compared in (2, 20, 100):
            page = comparison_page(url, written.experiment, written.run_ids[:compared])
            yield f"comparison of {compared}", seconds_until(browser, page, shows_all(written.run_ids[:compared]))


def shows_all(run_ids: list[str]) -> Callable[[str], bool]:
    """Whether MLflow's comparison has its figures: the last run's id stands there, and what follows the metrics."""
    return lambda text: run_ids[-1] in text and f"Comparing {len(run_ids)} Runs" in text and "Metrics" in text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="a folder to leave the home in")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for name, value in measure(asked.folder or Path(place), asked.trials):
            sys.stdout.write(f"{name:40} {value:.1f}\n")
            sys.stdout.flush()
