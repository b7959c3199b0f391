"""What MLflow's pages show of an experiment before anyone clicks: its view of the runs, its description, its links."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker, TrackingError, tracking_uri
from hopbench.flows.tracking.payload import (
    SWEEPS_EXPERIMENT,
    Param,
    RunPayload,
    Tag,
    comparison_page,
    mlflow_dataset,
    runs_page,
)
from hopbench.flows.tracking.reader import TrackingReader
from hopbench.flows.tracking.registry import saved_view

if TYPE_CHECKING:
    from mlflow import MlflowClient

NOTE = "mlflow.note.content"
VIEW = "mlflow.sharedViewState.hopbench-all_gold_at_10"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, home_with_database: Callable[[Path], Path]) -> Iterator[Home]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        place = Home(home_with_database(tmp_path_factory.mktemp("home"))).prepare()
        for name, value in place.environment(os.environ).items():
            patch.setenv(name, value)
        yield place


@pytest.fixture(scope="module")
def client(home: Home) -> MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri(home), registry_uri=tracking_uri(home))


def track(home: Home, experiment: str, *runs: RunPayload, metric: str | None = "all_gold@10") -> str:
    """Write the runs; returns the experiment's id."""
    with Tracker.start(home, experiment, metric) as tracker:
        for run in runs:
            tracker.log(run)
    assert tracker.experiment_id is not None
    return tracker.experiment_id


def test_a_view_has_metric_label_and_data_set_best_first() -> None:
    view = json.loads(saved_view("all_gold@10"))
    state = json.loads(view["state"])
    assert (view["name"], state["orderByKey"], state["orderByAsc"]) == (
        "by all_gold@10",
        state["selectedColumns"][0],
        False,
    )
    assert ["metrics.`all_gold_at_10`", "params.`label`", "params.`dataset`"] == state["selectedColumns"][:3]
    assert "attributes.`Dataset`" in state["columnOrder"]
    assert json.loads(json.loads(saved_view("noise_sensitivity"))["state"])["orderByAsc"]  # less of it is better


def test_an_experiment_that_was_deleted_in_mlflow_is_named_with_the_remedy(home: Home, client: MlflowClient) -> None:
    number = track(home, "hopbench/deleted")
    client.delete_experiment(number)
    wanted = rf"'hopbench/deleted' was deleted in MLflow: restore it \(`mlflow experiments restore -x {number}`\)"
    with pytest.raises(TrackingError, match=wanted):
        track(home, "hopbench/deleted", RunPayload("a", "a"))
    client.restore_experiment(number)
    assert number == track(home, "hopbench/deleted", RunPayload("a", "a"))


def test_an_experiment_is_described_once_and_keeps_what_others_write(home: Home, client: MlflowClient) -> None:
    number = track(home, "hopbench/described")
    tags = client.get_experiment(number).tags
    assert (tags["mlflow.experimentKind"], tags["mlflow.experiment.primaryMetric.name"]) == (
        "custom_model_development",
        "all_gold_at_10",
    )
    assert runs_page("", number, "all_gold@10") in tags[NOTE]
    client.set_experiment_tag(number, NOTE, "ours")
    client.set_experiment_tag(number, VIEW, "changed")
    assert number == track(home, "hopbench/described", metric="recall@5")
    later = client.get_experiment(number).tags
    assert (later[NOTE], later[VIEW]) == ("ours", "changed")
    assert "mlflow.sharedViewState.hopbench-recall_at_5" in later


def test_a_run_links_the_comparison_of_its_labels(home: Home, client: MlflowClient) -> None:
    labels = [RunPayload(f"night/{label}", label, parent_key="night") for label in ("bm25", "pagerank")]
    whole = RunPayload(
        "night", "nightly", tags={Tag.NOTE: "Two labels"}, compared=("night/bm25", "night/pagerank", "gone")
    )
    number = track(home, "hopbench/linked", RunPayload("night", "nightly", status="RUNNING"), *labels, whole)
    by_name = {run.info.run_name: run for run in client.search_runs([number])}
    ids = [by_name[label].info.run_id for label in ("bm25", "pagerank")]
    note = by_name["nightly"].data.tags[NOTE]
    assert note == f"Two labels\n\n[Compare these runs]({comparison_page('', number, ids)})"


def test_a_description_at_mlflows_limit_keeps_its_link(home: Home, client: MlflowClient) -> None:
    both = [RunPayload(key, key) for key in ("one", "two")]
    long = RunPayload("long", "long", tags={Tag.NOTE: "x" * 9000}, compared=("one", "two"))
    number = track(home, "hopbench/long", *both, long)
    (run,) = client.search_runs([number], "attributes.run_name = 'long'")
    assert len(run.data.tags[NOTE]) == 8000
    assert run.data.tags[NOTE].endswith(")")


def test_mlflow_opens_the_data_set_that_a_run_names(home: Home, client: MlflowClient, tmp_path: Path) -> None:
    from mlflow.data import get_source

    (tmp_path / "queries.jsonl").write_text("{}")
    dataset = mlflow_dataset("mine", "d" * 64, {"num_rows": 3}, tmp_path)
    number = track(home, "hopbench/data", RunPayload("run", "run", dataset=dataset))
    (run,) = client.search_runs([number])
    (given,) = run.inputs.dataset_inputs
    assert (given.dataset.name, given.dataset.digest, given.tags[0].value) == ("mine", "d" * 36, "evaluation")
    assert (tmp_path / "queries.jsonl").is_file()
    assert Path(get_source(given).load()) == tmp_path


def test_no_link_names_a_page_that_no_server_shows(home: Home) -> None:
    with Tracker.start(home, "hopbench/links", "all_gold@10") as tracker:
        tracker.log(RunPayload("a", "a"))
        tracker.log(RunPayload("b", "b"))
    assert tracker.links(["a", "b"]) == {}
    tracker.uri = "http://mlflow:5000"
    links = tracker.links(["a", "b", "gone"])
    assert links["runs"].startswith(f"http://mlflow:5000/#/experiments/{tracker.experiment_id}/runs?")
    assert [tracker.run_ids["a"], tracker.run_ids["b"]] == json.loads(
        links["compare"].partition("runs=")[2].partition("&")[0].replace("%22", '"')
    )
    assert list(tracker.links(["a"])) == ["runs"]


def test_a_sweeps_trial_is_not_the_newest_run_of_its_label(home: Home) -> None:
    run = {"params": {Param.LABEL: "bm25"}, "metrics": {"all_gold@10": 0.5}}
    track(home, "hopbench/world", RunPayload("whole/bm25", "bm25", started_at=1.0, **run))
    track(home, SWEEPS_EXPERIMENT, RunPayload("sweep/bm25", "bm25 4f2a1c", started_at=2.0, **run))
    newest = TrackingReader(home).newest("bm25", None)
    assert newest is not None
    assert (newest.name, newest.label) == ("bm25", "bm25")
