"""What Prefect's pages show of a flow run: artifacts, events, and links to reports.

Reports are served next to the pages: browsers refuse to open files from a page loaded over HTTP.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hopbench.flows.settings.home import NIGHT_RECORD, Home

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Mount

_log = logging.getLogger(__name__)


def artifact_key(*parts: str) -> str:
    """A key as Prefect takes it: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(["hopbench", *parts]).lower()).strip("-")


def leave(markdown: str, key: str, description: str) -> None:
    """Leave a page of Markdown with the flow run under way; without one, do nothing.

    The run's own files are complete by then, so a server that refuses or is gone costs only the artifact.
    """
    from prefect.context import FlowRunContext

    if FlowRunContext.get() is None:
        return
    from prefect.artifacts import create_markdown_artifact

    try:
        create_markdown_artifact(markdown, key, description)
    except Exception as error:
        _log.warning("no artifact %s: %s: %s", key, type(error).__name__, error)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same columns as a table of Markdown; numbers with three digits."""
    heads = list(rows[0]) if rows else []
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(_cell(row[head]) for head in heads) + " |" for row in rows)])


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value).replace("|", "\\|")


CHAMPION_CHANGED = "hopbench.champion.changed"
NIGHTLY = "hopbench.nightly."
"""And the outcome: baseline, good, regression or incomplete."""


def resource_name(text: str) -> str:
    """`text` as a part of a resource's id or of an artifact's key: lower case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def emit(event: str, benchmark: str, digest: str, payload: Mapping[str, Any], labels: Sequence[str] = ()) -> None:
    """Queue an event about a benchmark for Prefect's API; returns at once. `labels` are those that it is about."""
    from prefect.events import emit_event

    emit_event(
        event,
        resource={
            "prefect.resource.id": f"hopbench.benchmark.{resource_name(benchmark)}",
            "prefect.resource.name": benchmark,
            "hopbench.benchmark.digest": digest,
        },
        related=[
            {
                "prefect.resource.id": f"hopbench.label.{resource_name(label)}",
                "prefect.resource.role": "label",
                "prefect.resource.name": label,
            }
            for label in dict.fromkeys(labels)
        ],
        payload={"benchmark": benchmark, **payload},
    )


def changed_champion(benchmark: str, digest: str, label: str, before: str | None, facts: Mapping[str, Any]) -> None:
    """Emit that `label` takes the place of the champion `before` of a benchmark; `facts` say where it was measured."""
    emit(CHAMPION_CHANGED, benchmark, digest, {"label": label, "before": before, **facts}, [label])


MOUNT = "/hopbench"
ROOT = f"{MOUNT}/nights"
REPORT = "report.html"
PAGES_VARIABLE = "HOPBENCH_PAGES"
"""Set where Prefect's API is our own server: only that one serves the reports."""


def link_to(night: str) -> str:
    """The path of a night's report on the server."""
    return f"{ROOT}/{night}/{REPORT}"


def url_of(night: str) -> str | None:
    """The address of a night's report on our own server; None where another server has no such page."""
    server = os.environ.get("PREFECT_API_URL", "").removesuffix("/api")
    return f"{server}{link_to(night)}" if os.environ.get(PAGES_VARIABLE) and server else None


def link(night: str, report: Path) -> str:
    """The night's report in Markdown: a link on our own server, else the file's path."""
    return f"[The report]({link_to(night)})" if os.environ.get(PAGES_VARIABLE) else _file(report)


def link_in(home: Home, report: Path) -> str:
    """A report in Markdown: a link where a night, run or sweep of the home has it and the server is ours."""
    place = report.absolute()
    for folder in (home.nights, home.runs, home.sweeps):
        if os.environ.get(PAGES_VARIABLE) and place.parent.parent == folder and place.name == REPORT:
            kind = "nights" if folder == home.nights else folder.name
            return f"[The report]({MOUNT}/{kind}/{quote(place.parent.name)}/{REPORT})"
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
    return Mount(MOUNT, routes=[Route(f"/{kind}/{{name}}/{REPORT}", end) for kind, end in ends.items()])
