"""The results in plain language."""

from __future__ import annotations

from hopbench.eval.metrics import sign_of
from hopbench.eval.report.data import ReportData, is_hop_free, shown_interval
from hopbench.eval.runs.files import ComparisonEntry
from hopbench.retrieval.strategies.registry import InSample

MINUS = "\N{MINUS SIGN}"


def percent(share: float) -> str:
    """A share in percent, rounded as the tables round it to three decimals: 0.9275 is 0.927 there and "92.7%" here."""
    return f"{round(share, 3):.1%}"


def points(value: float | None) -> str:
    """A difference of shares in percentage points, with its sign: 0.064 → "+6.4"; a dash where there is none."""
    if value is None:
        return "–"
    shown = percent(abs(value)).removesuffix("%")
    return shown if shown == "0.0" else f"{MINUS if value < 0 else '+'}{shown}"


def points_limit(value: float) -> str:
    """An interval's limit in points; one that rounds to 0 is shown with its side of 0: `>0.0`."""
    shown = points(value)
    return shown if shown != "0.0" or value == 0 else (">" if value > 0 else "<") + shown


def meaning(metric: str, value: float) -> str:
    """A mean in plain words: "finds all evidence in the top 10 for 84.2% of questions"."""
    name, _, k = metric.partition("@")
    if name == "all_gold":
        return f"finds all evidence in the top {k} for {percent(value)} of questions"
    if name == "recall":
        return f"finds {percent(value)} of the evidence in the top {k}"
    if name == "has_answer":
        where = f"top {k}" if k else "context it hands on"
        return f"has the answer in the {where} for {percent(value)} of questions"
    return f"scores {value:.3f} on {metric}"


def conclusion(data: ReportData) -> str:
    """The result in plain language; says so where the best label is not distinguishable from the best baseline.

    A label that was tuned or learned on these questions is left out.
    """
    if data.unfit:
        return f"No label here may be called the best: the questions measure nothing ({data.unfit})."
    if not data.primary:
        return "No label is ahead of another: this benchmark has nothing to score by."
    if not data.contenders:
        return f"No label here may be called the best.{_set_aside(data)}"
    return _headline(data, data.contenders[0]) + _set_aside(data)


def _headline(data: ReportData, best: str) -> str:
    scored = f"{best} {meaning(data.primary, data.strategies[best]['metrics'].get(data.primary) or 0.0)}"
    if not data.comparisons:
        return f"{scored}; nothing was compared."
    if best == data.baseline:
        others = (
            "no label that was not tuned or learned on these questions" if data.in_sample else "no other strategy here"
        )
        return f"{scored}, and {others} is ahead of this baseline.{_nearest(data)}"
    comparison = data.comparison(best)
    if comparison is None:
        return f"{scored}; it was not compared with the baseline {data.baseline}."
    return f"{scored}{_against(comparison, data.baseline)}"


def _set_aside(data: ReportData) -> str:
    """Which labels take no part, and why."""
    if not data.in_sample:
        return ""
    sets = sorted({name for sample in data.in_sample.values() for name in sample["sets"]})
    were, their = ("was", "its") if len(data.in_sample) == 1 else ("were", "their")
    return (
        f" {listed(list(data.in_sample))} {were} tuned or learned on questions of this benchmark ({', '.join(sets)}): "
        f"{their} scores here say nothing of other questions, and take no part in this."
    )


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def in_sample_words(sample: InSample, kind: str) -> str:
    """The remark beside a label that is scored on questions it was tuned or learned on: "tuned on musique-train100"."""
    verb = {"learned": "learned from", "tuned": "tuned on"}.get(kind, "tuned or learned on")
    return f"{verb} {', '.join(sample['sets'])}"


def _against(comparison: ComparisonEntry, baseline: str) -> str:
    effect = _difference(comparison)
    kind = "the best hop-free baseline" if is_hop_free(baseline) else "the baseline"
    if comparison["verdict"] in ("better", "worse"):
        return f", {comparison['verdict']} than {kind} {baseline} by {effect}."
    return f", but that is not distinguishable from {kind} {baseline}: {effect}.{_detectable(comparison)}"


def _difference(comparison: ComparisonEntry) -> str:
    if comparison["effect"] is None or comparison["ci_low"] is None:
        return f"{comparison['n']} shared questions are too few for an interval"
    beside = shown_interval(comparison)
    return f"{points(comparison['effect'])} points" + (
        f" [{points_limit(beside[0])}, {points_limit(beside[1])}]" if beside else ""
    )


def _detectable(comparison: ComparisonEntry) -> str:
    if (detectable := comparison.get("mde")) is None:
        return ""
    return (
        f" With {comparison['n']} questions, this comparison would reliably show a difference of "
        f"{100 * detectable:.1f} points or more."
    )


def _nearest(data: ReportData) -> str:
    others = [c for c in (data.comparison(name) for name in data.contenders if name != data.baseline) if c]
    if not others:
        return ""
    sign = sign_of(data.primary)
    nearest = max(others, key=lambda c: (sign * (c["effect"] or 0.0), c["label"]))
    return f" The nearest, {nearest['label']}, is {nearest['verdict']}: {_difference(nearest)}.{_detectable(nearest)}"
