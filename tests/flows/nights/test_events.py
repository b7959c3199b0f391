"""Events for Prefect's automations, and the example that reacts to a regression."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest
from tests.support.made_up_nights import METRIC, Tonight, judged, night, scores
from tests.support.parallel import plain_prefect_environment
from tests.support.places import ROOT
from tests.support.prefect_events import recorded_events

from hopbench.flows.nights.publish import to_prefect
from hopbench.flows.nights.verdict import Verdict
from hopbench.flows.orchestration.pages import (
    CHAMPION_CHANGED,
    NIGHTLY,
    PAGES_VARIABLE,
    changed_champion,
    emit,
    resource_name,
)
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from prefect.events import Event

NIGHT: Mapping[str, Any] = {"night": "my-set-2026-01-02T020000Z", "regressions": ["pagerank[restart=0.99]"]}


@pytest.fixture
def emitted() -> Iterator[Callable[[], list[Event]]]:
    with recorded_events() as sent:
        yield sent


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's module: Prefect imports the flow from it by name."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "prefect")
    module = importlib.import_module("after_regression")
    monkeypatch.setitem(sys.modules, "after_regression", module)  # and without it afterwards
    return module


def test_names_become_parts_of_a_resources_id() -> None:
    assert resource_name("My Set_2.beir/") == "my-set-2-beir"
    assert resource_name("pagerank[restart=0.99]") == "pagerank-restart-0-99"


def test_an_event_names_benchmark_labels_and_night(emitted: Callable[[], list[Event]]) -> None:
    emit(f"{NIGHTLY}regression", "My set", "d" * 64, NIGHT, [*NIGHT["regressions"], *NIGHT["regressions"]])
    changed_champion("My set", "d" * 64, "hybrid", None, {"value": 0.5})
    first, second = emitted()
    assert (first.event, second.event) == ("hopbench.nightly.regression", CHAMPION_CHANGED)
    assert first.resource.id == "hopbench.benchmark.my-set"
    assert first.resource["hopbench.benchmark.digest"] == "d" * 64
    assert [(one.role, one.id, one.name) for one in first.related] == [
        ("label", "hopbench.label.pagerank-restart-0-99", "pagerank[restart=0.99]")
    ]
    assert first.payload == {"benchmark": "My set", **NIGHT}
    assert second.payload == {"benchmark": "My set", "label": "hybrid", "before": None, "value": 0.5}


def test_the_example_reacts_to_a_regression_alone(emitted: Callable[[], list[Event]], example: Any) -> None:
    from datetime import UTC, datetime

    from prefect.server.events.schemas.automations import EventTrigger
    from prefect.server.events.schemas.events import ReceivedEvent

    declared = example.REGRESSION
    declared.set_deployment_id(uuid4())
    trigger = EventTrigger.model_validate(declared.as_automation().trigger.model_dump(mode="json"))
    for outcome in ("regression", "good", "incomplete", "baseline"):
        emit(f"{NIGHTLY}{outcome}", "hopworld", "d", NIGHT)
    found = [
        trigger.covers(one) and trigger.expects(one.event)
        for event in emitted()
        for one in [ReceivedEvent(**event.model_dump(), received=datetime.now(UTC))]
    ]
    assert found == [True, False, False, False]


def regression(folder: Path) -> tuple[Any, Verdict]:
    """A night on which pagerank is worse than on the night before; and its verdict."""
    night(folder, "made-01:00", {"bm25": scores(0.5), "pagerank": scores(0.8)})
    tonight = Tonight({"bm25": scores(0.5), "pagerank": scores(0.6)})
    plan = SimpleNamespace(benchmark=SimpleNamespace(name="My set", digest="d" * 64))
    summaries = {"bm25": {"metrics": {METRIC: 0.5}}, "pagerank": {"metrics": {METRIC: 0.6}}}
    return SimpleNamespace(plan=plan, summaries=summaries), judged(tonight, folder)


def test_a_verdict_is_an_event_with_figures_labels_and_report(
    tmp_path: Path, emitted: Callable[[], list[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prefect.artifacts.create_markdown_artifact", lambda *_: None)  # there is no API
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    monkeypatch.setenv(PAGES_VARIABLE, "1")
    evaluation, verdict = regression(tmp_path)
    assert to_prefect(evaluation, "tonight", verdict, tmp_path / "report.html", "bm25", "hybrid") is None
    first, second = emitted()
    assert (first.event, [one.name for one in first.related]) == ("hopbench.nightly.regression", ["pagerank"])
    payload = first.payload
    assert payload["labels"] == {"bm25": 0.5, "pagerank": 0.6}
    assert [(one["label"], round(one["effect"], 3)) for one in payload["comparisons"]] == [
        ("bm25", 0.0),
        ("pagerank", -0.2),
    ]
    assert payload["report"] == str(tmp_path / "report.html")
    assert payload["report_url"] == "http://127.0.0.1:4200/hopbench/nights/tonight/report.html"
    assert second.event == CHAMPION_CHANGED
    said = {name: second.payload[name] for name in ("label", "before", "metric", "value", "night")}
    assert said == {"label": "bm25", "before": "hybrid", "metric": METRIC, "value": 0.5, "night": "tonight"}


def test_a_server_that_went_away_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr("prefect.artifacts.create_markdown_artifact", gone)
    evaluation, verdict = regression(tmp_path)
    warning = to_prefect(evaluation, "tonight", verdict, tmp_path / "report.html", None, None)
    assert warning == "The verdict was not reported to Prefect's API (ConnectError): no artifact, no event"


@pytest.mark.prefect
@pytest.mark.soak  # two servers' starts and two nights
def test_a_regression_starts_the_examples_flow_with_the_nights_facts(
    home_with_graph: Callable[[Path, str], Path], tmp_path: Path, example: Any
) -> None:
    home = Home(home_with_graph(tmp_path / "home", "hopworld"))
    with plain_prefect_environment(home), PrefectRuntime(home, serving_port=0) as runtime:
        runtime.wait()
        with runtime.flow_settings():
            example.after_regression.to_deployment("after-regression", triggers=[example.REGRESSION]).apply()
        given = {"dataset": "hopworld", "limit": 60, "strategies": ["bm25", "pagerank"], "ragas": False}
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.regressing_night", json.dumps(given)],
            env={**os.environ, "PREFECT_API_URL": runtime.api_url, "HOPBENCH_HOME": str(home.root)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        run = started(runtime)
        told = run.parameters["night"]
        assert (told["outcome"], told["benchmark"], told["regressions"]) == ("regression", "hopworld", ["pagerank"])
        effects = {pair["label"]: pair["effect"] for pair in told["comparisons"]}
        assert (set(told["labels"]), effects["bm25"]) == ({"bm25", "pagerank"}, 0.0)
        assert effects["pagerank"] < 0
        assert Path(told["report"]).is_file()
        assert "changed since then: the spec of pagerank" in told["text"]
        assert events(runtime) >= {
            "hopbench.nightly.baseline",
            "hopbench.champion.changed",
            "hopbench.nightly.regression",
        }


def started(runtime: PrefectRuntime) -> Any:
    """The flow run that the automation has scheduled."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName

    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with runtime.flow_settings(), get_client(sync_client=True) as client:
            named = FlowFilter(name=FlowFilterName(any_=["after-regression"]))
            if runs := client.read_flow_runs(flow_filter=named):
                (run,) = runs
                return run
        time.sleep(0.5)
    raise AssertionError("no flow run was started by the automation")


def events(runtime: PrefectRuntime) -> set[str]:
    """The names of HopBench's events on the server."""
    asked = {"filter": {"event": {"prefix": ["hopbench."]}}, "limit": 50}
    token = httpx.get(f"{runtime.api_url}/csrf-token", params={"client": "tests"}).json()["token"]
    named = {"Prefect-Csrf-Client": "tests", "Prefect-Csrf-Token": token}
    answer = httpx.post(f"{runtime.api_url}/events/filter", json=asked, headers=named)
    return {event["event"] for event in answer.json()["events"]}
