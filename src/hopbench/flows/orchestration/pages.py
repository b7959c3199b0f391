"""What Prefect's pages show of a flow run: artifacts, events, and links to reports."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
from collections.abc import Mapping, Sequence
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
    return resource_name("-".join(["hopbench", *parts]))


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

    def cell(value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "–"
        return f"{value:.3f}" if isinstance(value, float) else str(value).replace("|", "\\|")

    heads = list(rows[0]) if rows else []
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(cell(row[head]) for head in heads) + " |" for row in rows)])


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
REPORT = "report.html"
PAGES_VARIABLE = "HOPBENCH_PAGES"
"""Set where Prefect's API is our own server: only that one serves the reports."""


def url_of(night: str) -> str | None:
    """The address of a night's report on our own server; None where another server has no such page."""
    server = os.environ.get("PREFECT_API_URL", "").removesuffix("/api")
    return f"{server}{MOUNT}/nights/{night}/{REPORT}" if os.environ.get(PAGES_VARIABLE) and server else None


def link(name: str | None, report: Path) -> str:
    """A report in Markdown: a link to `name` (nights/NIGHT, runs/RUN or sweeps/SWEEP) on our own server, else the file.

    Without a name the server does not have it.
    """
    if name is not None and os.environ.get(PAGES_VARIABLE):
        return f"[The report]({MOUNT}/{quote(name)}/{REPORT})"
    return (
        f"The report: `{report}` on {socket.gethostname()} (a browser opens no files from this page; the pages of "
        "`hopbench serve` have a link)"
    )


def link_in(home: Home, report: Path) -> str:
    """A report in Markdown: a link where a night, run or sweep of the home has it and the server is ours."""
    place = report.absolute()
    kinds = {home.nights: "nights", home.runs: "runs", home.sweeps: "sweeps"}
    kind = kinds.get(place.parent.parent) if place.name == REPORT else None
    return link(None if kind is None else f"{kind}/{place.parent.name}", report)


def report_of(folder: Path, name: str, recorded: bool = True) -> Path | None:
    """The report of that name in a folder of nights (`recorded`), runs or sweeps; None without one.

    A night's is in its folder, or in the `--out` folder that it recorded.
    """
    if name.startswith(".") or (folder / name).parent != folder:
        return None
    files = [folder / name / REPORT]
    if recorded:
        try:
            content = json.loads((folder / name / NIGHT_RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        files.append(Path(str(content.get("report") or files[0])))
    return next((file for file in files if file.name == REPORT and file.is_file()), None)


def routes(home: Home) -> Mount:
    """The reports of the home's nights, runs and sweeps; none of their other files is served."""
    from starlette.requests import Request
    from starlette.responses import FileResponse, PlainTextResponse
    from starlette.routing import Mount, Route

    def report(request: Request) -> Response:
        kind, name = request.path_params["kind"], request.path_params["name"]
        folder = {"nights": home.nights, "runs": home.runs, "sweeps": home.sweeps}.get(kind)
        file = None if folder is None else report_of(folder, name, kind == "nights")
        if file is None:
            why = "the night is not kept (--keep), or failed" if kind == "nights" else "it failed, or was removed"
            return PlainTextResponse(f"There is no report of {name}: {why}.", 404)
        return FileResponse(file, media_type="text/html", headers={"X-Content-Type-Options": "nosniff"})

    return Mount(MOUNT, routes=[Route(f"/{{kind}}/{{name}}/{REPORT}", report)])
