"""Publish a verdict: as lines for terminal and report, to Prefect as artifact and events, and how the night ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.statistics import limit
from hopbench.flows.nights.environment import lines as latency_lines
from hopbench.flows.nights.history import NightlyRecord, nights
from hopbench.flows.nights.verdict import Verdict, as_dict, describe
from hopbench.flows.orchestration.pages import NIGHTLY, REPORT, changed_champion, emit, link, resource_name, url_of
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, InputError, RegressionError, TargetError

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation

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


def lines(verdict: Verdict) -> list[str]:
    """The verdict in plain words, the most important first."""
    replaced = verdict.found.replaced
    text_lines = [_headline(verdict)]
    text_lines += [describe(pair, verdict.metric, replaced) for pair in verdict.worse]
    text_lines += [
        f"{slow.label}: {slow.growth:g} times as slow beside the yardstick, on a second measuring too (p50 latency "
        f"{slow.then:g} ms then, {slow.now:g} ms now)"
        for slow in verdict.latency.slower
    ]
    if verdict.champion_change is not None and verdict.champion_change.pair.verdict == "worse":
        kind = "though its spec is the same" if verdict.champion_change.same_spec else "with another spec"
        text_lines.append(f"behind the champion, {kind}: {describe(verdict.champion_change.pair, verdict.metric)}")
    if verdict.outcome == "baseline" and verdict.previous:
        text_lines.append("accepted as the new baseline")
    if verdict.incomplete:
        text_lines.append(f"incomplete, over 5% of the questions failed: {', '.join(verdict.incomplete)}")
    text_lines += _ragas(verdict)
    text_lines += _uncompared(verdict)
    if verdict.changed:
        text_lines.append(f"changed since then: {'; '.join(verdict.changed)}")
    elif verdict.regressions:
        text_lines.append("nothing that was recorded has changed since then")
    return text_lines + latency_lines(verdict.latency)


def _ragas(verdict: Verdict) -> list[str]:
    """Lines about RAGAS's metrics: each label that is worse or better, or one line if none is."""
    if not verdict.ragas:
        return []
    messages = [
        f"RAGAS, {pair.verdict}: {describe(pair, comparison.metric, verdict.found.replaced)}"
        for comparison in verdict.ragas
        for pair in comparison.pairs
        if pair.verdict in ("worse", "better")
    ]
    names = ", ".join(comparison.metric for comparison in verdict.ragas)
    return messages or [f"RAGAS: no label worse or better on {names}"]


def _headline(verdict: Verdict) -> str:
    count, total = len(verdict.compared), len(verdict.labels)
    if not verdict.previous and verdict.found.measure is None:
        return {
            "baseline": "first good night: recorded as the baseline",
            "incomplete": "the first night, incomplete: no baseline yet",
        }.get(verdict.outcome, f"{verdict.outcome}: {', '.join(verdict.regressions)}")
    if not verdict.previous:
        return f"none of the {total} labels was measured on an earlier night: nothing is compared"
    newest = max(verdict.previous.values())
    then = f"compared with {newest}"
    others = sorted(label for label, name in verdict.previous.items() if name != newest)
    if others:
        then += f" ({', '.join(f'{label} with {verdict.previous[label]}' for label in others)})"
    outcome = f"regression of {', '.join(verdict.regressions)}" if verdict.regressions else "no regression"
    return f"{then}: {outcome}, {count} of {total} labels compared"


def _uncompared(verdict: Verdict) -> list[str]:
    """Labels that were not compared, and labels compared under another name."""
    text_lines = []
    worse = {pair.label for pair in verdict.worse}
    messages = [f"{label} in place of {old}" for label, old in verdict.found.replaced.items() if label not in worse]
    if messages:
        text_lines.append(f"compared by strategy: {', '.join(messages)}")
    if verdict.found.measure is not None and verdict.found.new:
        text_lines.append(f"not compared, new tonight: {', '.join(verdict.found.new)}")
    unscored = [label for label in verdict.previous if label not in verdict.compared]
    if unscored:
        text_lines.append(f"not compared, without {verdict.metric} on both nights: {', '.join(unscored)}")
    if verdict.found.measure is not None and verdict.found.missing:
        text_lines.append(_missing(verdict, verdict.found.measure.name))
    if verdict.left_out:
        text_lines.append(f"not compared with the champion: tonight has no label of its strategy, {verdict.left_out}")
    return text_lines


def _missing(verdict: Verdict, measure: str) -> str:
    labels = ", ".join(verdict.found.missing)
    if not verdict.found.vanished:
        return f"missing tonight, though {measure} had them: {labels}"
    return (
        f"missing tonight, though {measure} had them with the same selection: {labels}. Install again what offered "
        "them (a plug-in, another version), or take tonight without them as the new baseline with --accept"
    )


def markdown(benchmark: str, night: str, verdict: Verdict, report: str) -> str:
    """The verdict as Prefect's artifact shows it; `report` is the report's location."""
    pairs = [] if verdict.comparison is None else verdict.comparison.pairs
    rows = [f"| label | {verdict.metric} | 95% interval, all together | p (Holm) | verdict |", "|---|---|---|---|---|"]
    for pair in pairs:
        effect = "–" if pair.difference is None else f"{pair.difference:+.3f}"
        interval = f"{limit(pair.ci_family.low)} … {limit(pair.ci_family.high)}" if pair.ci_family else "–"
        rows.append(f"| {pair.label} | {effect} | {interval} | {pair.p_holm:.4f} | {pair.verdict} |")
    bullets = "\n".join(f"- {line}" for line in lines(verdict))
    return f"# {benchmark}: {verdict.outcome}\n\n{night}\n\n{report}\n\n{bullets}\n\n" + (
        "\n".join(rows) if pairs else ""
    )


def to_prefect(
    evaluation: Evaluation, night: str, verdict: Verdict, report: Path, crowned: str | None, before: str | None
) -> str | None:
    """Leave an artifact, and events that automations can react to; only inside a flow.

    `crowned` is the label that takes the place of the champion `before`. The verdict does not depend on Prefect: where
    its API fails, the result is the reason, for a warning.
    """
    from prefect.artifacts import create_markdown_artifact

    benchmark = evaluation.plan.benchmark
    key = f"hopbench-nightly-{resource_name(benchmark.name)}"
    try:
        create_markdown_artifact(markdown(benchmark.name, night, verdict, link(night, report)), key, lines(verdict)[0])
        content = event_payload(evaluation, night, verdict, report)
        emit(f"{NIGHTLY}{verdict.outcome}", benchmark.name, benchmark.digest, content, _concerned(verdict))
        if crowned is not None:
            facts = {name: content[name] for name in ("night", "metric", "report", "report_url")}
            changed_champion(
                benchmark.name, benchmark.digest, crowned, before, {**facts, "value": content["labels"][crowned]}
            )
    except Exception as error:  # whatever the client raises: a server may have gone away
        return f"The verdict was not reported to Prefect's API ({type(error).__name__}): no artifact, no event"
    return None


def event_payload(evaluation: Evaluation, night: str, verdict: Verdict, report: Path) -> dict[str, Any]:
    """The event's payload: the webhook's content, with each label's mean of the primary metric and the report."""
    facts = as_dict(verdict)
    means = {label: summary["metrics"].get(verdict.metric) for label, summary in evaluation.summaries.items()}
    kept = ("outcome", "metric", "regressions", "incomplete", "missing", "changed", "comparisons")
    return {
        "night": night,
        **{name: facts[name] for name in kept},
        "labels": means,
        "report": str(report),
        "report_url": url_of(night),
        "text": "\n".join(lines(verdict)),
    }


def _concerned(verdict: Verdict) -> list[str]:
    """The labels that an alarm is about."""
    return [*verdict.regressions, *verdict.incomplete, *(verdict.found.missing if verdict.found.vanished else ())]
