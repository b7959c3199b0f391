"""Serves reports next to Prefect's pages: browsers refuse to open files from a page loaded over HTTP.

Each night's report is `/hopbench/nights/NIGHT/report.html` on the port of Prefect's pages, beside them; a link without
host and port, so it works through a tunnel and after a restart on another port.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.settings.home import NIGHT_RECORD

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Mount

ROOT = "/hopbench/nights"
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
    if os.environ.get(OURS):
        return f"[The report]({link_to(night)})"
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


def routes(nights: Path) -> Mount:
    """The reports of the nights in this folder; no other file of theirs is served."""
    from starlette.requests import Request
    from starlette.responses import FileResponse, PlainTextResponse
    from starlette.routing import Mount, Route

    def report(request: Request) -> Response:
        night = request.path_params["night"]
        file = report_of(nights, night)
        if file is None:
            return PlainTextResponse(f"There is no report of {night}: the night is not kept (--keep), or failed.", 404)
        return FileResponse(file, media_type="text/html", headers={"X-Content-Type-Options": "nosniff"})

    return Mount(ROOT, routes=[Route(f"/{{night}}/{REPORT}", report)])
