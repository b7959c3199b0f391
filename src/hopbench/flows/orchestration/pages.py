"""Serves reports next to Prefect's pages: browsers refuse to open files from a page loaded over HTTP.

Each night's report is `/hopbench/nights/NIGHT/report.html` on the port of Prefect's pages, beside them, and those of
runs and sweeps that the home holds are `/hopbench/runs/RUN/report.html` and `/hopbench/sweeps/SWEEP/report.html`: links
without host and port, so they work through a tunnel and after a restart on another port.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from hopbench.flows.settings.home import NIGHT_RECORD, Home

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Mount

BESIDE = "/hopbench"
ROOT = f"{BESIDE}/nights"
REPORT = "report.html"
OURS = "HOPBENCH_PAGES"
"""Set where Prefect's API is our own server: only that one serves the reports."""


def link_to(night: str) -> str:
    """The path of a night's report on the server."""
    return f"{ROOT}/{night}/{REPORT}"


def url_of(night: str) -> str | None:
    """The address of a night's report on our own server; None where another server has no such page."""
    server = os.environ.get("PREFECT_API_URL", "").removesuffix("/api")
    return f"{server}{link_to(night)}" if os.environ.get(OURS) and server else None


def link(night: str, report: Path) -> str:
    """The night's report in Markdown: a link on our own server, else the file's path."""
    return f"[The report]({link_to(night)})" if os.environ.get(OURS) else _file(report)


def link_in(home: Home, report: Path) -> str:
    """A report in Markdown: a link where a night, run or sweep of the home has it and the server is ours."""
    place = report.absolute()
    for folder in (home.nights, home.runs, home.sweeps):
        if os.environ.get(OURS) and place.parent.parent == folder and place.name == REPORT:
            kind = "nights" if folder == home.nights else folder.name
            return f"[The report]({BESIDE}/{kind}/{quote(place.parent.name)}/{REPORT})"
    return _file(report)


def _file(report: Path) -> str:
    return (
        f"The report: `{report}` on {socket.gethostname()} (a browser opens no files from this page; the pages of "
        "`hopbench serve` have a link)"
    )


def report_of(nights: Path, night: str) -> Path | None:
    """The report of a recorded night: in its folder, or in the `--out` folder that it recorded; None without one."""
    folder = nights / night
    if night.startswith(".") or folder.parent != nights:
        return None
    try:
        content = json.loads((folder / NIGHT_RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    for file in (folder / REPORT, Path(str(content.get("report") or folder / REPORT))):
        if file.name == REPORT and file.is_file():
            return file
    return None


def report_in(folder: Path, name: str) -> Path | None:
    """The report of the run or sweep of that name in a folder of them; None without one."""
    file = folder / name / REPORT
    return file if not name.startswith(".") and file.parent.parent == folder and file.is_file() else None


def routes(home: Home) -> Mount:
    """The reports of the home's nights, runs and sweeps; none of their other files is served."""
    from starlette.requests import Request
    from starlette.responses import FileResponse, PlainTextResponse
    from starlette.routing import Mount, Route

    def answer(file: Path | None, missing: str) -> Response:
        if file is None:
            return PlainTextResponse(missing, 404)
        return FileResponse(file, media_type="text/html", headers={"X-Content-Type-Options": "nosniff"})

    def night(request: Request) -> Response:
        name = request.path_params["name"]
        gone = f"There is no report of {name}: the night is not kept (--keep), or failed."
        return answer(report_of(home.nights, name), gone)

    def reports_of(folder: Path) -> Callable[[Request], Response]:
        def report(request: Request) -> Response:
            name = request.path_params["name"]
            return answer(report_in(folder, name), f"There is no report of {name}: it failed, or was removed.")

        return report

    ends = {"nights": night, "runs": reports_of(home.runs), "sweeps": reports_of(home.sweeps)}
    return Mount(BESIDE, routes=[Route(f"/{kind}/{{name}}/{REPORT}", end) for kind, end in ends.items()])
