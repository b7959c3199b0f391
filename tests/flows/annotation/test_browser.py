"""The page in a browser: questions are written, the command is killed, and its next start has them all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import headless

PAGES = {
    "burton.md": "# Tim Burton\n\nTim Burton was born in Burbank. He directed Ed Wood.",
    "burbank.md": "# Burbank\n\nBurbank is a city in Los Angeles County.",
    "burbank-2.md": "# City of Burbank\n\nThe city of Burbank lies in Los Angeles County.",
}
QUESTION = "In which county was the director of <b>Ed Wood</b> born?"


@contextmanager
def annotating(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "hopbench.flows.cli.main",
        "annotate",
        "notes",
        "--out",
        "made",
        "--no-browser",
    ]
    command += ["--strategies", "bm25,vector"]
    environment = {**os.environ, "HOPBENCH_HOME": str(folder / "home")}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = next(line.split()[1] for line in process.stdout if line.startswith("open "))
            yield address, process
        finally:
            process.kill()


def opened(browser: Any, address: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(address)
    wait = WebDriverWait(browser, 30)
    wait.until(lambda page: page.find_element("id", "corpus").text == "notes")
    return wait


def mark(browser: Any, passage: str, number: int) -> None:
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("css selector", f'select[aria-label="Evidence in {passage}"]')).select_by_value(
        str(number)
    )


def test_what_is_written_survives_a_kill(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for name, text in PAGES.items():
        (tmp_path / "notes" / name).write_text(text, encoding="utf-8")
    with headless(tmp_path / "profile") as browser:
        with annotating(tmp_path) as (address, process):
            wait = opened(browser, address)
            browser.find_element("id", "text").send_keys(QUESTION)
            browser.find_element("id", "answer").send_keys("Los Angeles County")
            browser.find_element("id", "pool").click()
            wait.until(lambda page: len(page.find_elements("css selector", "#passages article")) == 3)
            assert "Burton" in browser.find_element("id", "passages").text
            for passage, number in (("burton.md", 1), ("burbank.md", 2), ("burbank-2.md", 2)):
                mark(browser, passage, number)
                wait.until(lambda page: page.find_element("id", "status").text.startswith("Saved"))
            wait.until(lambda page: "1 with 2 pieces of evidence" in page.find_element("id", "progress").text)
            browser.find_element("id", "next").click()
            browser.find_element("id", "text").send_keys("Half a quest")
            wait.until(lambda _: "Half a quest" in (tmp_path / "made" / "annotations.json").read_text(encoding="utf-8"))
            os.kill(process.pid, signal.SIGKILL)
        with annotating(tmp_path) as (address, _):
            opened(browser, address)
            assert "Half a quest" == browser.find_element("id", "text").get_attribute("value")  # the unfinished one
            assert QUESTION in browser.find_element("id", "list").text  # as text, not as markup
            refused = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
            assert [] == [entry for entry in refused if "favicon" not in entry["message"]]
    (row,) = map(json.loads, (tmp_path / "made" / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    assert {frozenset(("burton.md", "burbank.md")), frozenset(("burton.md", "burbank-2.md"))} == set(
        map(frozenset, row["gold"])
    )


@pytest.mark.parametrize("place", ["file", "busy"])
def test_a_folder_that_cannot_be_written_is_refused_before_a_page_opens(tmp_path: Path, place: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nSome text.", encoding="utf-8")
    if place == "file":
        (tmp_path / "made").write_text("mine", encoding="utf-8")
    else:
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "mine.txt").write_text("mine", encoding="utf-8")
    command = [
        sys.executable,
        "-P",
        "-m",
        "hopbench.flows.cli.main",
        "annotate",
        "notes",
        "--out",
        "made",
        "--no-browser",
    ]
    environment = {**os.environ, "HOPBENCH_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert (2, True) == (done.returncode, "holds something already" in done.stderr), done.stderr
