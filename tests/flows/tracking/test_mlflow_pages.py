"""MLflow's pages in a real browser, on MLflow's own server."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.flows.cli.conftest import call, write_benchmark
from tests.support.thousand_trials import METRIC, pages, seconds_until, shows_all, write_trials

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker, tracking_uri
from hopbench.flows.tracking.payload import SWEEPS_EXPERIMENT, RunPayload, comparison_page, runs_page
from hopbench.flows.tracking.reader import command, experiment_pages, mlflow_server
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TRIALS = 30


def test_each_experiment_has_a_page_the_newest_first(tracked_home: Home) -> None:
    for name, started in (
        ("hopbench/old", 1.0),
        ("hopbench/new", 3.0),
        (SWEEPS_EXPERIMENT, 2.0),
        ("hopbench-models", 4.0),
    ):
        with Tracker.start(tracked_home, name) as tracker:  # without a metric: as an older HopBench made them
            tracker.log(RunPayload(name, "run", started_at=started))
    found = experiment_pages(tracked_home, "http://127.0.0.1:5000")
    assert list(found) == ["hopbench/new", SWEEPS_EXPERIMENT, "hopbench/old"]
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=tracking_uri(tracked_home), registry_uri=tracking_uri(tracked_home))
    for name, page in found.items():
        experiment = client.get_experiment_by_name(name)
        assert page == runs_page("http://127.0.0.1:5000", experiment.experiment_id, METRIC)
        assert "mlflow.sharedViewState.hopbench-all_gold_at_10" in experiment.tags


def test_a_home_without_runs_and_a_taken_port_are_refused(tracked_home: Home) -> None:
    with pytest.raises(InputError, match=r"no run was tracked at sqlite:.* yet"):
        experiment_pages(tracked_home, "")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"--port {port} cannot be used"), mlflow_server(tracked_home, port):
            pass


def test_a_server_of_ones_own_is_used_as_it_is(tracked_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example.org")
    with mlflow_server(tracked_home, 5000) as address:
        assert address == "http://mlflow.example.org"
    assert not (tracked_home.logs / "mlflow-server.log").exists()


def test_a_password_in_the_stores_address_is_no_argument_of_the_server(
    tracked_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:Pa55word@db.example.org/mlflow")
    assert "Pa55word" not in " ".join(command(tracked_home, 5000))


@pytest.fixture(scope="module")
def opened(
    tmp_path_factory: pytest.TempPathFactory, home_with_database: Callable[[Path], Path]
) -> Iterator[tuple[Chrome, str, str, list[str]]]:
    """A browser, the server's address, the experiment, and the ids of its trials, best first."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        home = Home(home_with_database(folder / "home")).prepare()
        for name, value in home.environment(os.environ).items():
            patch.setenv(name, value)
        written = write_trials(home, TRIALS)
        with pages(home, folder / "profile") as (browser, url):
            yield browser, url, written.experiment, written.run_ids


@pytest.mark.browser
@pytest.mark.soak  # the server and the browser take half a minute to start
def test_the_runs_page_shows_metric_label_and_data_set_without_a_click(
    opened: tuple[Chrome, str, str, list[str]],
) -> None:
    browser, url, experiment, run_ids = opened
    from mlflow import MlflowClient

    first, second = (MlflowClient(url).get_run(run_id) for run_id in run_ids[:2])
    value = f"{first.data.metrics['all_gold_at_10']:.6f}"[:6]  # a column shows as many digits as it has room for
    expected = (first.info.run_name, value, "pagerank[restart=", "hopworld-tune", "all_gold_at_10", "label", "dataset")
    page = runs_page(url, experiment, METRIC)
    seconds_until(browser, page, lambda text: all(word in text for word in expected))
    text = browser.find_element("tag name", "body").text
    assert text.index(first.info.run_name) < text.index(second.info.run_name)


@pytest.mark.browser
@pytest.mark.soak
def test_the_comparison_has_the_best_trials_side_by_side(opened: tuple[Chrome, str, str, list[str]]) -> None:
    browser, url, experiment, run_ids = opened
    page = comparison_page(url, experiment, run_ids[:20])
    took = seconds_until(browser, page, shows_all(run_ids[:20]))
    text = browser.find_element("tag name", "body").text
    assert "question_weight" in text
    assert "all_gold_at_10" in text
    assert took < 60  # seconds, also on a busy machine; docs/mlflow.md has the figures of a thousand trials


@pytest.mark.browser
@pytest.mark.soak
def test_the_evaluation_view_has_the_questions_of_several_trials(opened: tuple[Chrome, str, str, list[str]]) -> None:
    browser, url, experiment, _ = opened
    sort = "orderByKey=metrics.%60all_gold_at_10%60&orderByAsc=false"
    page = f"{runs_page(url, experiment, None)}&compareRunsMode=ARTIFACT&{sort}"
    expected = ("questions.json", "Group by: question", "Compare: all_gold@10", "Which city is number 1?")
    seconds_until(browser, page, lambda text: all(word in " ".join(text.split()) for word in expected))


@pytest.mark.browser
@pytest.mark.soak
def test_a_run_prints_links_that_open(opened: tuple[Chrome, str, str, list[str]], tmp_path: Path) -> None:
    browser, url, _, _ = opened
    command = ("run", "--dataset", write_benchmark(tmp_path / "tiny"), "--strategies", "bm25,vector", "--no-prefect")
    environment = {"MLFLOW_TRACKING_URI": url}
    done = call(*command, "--no-ragas", "--out", tmp_path / "out", home=tmp_path / "home", environment=environment)
    assert (done.code, done.err) == (0, "")
    links = dict(
        line.removeprefix("mlflow  ").split(": ", 1) for line in done.out.splitlines() if line.startswith("mlflow")
    )
    assert list(links) == ["runs", "compare"]
    seconds_until(browser, links["runs"], lambda text: "bm25" in text and "3 matching runs" in text)
    seconds_until(browser, links["compare"], lambda text: "Comparing 2 Runs" in text and "vector" in text)
