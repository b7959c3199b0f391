"""Publish a verdict: as lines for terminal and report, to Prefect as artifact and events, and how the night ended."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.statistics import limit
from hopbench.flows.nights.environment import lines as latency_lines
from hopbench.flows.nights.history import NightlyRecord, nights
from hopbench.flows.nights.verdict import Verdict, as_dict, describe
from hopbench.flows.orchestration.pages import NIGHTLY, REPORT, artifact_key, changed_champion, emit, link, url_of
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


def exit_code_of(error: BaseException) -> int:
    """The exit code that the command would have returned."""
    if isinstance(error, HopBenchError):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return 130
    return 2 if any(one.__name__ == USAGE for one in type(error).__mro__) else 1


def ending(begun: datetime, code: int, reason: str) -> tuple[str, str]:
    """Describe how the nightly run started at `begun` ended, in a line and as Markdown; without a verdict, by `reason`.

    `2026-11-22 02:00:07 UTC  hopworld-…  exit 3, a regression was found: pagerank  …/report.html`
    """
    night = _since(begun)
    missed = night is not None and code == TargetError.exit_code and not night.content["regressions"]
    meaning = f"exit {code}, {'a target was missed' if missed else MEANING.get(code, 'unexpected')}"
    name, what, where, page = "no verdict", reason.partition("\n")[0], "", ""
    if night is not None:
        report = Path(str(night.content.get("report") or night.folder / REPORT))
        name, what, where = night.name, _what(night), f"  {report}"
        page = "\n\n" + link(f"nights/{night.name}", report)
    sentence = f"{meaning}: {what}" if what else meaning
    quoted = "\n".join(f"    {line}" for line in reason.splitlines())
    markdown = f"# {name}\n\n{sentence}{page}\n\n{quoted}".rstrip() + "\n"
    return f"{begun:%Y-%m-%d %H:%M:%S} UTC  {name}  {sentence}{where}", markdown


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
    if content["regressions"]:
        return ", ".join(f"{label} (slower)" if label in slower else str(label) for label in content["regressions"])
    if content["outcome"] == "baseline":
        return "recorded as the baseline"
    missing = ", ".join(content.get("missing", ()))
    gone = f", missing: {missing}" if missing else ""
    failed = f", failed too often: {', '.join(content['incomplete'])}" if content["incomplete"] else ""
    compared = len(content.get("compared", ()))
    return f"no regression, {compared} of {len(content['labels'])} labels compared{gone}{failed}"


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
    if verdict.champion is not None and verdict.champion.verdict == "worse":
        kind = "though its spec is the same" if verdict.same_spec else "with another spec"
        text_lines.append(f"behind the champion, {kind}: {describe(verdict.champion, verdict.metric)}")
    if verdict.outcome == "baseline" and verdict.previous:
        text_lines.append("accepted as the new baseline")
    if verdict.incomplete:
        text_lines.append(f"incomplete, over 5% of the questions failed: {', '.join(verdict.incomplete)}")
    ragas = [
        f"RAGAS, {pair.verdict}: {describe(pair, comparison.metric, replaced)}"
        for comparison in verdict.ragas
        for pair in comparison.pairs
        if pair.verdict in ("worse", "better")
    ]
    if verdict.ragas and not ragas:
        names = ", ".join(comparison.metric for comparison in verdict.ragas)
        ragas = [f"RAGAS: no label worse or better on {names}"]
    text_lines += ragas
    text_lines += _uncompared(verdict)
    if verdict.changed:
        text_lines.append(f"changed since then: {'; '.join(verdict.changed)}")
    elif verdict.regressions:
        text_lines.append("nothing that was recorded has changed since then")
    return text_lines + latency_lines(verdict.latency)


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
        had = f"missing tonight, though {verdict.found.measure.name} had them"
        labels = ", ".join(verdict.found.missing)
        text_lines.append(
            f"{had} with the same selection: {labels}. Install again what offered them (a plug-in, another version), "
            "or take tonight without them as the new baseline with --accept"
            if verdict.found.vanished
            else f"{had}: {labels}"
        )
    if verdict.left_out:
        text_lines.append(f"not compared with the champion: tonight has no label of its strategy, {verdict.left_out}")
    return text_lines


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
    page = markdown(benchmark.name, night, verdict, link(f"nights/{night}", report))
    concerned = [*verdict.regressions, *verdict.incomplete]
    if verdict.found.vanished:
        concerned += verdict.found.missing
    try:
        create_markdown_artifact(page, artifact_key("nightly", benchmark.name), lines(verdict)[0])
        content = event_payload(evaluation, night, verdict, report)
        emit(f"{NIGHTLY}{verdict.outcome}", benchmark.name, benchmark.digest, content, concerned)
        if crowned is not None:
            facts = {name: content[name] for name in ("night", "metric", "report", "report_url")}
            facts["value"] = content["labels"][crowned]
            changed_champion(benchmark.name, benchmark.digest, crowned, before, facts)
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
