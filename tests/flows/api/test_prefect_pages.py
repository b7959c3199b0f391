"""Prefect's pages in a browser: its form starts a sweep and a night, a sweep is cancelled and gone on with."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.flows.cli.conftest import write_benchmark
from tests.support.browser import headless
from tests.support.served import serving

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.prefect, pytest.mark.browser]
SECONDS = 600
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
CANCEL = "//button[normalize-space(.)='Cancel']"
CONFIRM = "//*[contains(@class, 'p-modal')]//button[normalize-space(.)='Confirm']"
FIELD = "//div[contains(@class, 'schema-form-property')][div/label//span[starts-with(., '{name} (')]]"


class Pages:
    """The server of `hopbench serve`, by its API and in a browser."""

    def __init__(self, address: str) -> None:
        self.address = address

    def api(self, path: str, content: Any = None) -> Any:
        headers, body = {"Content-Type": "application/json"}, None
        if content is not None:
            token = self.api("/csrf-token?client=tests")["token"]
            headers |= {"Prefect-Csrf-Client": "tests", "Prefect-Csrf-Token": token}
            body = json.dumps(content).encode()
        asked = urllib.request.Request(f"{self.address}/api{path}", body, headers)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def runs(self, flow: str) -> list[dict[str, Any]]:
        """The runs of a flow that a deployment started, newest first."""
        wanted = {"flows": {"name": {"any_": [flow]}}, "sort": "START_TIME_DESC"}
        return [run for run in self.api("/flow_runs/filter", wanted) if run["deployment_id"]]

    def finished(self, run: str) -> str:
        """The type of the final state of a run."""
        return str(until(lambda: (state := self.api(f"/flow_runs/{run}")["state"]["type"]) in FINAL and state))

    def artifacts(self, run: str) -> dict[str, dict[str, Any]]:
        found = self.api("/artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}})
        return {one["key"]: one for one in found}


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS
    while True:
        with suppress(TimeoutError, urllib.error.URLError):  # a machine with other work answers late
            if found := condition():
                return found
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_benchmark(tmp_path_factory.mktemp("pages") / "tiny")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[Pages]:
    """`hopbench serve` with a server and a home of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment["HOPBENCH_HOME"] = str(tmp_path_factory.mktemp("served"))
    flags = ["--port", "0", "--cron", "0 2 1 1 *", "--dataset", str(tiny), "--strategies", "bm25", "--no-ragas"]
    with serving(flags, environment) as (process, lines):
        found = re.search(r"pages    (\S+)", "".join(lines))
        assert found, lines
        yield Pages(found[1])
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with headless(tmp_path_factory.mktemp("profile")) as session:
        session.set_window_size(1400, 6000)
        yield session


def open_form(chrome: Chrome, pages: Pages, flow: str) -> None:
    """The form of a custom run, as the button "Custom run" of a deployment opens it."""
    deployment = until(lambda: pages.api(f"/deployments/name/{flow}/serve"))["id"]
    chrome.get(f"{pages.address}/deployments/deployment/{deployment}/run")
    until(lambda: chrome.find_elements("css selector", ".schema-form-property"))


def field(chrome: Chrome, name: str) -> WebElement:
    return chrome.find_element("xpath", FIELD.format(name=name))


def fill(chrome: Chrome, name: str, value: object, tab: str = "") -> None:
    """Type a value into a field, of which a `tab` is chosen first."""
    if tab:
        field(chrome, name).find_element("xpath", f".//button[normalize-space(.)='{tab}']").click()
    box = until(lambda: field(chrome, name).find_elements("css selector", "input, textarea"))[0]
    box.clear()
    box.send_keys(str(value))


def submit(chrome: Chrome, pages: Pages, flow: str) -> dict[str, Any]:
    """Start the run; returns what the server knows of it."""
    before = {run["id"] for run in pages.runs(flow)}
    chrome.find_element("xpath", "//button[@type='submit']").click()
    return dict(until(lambda: [run for run in pages.runs(flow) if run["id"] not in before])[0])


def test_the_form_starts_a_run_and_the_list_shows_it(pages: Pages, chrome: Chrome) -> None:
    open_form(chrome, pages, "nightly")
    fill(chrome, "limit", 2, tab="int")
    run = submit(chrome, pages, "nightly")
    assert run["parameters"]["limit"] == 2
    chrome.get(f"{pages.address}/runs")
    assert until(lambda: chrome.find_elements("link text", run["name"]))


@pytest.mark.soak
def test_the_form_starts_a_sweep_with_two_changed_parameters(pages: Pages, chrome: Chrome) -> None:
    open_form(chrome, pages, "sweep")
    fill(chrome, "questions", 20, tab="int")
    fill(chrome, "seed", 3)
    run = submit(chrome, pages, "sweep")
    assert (run["parameters"]["file"], run["parameters"]["questions"], run["parameters"]["seed"]) == ("grid", 20, 3)
    assert "COMPLETED" == pages.finished(run["id"])
    best = pages.artifacts(run["id"])["hopbench-sweep-grid"]
    chrome.get(f"{pages.address}/artifacts/artifact/{best['id']}")
    link = until(lambda: chrome.find_elements("link text", "The report"))[0].get_attribute("href")
    assert "24 configurations on hopworld-tune" in chrome.find_element("tag name", "body").text
    chrome.get(str(link))
    assert until(lambda: "pagerank" in chrome.find_element("tag name", "body").text)
    logs = pages.api("/logs/filter", {"logs": {"flow_run_id": {"any_": [run["id"]]}}})
    assert any("pagerank[" in line["message"] for line in logs)


@pytest.mark.soak
def test_the_form_starts_a_night_and_its_artifacts_open(pages: Pages, chrome: Chrome) -> None:
    open_form(chrome, pages, "nightly")
    fill(chrome, "limit", 3, tab="int")
    run = submit(chrome, pages, "nightly")
    assert run["parameters"]["limit"] == 3
    assert "COMPLETED" == pages.finished(run["id"])
    found = pages.artifacts(run["id"])
    assert {"hopbench-night", "hopbench-nightly-tiny", "hopbench-leaderboard-tiny"} <= set(found)
    chrome.get(f"{pages.address}/artifacts/artifact/{found['hopbench-leaderboard-tiny']['id']}")
    until(lambda: chrome.find_elements("xpath", "//td[normalize-space(.)='bm25']"))
    chrome.get(str(chrome.find_element("link text", "The report").get_attribute("href")))
    assert until(lambda: "bm25" in chrome.find_element("tag name", "body").text)


@pytest.mark.soak
def test_the_form_says_what_it_refuses(pages: Pages, chrome: Chrome) -> None:
    open_form(chrome, pages, "nightly")
    before = len(pages.runs("nightly"))
    fill(chrome, "limit", 0, tab="int")
    chrome.find_element("xpath", "//button[@type='submit']").click()
    assert until(lambda: "0 is not valid" in field(chrome, "limit").text)
    assert before == len(pages.runs("nightly"))


def cancel(chrome: Chrome, pages: Pages, run: str) -> None:
    """Click "Cancel" on the page of a run, and on the question whether to cancel it."""
    chrome.get(f"{pages.address}/runs/flow-run/{run}")
    until(lambda: chrome.find_elements("xpath", CANCEL))[0].click()
    until(lambda: chrome.find_elements("xpath", CONFIRM))[0].click()


@pytest.mark.soak
def test_a_sweep_that_was_cancelled_on_the_pages_goes_on(pages: Pages, chrome: Chrome) -> None:
    deployment = pages.api("/deployments/name/sweep/serve")["id"]
    wanted = {"parameters": {"file": "grid", "datasets": ["hopworld-tune"], "seed": 11, "repeats": 4}}

    def started() -> str:
        return str(pages.api(f"/deployments/{deployment}/create_flow_run", wanted)["id"])

    def trials(run: str) -> int:
        logs = pages.api("/logs/filter", {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200})
        return sum("pagerank[" in line["message"] for line in logs)

    first = started()
    until(lambda: trials(first) >= 5)
    cancel(chrome, pages, first)
    assert "CANCELLED" == pages.finished(first)
    second = started()
    assert "COMPLETED" == pages.finished(second)
    logs = pages.api("/logs/filter", {"logs": {"flow_run_id": {"any_": [second]}}, "limit": 200})
    (line,) = [line["message"] for line in logs if "trials were finished before" in line["message"]]
    assert 5 <= int(line.split()[0]) < 96
