"""Events for Prefect's automations, and the example that reacts to a regression."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.flows.nightly.test_flow import REGRESSES
from tests.support.parallel import plain_prefect_environment
from tests.support.places import ROOT

from hopbench.flows.orchestration.events import CHAMPION_CHANGED, NIGHTLY, changed_champion, emit, resource_name
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.settings.home import Home

if TYPE_CHECKING:
    from prefect.events import Event

NIGHT: Mapping[str, Any] = {"night": "my-set-2026-01-02T020000Z", "regressions": ["pagerank[restart=0.99]"]}


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Event]]]:
    """What Prefect's client would have sent to its API."""
    from prefect.events.clients import AssertingEventsClient
    from prefect.events.worker import EventsWorker
    from prefect.settings import PREFECT_API_URL, temporary_settings

    def sent() -> list[Event]:
        EventsWorker.instance().wait_until_empty()
        return [event for client in AssertingEventsClient.all for event in client.events]

    EventsWorker.set_client_override(AssertingEventsClient)
    try:
        with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
            yield sent
            EventsWorker.instance().drain()
    finally:
        EventsWorker.set_client_override(None)
        AssertingEventsClient.reset()


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


@pytest.mark.prefect
@pytest.mark.soak  # two servers' starts and two nights
def test_a_regression_starts_the_examples_flow_with_the_nights_facts(
    home_with_graph: Callable[[Path, str], Path], tmp_path: Path, example: Any
) -> None:
    home = Home(home_with_graph(tmp_path / "home", "hopworld"))
    with plain_prefect_environment(home), PrefectRuntime.start(home, serving_port=0) as runtime:
        runtime.wait()
        with runtime.flow_settings():
            example.after_regression.to_deployment("after-regression", triggers=[example.REGRESSION]).apply()
        arguments = ["--dataset", "hopworld", "--limit", "60", "--strategies", "bm25,pagerank", "--no-ragas"]
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(REGRESSES), *arguments],
            env={**os.environ, "PREFECT_API_URL": runtime.api_url, "HOPBENCH_HOME": str(home.root)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3, done.stderr
        run = started(runtime)
        night = run.parameters["night"]
        assert (night["outcome"], night["benchmark"], night["regressions"]) == ("regression", "hopworld", ["pagerank"])
        effects = {pair["label"]: pair["effect"] for pair in night["comparisons"]}
        assert (set(night["labels"]), effects["bm25"]) == ({"bm25", "pagerank"}, 0.0)
        assert effects["pagerank"] < 0
        assert Path(night["report"]).is_file()
        assert "changed since then: the spec of pagerank" in night["text"]
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
    import httpx

    asked = {"filter": {"event": {"prefix": ["hopbench."]}}, "limit": 50}
    return {event["event"] for event in httpx.post(f"{runtime.api_url}/events/filter", json=asked).json()["events"]}
