"""What a scheduled night leaves for its readers: a line, an artifact, and its report on the server of the pages."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest

from hopbench.flows.nights.history import write_night
from hopbench.flows.nights.publish import ending, exit_code_of
from hopbench.flows.orchestration.pages import PAGES_VARIABLE, link, link_in, report_of, routes
from hopbench.flows.orchestration.server import settings_of_pages, without_third_parties
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import IncompleteError, InputError, RegressionError

NIGHT = "made-2026-01-02T020000Z"


def kept(nights: Path, report: Path | None = None, **content: Any) -> Path:
    """A night in its folder; its report there, or where `report` says."""
    folder = nights / NIGHT
    folder.mkdir(parents=True)
    file = report or folder / "report.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("<p>the report</p>")
    written = {
        "started": "2026-01-02T02:00:00+00:00",
        "benchmark": {"digest": "d"},
        "outcome": "good",
        "regressions": [],
        "incomplete": [],
        "labels": {"a": {}, "b": {}},
        "compared": ["a"],
        "report": str(file),
        **content,
    }
    write_night(folder, written, pd.DataFrame({"question_id": ["q"], "strategy": ["a"], "failure": [None]}))
    return file


def test_a_nights_report_is_served_and_nothing_else(tmp_path: Path) -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    kept(tmp_path / "nightly")
    (tmp_path / "report.html").write_text("a secret")
    client = TestClient(Starlette(routes=[routes(Home(tmp_path))]))
    found = client.get(f"/hopbench/nights/{NIGHT}/report.html")
    assert (found.status_code, found.text) == (200, "<p>the report</p>")
    for other in (f"{NIGHT}/nightly.json", f"{NIGHT}/night.parquet", "%2e%2e/report.html", "gone/report.html"):
        assert client.get(f"/hopbench/nights/{other}").status_code == 404
    assert "the night is not kept" in client.get("/hopbench/nights/gone/report.html").text


def test_reports_of_runs_and_sweeps_in_the_home_are_served_and_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    home = Home(tmp_path)
    client = TestClient(Starlette(routes=[routes(home)]))
    for folder in (home.runs / "a run", home.sweeps / "grid-1"):
        folder.mkdir(parents=True)
        (folder / "report.html").write_text(f"<p>{folder.name}</p>")
        (folder / "results.json").write_text("{}")
    monkeypatch.setenv(PAGES_VARIABLE, "1")
    links = [link_in(home, folder / "report.html") for folder in (home.runs / "a run", home.sweeps / "grid-1")]
    assert links == [
        "[The report](/hopbench/runs/a%20run/report.html)",
        "[The report](/hopbench/sweeps/grid-1/report.html)",
    ]
    assert client.get("/hopbench/runs/a%20run/report.html").text == "<p>a run</p>"
    assert client.get("/hopbench/sweeps/grid-1/report.html").text == "<p>grid-1</p>"
    for other in ("runs/a%20run/results.json", "runs/%2e%2e/report.html", "sweeps/gone/report.html", "ledger.db"):
        assert client.get(f"/hopbench/{other}").status_code == 404
    assert link_in(home, tmp_path / "elsewhere" / "report.html").startswith("The report: `")


def test_a_report_elsewhere_is_found_while_the_night_is_kept(tmp_path: Path) -> None:
    file = kept(tmp_path / "nightly", tmp_path / "out" / "report.html")
    assert report_of(tmp_path / "nightly", NIGHT) == file
    file.unlink()
    assert report_of(tmp_path / "nightly", NIGHT) is None
    assert report_of(tmp_path / "nightly", "../out") is None


def test_only_our_own_server_has_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    assert link(f"nights/{NIGHT}", Path("/home/report.html")).startswith("The report: `/home/report.html` on ")
    monkeypatch.setenv(PAGES_VARIABLE, "1")
    assert link(f"nights/{NIGHT}", Path("/home/report.html")) == f"[The report](/hopbench/nights/{NIGHT}/report.html)"


def test_the_pages_ask_the_address_that_the_browser_has(tmp_path: Path) -> None:
    told = settings_of_pages(Home(tmp_path))
    assert told["PREFECT_UI_API_URL"] == "/api"  # left out, they ask 127.0.0.1:4200 whatever the port
    assert told["PREFECT_UI_STATIC_DIRECTORY"].startswith(str(tmp_path))


def test_the_pages_may_ask_no_other_server() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": b""})

    async def collect(message: Any) -> None:
        sent.append(message)

    asyncio.run(without_third_parties(app)({"type": "http"}, None, collect))  # type: ignore[arg-type]
    assert sent[0]["headers"] == [(b"x", b"y"), (b"content-security-policy", b"connect-src 'self'")]
    assert sent[1] == {"type": "http.response.body", "body": b""}


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ({}, 0, "exit 0, good: no regression, 1 of 2 labels compared"),
        (
            {"missing": ["c"]},
            4,
            "exit 4, incomplete, the same command goes on: no regression, 1 of 2 labels compared, missing: c",
        ),
        (
            {"outcome": "regression", "regressions": ["a", "b"], "slower": [{"label": "b"}]},
            3,
            "exit 3, a regression was found: a, b (slower)",
        ),
        ({}, 3, "exit 3, a target was missed: no regression, 1 of 2 labels compared"),
        ({"outcome": "baseline"}, 3, "exit 3, a target was missed: recorded as the baseline"),
        ({"outcome": "baseline"}, 0, "exit 0, good: recorded as the baseline"),
    ],
)
def test_a_line_tells_how_a_night_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, Any], code: int, said: str
) -> None:
    monkeypatch.setenv("HOPBENCH_HOME", str(tmp_path))
    file = kept(tmp_path / "nightly", **content)
    begun = datetime(2026, 1, 2, 1, 59, 58, tzinfo=UTC)
    line, page = ending(begun, code, "why\nand more")
    assert line == f"2026-01-02 01:59:58 UTC  {NIGHT}  {said}  {file}"
    assert page.startswith(f"# {NIGHT}\n\n{said}\n\n")
    assert "    why\n    and more" in page
    later, _ = ending(datetime(2026, 1, 3, tzinfo=UTC), 2, "--dataset nope: no such\nfile")
    assert (
        later
        == "2026-01-03 00:00:00 UTC  no verdict  exit 2, bad input or usage, nothing was run: --dataset nope: no such"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RegressionError("x"), 3),
        (IncompleteError("x"), 4),
        (InputError("x"), 2),
        (click.UsageError("x"), 2),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), 1),
        (SystemExit(4), 4),
    ],
)
def test_errors_end_a_scheduled_night_with_the_commands_exit_code(error: BaseException, code: int) -> None:
    assert exit_code_of(error) == code
