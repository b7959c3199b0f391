"""A sweep's report: its content, and in a real browser at a phone's width in both themes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import yaml
from tests.eval.report.test_browser import chrome, click, size, until
from tests.support.sweeps import write_benchmark, write_sweep

from hopbench.eval.sweep.plan import read_sweep
from hopbench.eval.sweep.report import SweepReport, front, write_sweep_report
from hopbench.eval.sweep.results import Cell, Result, best_yaml, ranked, selection
from hopbench.eval.sweep.space import Candidate
from hopbench.eval.trials.ledger import TrialRecord

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

__all__ = ["chrome"]
VALUES = [0.1, 0.2, 0.3, 0.4]


def made_up(candidates: Sequence[Candidate]) -> list[Result]:
    """Results that grow with restart, and cost more where they are better; the last was dropped."""
    rng, results = np.random.default_rng(1), []
    for place, candidate in enumerate(candidates):
        share = 0.4 + float(str(candidate.varied["restart"])) + 0.01 * place
        rows = pd.DataFrame({"all_gold@10": (rng.random(200) < share).astype(float), "failure": [None] * 200})
        mean = float(rows["all_gold@10"].mean())
        costs = {"latency_ms_p95": 5.0 + 100 * share, "context_tokens": 300.0, "tokens": 0.0}
        settings = {"code": "1", "embedder": "wordllama"}
        record = TrialRecord(
            f"t{place}", settings, {"all_gold@10": mean, "recall@5": mean}, rows, 0, 1.0, 0.0, 1.0, costs
        )
        results.append(Result(candidate, {Cell("tiny"): record}, 20 if place == len(candidates) - 1 else None))
    return results


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> SweepReport:
    folder = tmp_path_factory.mktemp("sweep-report")
    write_benchmark(folder / "tiny")
    file = write_sweep(
        folder,
        strategy=[{"strategy": "pagerank", "grid": {"restart": VALUES, "seed_chunks": [1, 3]}}],
        latency=True,
        constraints={"latency_ms_p95": 70},
    )
    file.write_text(yaml.safe_dump({k: v for k, v in yaml.safe_load(file.read_text()).items() if k != "grid"}))
    plan = read_sweep(file)
    results = ranked(made_up(plan.candidates), plan.content.objective, plan.content.constraints)
    bias = selection([one for one in results if one.dropped_at is None], "all_gold@10", 0)
    return SweepReport(plan, results, None, bias, ["<b>mind</b>"], best_yaml(plan, results[0]))


def test_the_front_holds_what_nothing_beats_in_quality_time_and_tokens(report: SweepReport) -> None:
    places = front(report.whole, report.metric, timed=True)
    assert len(report.results) - 1 == len(places)  # the dropped one has no place
    for one in places:
        beaten = any(
            (other.value >= one.value and other.ms <= one.ms and other.tokens <= one.tokens)
            and (other.value, other.ms, other.tokens) != (one.value, one.ms, one.tokens)
            for other in places
        )
        assert one.front is not beaten


def test_the_winner_is_a_file_that_run_reads(report: SweepReport) -> None:
    ready = yaml.safe_load(report.best_yaml)
    assert report.results[0].candidate.label == ready["strategies"]
    assert {"dataset", "strategies", "store", "embedder", "extractor"} == set(ready)


@pytest.fixture
def page(chrome: Chrome, report: SweepReport, tmp_path: Path) -> Iterator[Chrome]:
    path = tmp_path / "report.html"
    write_sweep_report(report, path)
    size(chrome, 360)
    chrome.get("about:blank")
    for log in ("browser", "performance"):
        chrome.get_log(log)
    chrome.get(path.as_uri())
    yield chrome
    assert [] == [entry["message"] for entry in chrome.get_log("browser")]
    sent = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]
    asked = {one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"}
    assert {True} == {url.startswith((path.as_uri(), "data:", "blob:")) for url in asked}


@pytest.mark.browser
def test_the_page_reads_on_a_phone_in_both_themes(page: Chrome) -> None:
    text = page.find_element("css selector", "main").text
    for word in (
        "selection bias",
        "restart",
        "over its limit: latency_ms_p95",
        "dropped after 20 questions",
        "<b>mind</b>",
    ):
        assert word in text
    charts = page.execute_script("return document.querySelectorAll('.chart').length")
    assert 3 == charts  # two responses and the front
    for theme in ("light", "dark"):
        for place in range(charts):
            page.execute_script("document.querySelectorAll('.chart')[arguments[0]].scrollIntoView()", place)
            until(page, f"document.querySelectorAll('.chart')[{place}].dataset.drawn === '{theme}'")
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
        click(page, "#theme")
    first = page.execute_script("return document.querySelector('.sortable tbody tr').cells[1].dataset.value")
    click(page, ".sortable thead th:nth-child(2) button")
    assert first != page.execute_script("return document.querySelector('.sortable tbody tr').cells[1].dataset.value")
