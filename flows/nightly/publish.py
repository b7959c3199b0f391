"""How a verdict is told: in lines for terminal and report, and to Prefect as an artifact and an event."""

from __future__ import annotations

import re

from eval.compare import limit
from flows.nightly.verdict import Verdict, as_dict, describe


def lines(verdict: Verdict) -> list[str]:
    """The verdict in plain words, the most important first."""
    found = [_headline(verdict)]
    found += [describe(pair, verdict.metric) for pair in verdict.worse]
    found += [
        f"{slow.label}: p50 latency {slow.then:g} ms then, {slow.now:g} ms now, on a second measuring too"
        for slow in verdict.slower
    ]
    if verdict.drift is not None and verdict.drift.pair.verdict == "worse":
        kind = "though its spec is the same" if verdict.drift.same_spec else "with another spec"
        found.append(f"behind the champion, {kind}: {describe(verdict.drift.pair, verdict.metric)}")
    if verdict.outcome == "baseline" and verdict.previous:
        found.append("accepted as the new baseline")
    if verdict.incomplete:
        found.append(f"incomplete, over 5% of the questions failed: {', '.join(verdict.incomplete)}")
    if verdict.changed:
        found.append(f"changed since then: {'; '.join(verdict.changed)}")
    elif verdict.regressions:
        found.append("nothing that was recorded has changed since then")
    return found


def _headline(verdict: Verdict) -> str:
    if not verdict.previous:
        return {
            "baseline": "first good night: recorded as the baseline",
            "incomplete": "the first night, incomplete: no baseline yet",
        }.get(verdict.outcome, f"{verdict.outcome}: {', '.join(verdict.regressions)}")
    newest = max(verdict.previous.values())
    then = f"compared with {newest}"
    others = sorted(label for label, name in verdict.previous.items() if name != newest)
    if others:
        then += f" ({', '.join(f'{label} with {verdict.previous[label]}' for label in others)})"
    if verdict.regressions:
        return f"{then}: regression of {', '.join(verdict.regressions)}"
    return f"{then}: no regression"


def markdown(benchmark: str, night: str, verdict: Verdict) -> str:
    """The verdict as Prefect's artifact shows it."""
    pairs = [] if verdict.comparison is None else verdict.comparison.pairs
    rows = [f"| label | {verdict.metric} | 95% interval, all together | p (Holm) | verdict |", "|---|---|---|---|---|"]
    for pair in pairs:
        effect = "–" if pair.difference is None else f"{pair.difference:+.3f}"
        interval = f"{limit(pair.ci_family.low)} … {limit(pair.ci_family.high)}" if pair.ci_family else "–"
        rows.append(f"| {pair.label} | {effect} | {interval} | {pair.p_holm:.4f} | {pair.verdict} |")
    told = "\n".join(f"- {line}" for line in lines(verdict))
    return f"# {benchmark}: {verdict.outcome}\n\n{night}\n\n{told}\n\n" + ("\n".join(rows) if pairs else "")


def to_prefect(benchmark: str, night: str, verdict: Verdict) -> None:
    """Leave an artifact, and an event that automations can react to; only inside a flow."""
    from prefect.artifacts import create_markdown_artifact
    from prefect.events import emit_event

    name = re.sub(r"[^a-z0-9]+", "-", benchmark.lower()).strip("-")
    create_markdown_artifact(markdown(benchmark, night, verdict), f"hopbench-nightly-{name}", lines(verdict)[0])
    told = {key: value for key, value in as_dict(verdict).items() if key in ("outcome", "regressions", "changed")}
    emit_event(
        f"hopbench.nightly.{verdict.outcome}",
        {"prefect.resource.id": f"hopbench.benchmark.{name}", "prefect.resource.name": benchmark},
        payload={"night": night, **told},
    )
