"""RAGAS's metrics and targets where people look for them: the terminal, the report and MLflow's pages."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.flows.cli.conftest import Done, Hopbench, call
from tests.support.browser import headless

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import tracking_uri

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

KEPT, MISSED = "id_based_context_precision>=.01", "bm25 recall@5>=.999"
RAGAS = (
    *("id_based_context_precision", "id_based_context_recall"),
    *("non_llm_context_precision_with_reference", "non_llm_context_recall"),
)


@pytest.fixture(scope="module")
def night(
    home_with_graph: Callable[[Path, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Done, Home, Path]:
    """A night on hopworld that keeps one target and misses another."""
    home, out = home_with_graph(tmp_path_factory.mktemp("home"), "hopworld"), tmp_path_factory.mktemp("night")
    flags = ("--limit", 20, "--strategies", "bm25,pagerank", "--no-prefect", "--target", KEPT, "--target", MISSED)
    return call("nightly", *flags, "--out", out, home=home), Home(home), out


def test_a_night_prints_ragas_and_the_targets_and_ends_with_3_where_one_is_missed(
    night: tuple[Done, Home, Path],
) -> None:
    done, _, out = night
    head = next(line for line in done.out.splitlines() if line.startswith("RAGAS"))
    assert set(RAGAS) <= set(head.split())
    assert "target  id_based_context_precision>=0.01: pass, 2 of 2 labels" in done.out
    assert "target  bm25 recall@5>=0.999: fail, 1 of 1 labels: bm25 0." in done.out
    assert 3 == done.code
    assert "1 target missed:" in done.err
    entry = json.loads((out / "results.json").read_text(encoding="utf-8"))["targets"]
    assert {"bm25": False} == {label: one["passed"] for label, one in entry["recall@5>=0.999"].items()}


@contextmanager
def mlflow_pages(home: Home) -> Iterator[Callable[[], str]]:
    """MLflow's own server over a home's database: waits until it answers, and gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri(home)]
    line += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    # Its jobs (evaluations by models) would start processes that each import mlflow.
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "TMPDIR": str(home.scratch)}
    server = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def address() -> str:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return f"http://127.0.0.1:{port}"

    try:
        yield address
    finally:
        server.terminate()
        server.wait()


def answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
    except OSError:
        return False
    return True


def shown(chrome: Chrome, address: str, *words: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    chrome.get(address)
    script = "return document.body.innerText"
    WebDriverWait(chrome, 60).until(
        lambda c: all(word in c.execute_script(script) for word in words), f"{address} never shows {words}"
    )


def test_the_report_and_mlflow_have_both(night: tuple[Done, Home, Path]) -> None:
    _, home, out = night
    with closing(sqlite3.connect(home.mlflow_db)) as database:
        tags = database.execute("SELECT name, tags.value FROM runs JOIN tags USING (run_uuid) WHERE key = 'targets'")
        kept = {re.sub(r" \d{4}-\d\d-\d\d \d\d:\d\d$", "", name): value for name, value in tags.fetchall()}
        of_bm25 = "SELECT key FROM metrics JOIN runs USING (run_uuid) WHERE name = 'bm25'"
        metrics = {key for (key,) in database.execute(of_bm25)}
    assert {"nightly hopworld": "fail", "bm25": "fail", "pagerank": "pass"} == kept
    assert set(RAGAS) <= metrics
    page = (out / "report.html").read_text(encoding="utf-8")
    assert [] == [word for word in ("RAGAS", *RAGAS, "2 of 3 kept") if word not in page]


@pytest.mark.soak  # MLflow's server and a browser take as long to start as all the rest here
@pytest.mark.browser
def test_the_pages_of_the_report_and_of_mlflow_show_both(night: tuple[Done, Home, Path], tmp_path: Path) -> None:
    _, home, out = night
    with closing(sqlite3.connect(home.mlflow_db)) as database:
        found = database.execute("SELECT run_uuid, experiment_id FROM runs WHERE name = 'bm25'").fetchall()
    ((run, experiment),) = found
    with mlflow_pages(home) as pages, headless(tmp_path / "profile") as chrome:
        shown(chrome, (out / "report.html").as_uri(), "RAGAS", *RAGAS, "Targets", "2 of 3 kept")
        rows = chrome.find_elements("css selector", "section[aria-labelledby=targets] tbody tr")
        assert ["fail", "pass", "pass"] == [row.text.split()[-1] for row in rows]
        place = f"{pages()}/#/experiments/{experiment}/runs/{run}"
        shown(chrome, place, *RAGAS, "targets", "recall@5>=0.999 failed")


def test_a_target_that_the_run_will_not_measure_is_refused_before_anything_is_ranked(
    hopbench: Hopbench, bench: Path, tmp_path: Path
) -> None:
    flags = ("--dataset", bench, "--no-prefect", "--out", tmp_path / "out", "--target", "context_precision>=.2")
    done = hopbench("run", *flags)
    assert 2 == done.code
    assert "id_based_context_precision, which needs no model" in done.err
    assert not (tmp_path / "out").exists()


def test_targets_may_stand_in_a_file(hopbench: Hopbench, bench: Path, tmp_path: Path) -> None:
    (tmp_path / "night.yaml").write_text("target:\n  - recall@5>=0\n  - bm25 coverage>=1\nstrategies: bm25\n")
    flags = ("--dataset", bench, "--no-prefect", "--no-ragas", "--out", tmp_path / "out")
    done = hopbench("run", *flags, "--config", tmp_path / "night.yaml")
    assert (0, "") == (done.code, done.err)
    assert "target  recall@5>=0: pass, 1 of 1 labels" in done.out
    assert "target  bm25 coverage>=1: pass, 1 of 1 labels" in done.out
    assert "RAGAS" not in done.out
