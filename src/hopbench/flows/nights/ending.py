"""How a scheduled night ended, in one line for a console and in Markdown for Prefect's pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hopbench.flows.nights.history import NightlyRecord, nights
from hopbench.flows.orchestration.pages import REPORT, link
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, RegressionError, TargetError

MEANING = {
    0: "good",
    1: "unexpected: a defect of the program",
    InputError.exit_code: "bad input or usage, nothing was run",
    RegressionError.exit_code: "a regression was found",
    IncompleteError.exit_code: "incomplete, the same command goes on",
    130: "interrupted, the same command goes on",
}
USAGE = "UsageError"


@dataclass(frozen=True)
class Ending:
    """`2026-11-22 02:00:07 UTC  hopworld-…  exit 3, a regression was found: pagerank  …/report.html`."""

    line: str
    markdown: str


def exit_code_of(error: BaseException) -> int:
    """The exit code that the command would have returned."""
    if isinstance(error, HopBenchError):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return 130
    return 2 if any(one.__name__ == USAGE for one in type(error).__mro__) else 1


def ending(begun: datetime, code: int, reason: str) -> Ending:
    """Describe how the nightly run started at `begun` ended; without a verdict, by `reason` alone."""
    night = _since(begun)
    missed = night is not None and code == TargetError.exit_code and not night.content["regressions"]
    meaning = f"exit {code}, {'a target was missed' if missed else MEANING.get(code, 'unexpected')}"
    what = _what(night) if night is not None else reason.splitlines()[0] if reason else ""
    name = night.name if night is not None else "no verdict"
    report = None if night is None else Path(str(night.content.get("report") or night.folder / REPORT))
    sentence = f"{meaning}: {what}" if what else meaning
    line = f"{begun:%Y-%m-%d %H:%M:%S} UTC  {name}  {sentence}" + (f"  {report}" if report is not None else "")
    pointed = "" if night is None or report is None else f"\n\n{link(night.name, report)}"
    quoted = "\n".join(f"    {line}" for line in reason.splitlines())
    return Ending(line, f"# {name}\n\n{sentence}{pointed}\n\n{quoted}".rstrip() + "\n")


def _since(begun: datetime) -> NightlyRecord | None:
    """The nightly run that reached its verdict since `begun`, if there is one."""
    try:
        found = nights(Home.resolve().nights)
    except HopBenchError:  # an older night is damaged: the nightly run has reported it
        return None
    since = begun.replace(microsecond=0)
    return found[0] if found and datetime.fromisoformat(str(found[0].content["started"])) >= since else None


def _what(night: NightlyRecord) -> str:
    """Regressions by name, otherwise how many labels were compared."""
    content = night.content
    slower = {str(one["label"]) for one in content.get("slower", ())}
    named = [f"{label} (slower)" if label in slower else str(label) for label in content["regressions"]]
    if named:
        return ", ".join(named)
    if content["outcome"] == "baseline":
        return "recorded as the baseline"
    missing = list(content.get("missing", ()))
    gone = f", missing: {', '.join(missing)}" if missing else ""
    failed = f", failed too often: {', '.join(content['incomplete'])}" if content["incomplete"] else ""
    return (
        f"no regression, {len(content.get('compared', ()))} of {len(content['labels'])} labels compared{gone}{failed}"
    )
