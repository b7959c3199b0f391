"""The report in a real browser: Debian's chromium, driven by Selenium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.browser import headless

from hopbench.eval.report import ReportData, write_report
from hopbench.eval.report._questions import packed_details
from hopbench.eval.types import Gold

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser
PLANTED = "<script>window.planted=1</script><img src=x onerror='window.planted=2'>"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One headless browser for this file, with a profile of its own."""
    with headless(tmp_path_factory.mktemp("profile")) as session:
        yield session


@pytest.fixture(scope="module")
def address(make_report: Callable[..., ReportData], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report in which a question, titles, texts, a type, an answer and a label carry markup."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(make_report(planted=PLANTED), path)
    return path.as_uri()


@pytest.fixture
def page(chrome: Chrome, address: str) -> Iterator[Chrome]:
    """The report opened at 1280 × 900; afterwards: no complaint, no request but for itself, no markup ran."""
    size(chrome, 1280)
    chrome.get("about:blank")
    for log in ("browser", "performance"):
        chrome.get_log(log)
    chrome.get(address)
    chrome.execute_script("try { localStorage.clear() } catch {}")
    yield chrome
    assert chrome.execute_script("return window.planted ?? null") is None
    assert chrome.get_log("browser") == []
    assert requests(chrome) == {address}


def requests(chrome: Chrome) -> set[str]:
    messages = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {url for url in asked if not url.startswith(("data:", "about:"))}


def size(chrome: Chrome, width: int) -> None:
    settings = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", settings)


def until(chrome: Chrome, script: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(chrome, 20).until(lambda c: c.execute_script(f"return {script}"), f"never true: {script}")


def click(chrome: Chrome, selector: str) -> None:
    chrome.execute_script("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
    chrome.find_element("css selector", selector).click()


def column(chrome: Chrome, place: int) -> list[str]:
    script = "return [...document.querySelectorAll('#board tbody tr')].map(r => r.cells[arguments[0]].dataset.value)"
    values: list[str] = chrome.execute_script(script, place)
    return values


def choose(chrome: Chrome, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(chrome.find_element("id", name)).select_by_value(value)


def test_sorting_by_click_and_by_keyboard_changes_the_order(page: Chrome) -> None:
    names = column(page, 0)
    scores = [float(v) for v in column(page, 1)]
    assert scores == sorted(scores, reverse=True)
    click(page, "#board thead th:nth-child(2) button")
    assert column(page, 0) == names[::-1]
    heads = "document.querySelectorAll('#board thead [aria-sort]')"
    assert page.execute_script(f"return [{heads}.length, {heads}[0].ariaSort]") == [1, "ascending"]
    page.find_element("css selector", "#board thead th:first-child button").send_keys("\ue007")  # Enter
    assert column(page, 0) == sorted(names)
    assert column(page, 0) != names[::-1]


def test_a_page_that_has_loaded_has_its_charts_so_that_a_printed_one_has_them(page: Chrome) -> None:
    # Nothing was scrolled: without that, the charts below the window were drawn only when they came near it.
    charts = "document.querySelectorAll('.chart')"
    assert page.execute_script(f"return [...{charts}].map(c => c.dataset.drawn)") == ["light"] * 3
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wide = page.execute_script(
        f"return [...{charts}].map(c => c.querySelector('.main-svg').clientWidth <= c.clientWidth)"
    )
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wide == [True] * 3


def test_charts_are_drawn_and_follow_the_theme(page: Chrome) -> None:
    count = page.execute_script("return document.querySelectorAll('.chart').length")
    assert count == 3
    for place in range(count):
        page.execute_script("document.querySelectorAll('.chart')[arguments[0]].scrollIntoView()", place)
        until(page, f"document.querySelectorAll('.chart')[{place}].dataset.drawn === 'light'")
    colour = "getComputedStyle(document.querySelector('.chart .point')).fill"
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.execute_script(f"return [{colour}, {background}]")
    click(page, "#theme")
    until(page, "[...document.querySelectorAll('.chart')].every(c => c.dataset.drawn === 'dark')")
    after = page.execute_script(f"return [{colour}, {background}]")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert page.execute_script("return document.querySelector('#theme').ariaPressed") == "true"
    assert "pagerank[<script>" in page.find_element("css selector", ".chart .legend").text


def test_no_two_labels_are_drawn_alike(chrome: Chrome, make_report: Callable[..., ReportData], tmp_path: Path) -> None:
    labels = ("bm25", *(f"pagerank[restart=0.{number}]" for number in range(11, 30)))  # as many as all,all:tuned
    write_report(make_report(count=20, labels=labels), tmp_path / "many.html")
    chrome.get((tmp_path / "many.html").as_uri())
    chrome.execute_script("document.querySelectorAll('.chart')[1].scrollIntoView()")
    until(chrome, "document.querySelectorAll('.chart')[1].dataset.drawn")
    marks = "[...document.querySelectorAll('.chart')[1].querySelectorAll('.legendpoints path')]"
    drawn = chrome.execute_script(f"return {marks}.map(m => m.getAttribute('d') + m.getAttribute('style'))")
    assert len(labels) == len(drawn) == len(set(drawn))


def test_filters_narrow_the_list(page: Chrome, make_report: Callable[..., ReportData]) -> None:
    rows = make_report(planted=PLANTED).rows
    kept = [q for q, label in rows if label == "hybrid" and won(rows, q, "hybrid") and not won(rows, q, "bm25")]
    choose(page, "finds", "hybrid")
    choose(page, "misses", "bm25")
    assert page.find_element("id", "shown").text.startswith(f"{len(kept)} of 300 questions")
    page.find_element("id", "search").send_keys("q0001")
    listed = page.execute_script("return document.querySelectorAll('#list li').length")
    assert listed == kept.count("q0001")
    choose(page, "finds", "")
    choose(page, "misses", "")
    assert page.find_element("id", "shown").text.startswith("1 of 300 questions")
    choose(page, "type", "compositional")  # q0001 is a comparison
    assert page.find_element("id", "shown").text.startswith("0 of 300 questions")


def won(rows: Any, question_id: str, label: str) -> bool:
    return bool(rows[(question_id, label)]["all_gold@10"] == 1.0)


def test_a_question_opens_with_ranks_and_a_readable_path(page: Chrome) -> None:
    click(page, "#list li:nth-child(6) button")
    until(page, "document.querySelector('#detail .chain') !== null")
    chain = page.find_element("css selector", "#detail .chain").text
    words = ["MENTIONED_IN .80", "Petra Harrow", "RELATED_TO .90", "Calden", "MENTIONED_IN .75"]
    assert [chain.find(word) for word in words] == sorted(chain.find(word) for word in words)
    assert chain.find(words[0]) > 0  # the seed's title stands before the first edge
    assert page.find_elements("css selector", "#detail .hits .hit.gold")
    assert len(page.find_elements("css selector", "#detail tbody tr")) == 5
    assert page.execute_script("return document.activeElement.id") == "detail"
    assert page.current_url.endswith("#question=q0005")


def test_of_several_gold_sets_the_page_says_which_counts(
    chrome: Chrome, make_report: Callable[..., ReportData], tmp_path: Path
) -> None:
    data = make_report()
    first, *others = data.benchmark.questions
    asked = replace(first, gold=Gold.any_of([first.gold, [first.gold[0], others[0].gold[0]]]))
    write_report(replace(data, benchmark=replace(data.benchmark, questions=(asked, *others))), tmp_path / "report.html")
    chrome.get((tmp_path / "report.html").as_uri())
    click(chrome, "#list li:first-child button")
    until(chrome, "document.querySelector('#detail .gold-passage') !== null")
    tags = [one.text for one in chrome.find_elements("css selector", "#detail .gold-passage summary")]
    assert ["set 1, set 2", "set 1", "set 2"] == [re.findall(r"set [12](?:, set 2)?", one)[0] for one in tags]
    table = chrome.find_element("css selector", "#detail table").text
    assert "gold set that counts" in table
    assert re.search(r"[12] of 2: (complete|lacks .+) in the top 10", table)
    assert [] == chrome.get_log("browser")


def test_markup_in_a_question_is_shown_as_text(page: Chrome) -> None:
    click(page, "#list li:first-child button")
    until(page, "document.querySelector('#detail .gold-passage') !== null")
    assert PLANTED in page.find_element("id", "detail-title").text
    assert PLANTED in page.find_element("css selector", ".gold-passage").text


def test_a_failed_question_is_linked_and_says_why(page: Chrome) -> None:
    page.execute_script("document.querySelector('#facts ~ details').open = true")
    click(page, "#facts ~ details a:nth-of-type(2)")
    until(page, "document.querySelector('#detail td.failed') !== null")
    assert "no node for 3 of 10 seeds" in page.find_element("css selector", "#detail td.failed").text


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_no_width_scrolls_sideways(page: Chrome, width: int) -> None:
    size(page, width)
    click(page, "#list li:nth-child(2) button")
    until(page, "document.querySelector('#detail .hits') !== null")
    page.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    for place in range(3):
        page.execute_script("document.querySelectorAll('.chart')[arguments[0]].scrollIntoView()", place)
        until(page, f"document.querySelectorAll('.chart')[{place}].dataset.drawn !== undefined")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.execute_script("return document.querySelector('.scroll').scrollWidth") > 0


def test_every_control_can_be_reached_and_shows_its_focus(page: Chrome) -> None:
    page.execute_script("document.activeElement.blur()")
    body, seen = page.find_element("css selector", "body"), []
    body.send_keys("\ue004")  # Tab
    for _ in range(12):
        seen.append(page.execute_script("const a = document.activeElement; return a.id || a.textContent.trim()"))
        width = page.execute_script("return getComputedStyle(document.activeElement).outlineWidth")
        assert width == "3px", seen
        page.switch_to.active_element.send_keys("\ue004")
    assert seen[:7] == ["Skip to the results", "Leaderboard", "Charts", "Breakdown", "Questions", "Run", "theme"]
    assert "all_gold@10" in seen


def test_a_report_that_could_not_hold_everything_says_so_and_opens_both_kinds_of_question(
    chrome: Chrome, make_report: Callable[..., ReportData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_report(count=80)  # in 4 batches
    everything = packed_details(data)
    monkeypatch.setattr("hopbench.eval.report._questions.PACKED_LIMIT", 0.95 * sum(map(len, everything.batches)))
    details = packed_details(data)
    write_report(data, tmp_path / "report.html")
    chrome.get((tmp_path / "report.html").as_uri())
    note = f"{details.whole} of the 80 questions are here with everything, {details.brief} with the ranks"
    assert note in chrome.find_element("id", "questions").find_element("xpath", "..").text

    shown = {}
    for kept in ("brief", "whole"):
        wanted = next(q.id for q in data.benchmark.questions if (details.place[q.id][0] < 4) == (kept == "brief"))
        chrome.execute_script("location.hash = arguments[0]", f"#question={wanted}")
        until(chrome, f"document.querySelector('#detail code')?.textContent === '{wanted}'")
        until(chrome, "document.querySelector('#detail .hits') !== null")
        paths = len(chrome.find_elements("css selector", "#detail .chain"))
        left_out = "were left out" in chrome.find_element("id", "detail").text
        shown[kept] = (paths > 0, left_out, len(chrome.find_elements("css selector", "#detail .hits .hit")) >= 20)
    assert {"brief": (False, True, False), "whole": (True, False, True)} == shown
