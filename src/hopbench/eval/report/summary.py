"""The results in plain language."""

from __future__ import annotations

from hopbench.eval.metrics import sign_of
from hopbench.eval.report.data import ReportData, shown_interval
from hopbench.eval.runs.files import ComparisonEntry
from hopbench.retrieval.strategies.label import Label
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
    excluded = ""
    if data.in_sample:
        sets = sorted({name for sample in data.in_sample.values() for name in sample["sets"]})
        were, their = ("was", "its") if len(data.in_sample) == 1 else ("were", "their")
        excluded = (
            f" {listed(list(data.in_sample))} {were} tuned or learned on questions of this benchmark "
            f"({', '.join(sets)}): {their} scores here say nothing of other questions, and take no part in this."
        )
    if not data.contenders:
        return f"No label here may be called the best.{excluded}"
    best, baseline = data.contenders[0], data.baseline
    scored = f"{best} {meaning(data.primary, data.strategies[best]['metrics'].get(data.primary) or 0.0)}"
    pair = data.compared.get(best)
    if not data.comparisons:
        state = "; nothing was compared."
    elif best == baseline:
        others = "label that was not tuned or learned on these questions" if data.in_sample else "other strategy here"
        state = f", and no {others} is ahead of this baseline.{_nearest(data)}"
    elif pair is None:
        state = f"; it was not compared with the baseline {baseline}."
    else:
        kind = "the best hop-free baseline" if Label.of_any(baseline).is_hop_free else "the baseline"
        if pair["verdict"] in ("better", "worse"):
            state = f", {pair['verdict']} than {kind} {baseline} by {_difference(pair)}."
        else:
            difference = f"{_difference(pair)}.{_detectable(pair)}"
            state = f", but that is not distinguishable from {kind} {baseline}: {difference}"
    return f"{scored}{state}{excluded}"


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def in_sample_words(sample: InSample, kind: str) -> str:
    """The remark beside a label that is scored on questions it was tuned or learned on: "tuned on musique-train100"."""
    verb = {"learned": "learned from", "tuned": "tuned on"}.get(kind, "tuned or learned on")
    return f"{verb} {', '.join(sample['sets'])}"


def _difference(pair: ComparisonEntry) -> str:
    if pair["effect"] is None or pair["ci_low"] is None:
        return f"{pair['n']} shared questions are too few for an interval"
    interval = shown_interval(pair)
    bounds = f" [{points_limit(interval[0])}, {points_limit(interval[1])}]" if interval else ""
    return f"{points(pair['effect'])} points{bounds}"


def _detectable(pair: ComparisonEntry) -> str:
    if (detectable := pair.get("mde")) is None:
        return ""
    return (
        f" With {pair['n']} questions, this comparison would reliably show a difference of "
        f"{100 * detectable:.1f} points or more."
    )


def _nearest(data: ReportData) -> str:
    others = [data.compared[name] for name in data.contenders if name != data.baseline and name in data.compared]
    if not others:
        return ""
    sign = sign_of(data.primary)
    nearest = max(others, key=lambda c: (sign * (c["effect"] or 0.0), c["label"]))
    return f" The nearest, {nearest['label']}, is {nearest['verdict']}: {_difference(nearest)}.{_detectable(nearest)}"
