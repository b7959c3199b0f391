"""Targets: limits that a run's figures must meet, such as `context_precision>=.20` or `hoprank latency_ms_p95<=500`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from hopbench.eval.metrics import ADD_ANSWERS, ADD_GOLD, all_metrics, catalogue, get_metric
from hopbench.eval.runs.files import StrategyEntry, figure
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError, UnknownNameError

COSTS = (
    *("latency_ms_p50", "latency_ms_p95", "seconds", "round_trips", "llm_calls", "tokens"),
    *("context_tokens", "coverage", "failures"),
)
"""The costs that a target may limit, in addition to the metrics, as results.json names it."""

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"^(?:(?P<label>\S.*?)\s+)?(?P<metric>[A-Za-z][\w@]*)\s*(?P<op>>=|<=|>|<)\s*(?P<limit>\S+)$")


@dataclass(frozen=True, slots=True)
class Target:
    """A limit on a metric or cost, for one label or (label "") for every label."""

    metric: str
    op: str
    limit: float
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> Target:
        """`[LABEL ]METRIC>=NUMBER`, with >=, <=, > or <. Raises InputError."""
        form = _FORM.match(text.strip())
        if form is None:
            raise InputError(
                f"--target {text!r} is no target: write METRIC>=NUMBER or 'LABEL METRIC<=NUMBER' (>=, <=, > or <), "
                "such as 'context_precision>=.20' or 'hoprank latency_ms_p95<=500'"
            )
        metric = form["metric"]
        if metric not in COSTS and catalogue().find(metric) is None:
            raise UnknownNameError("metric of a target", metric, [*all_metrics(), *COSTS])
        try:
            limit = float(form["limit"])
        except ValueError:
            raise InputError(f"--target {text!r}: {form['limit']!r} is no number") from None
        if not isfinite(limit):
            raise InputError(f"--target {text!r}: {form['limit']!r} is no limit; write a finite number")
        return cls(metric, form["op"], limit, form["label"] or "")

    def __str__(self) -> str:
        return f"{self.label} {self.condition}" if self.label else self.condition

    @property
    def condition(self) -> str:
        """`METRIC>=LIMIT` without the label."""
        return f"{self.metric}{self.op}{self.limit:g}"


@dataclass(frozen=True, slots=True)
class TargetResult:
    """A label's value for a target; None where it was not measured, which meets no target."""

    target: Target
    label: str
    value: float | None

    @property
    def passed(self) -> bool:
        """Whether the label was measured and meets the limit."""
        return self.value is not None and _COMPARED[self.target.op](self.value, self.target.limit)

    @property
    def words(self) -> str:
        """`hoprank: latency_ms_p95<=500 failed with 612.3`."""
        if self.value is None:
            return f"{self.label}: {self.target.condition} failed: not measured"
        return f"{self.label}: {self.target.condition} {'passed' if self.passed else 'failed'} with {self.value:.4g}"


def parse_targets(texts: Iterable[str], labels: Collection[str]) -> list[Target]:
    """Parse all targets; refuse a label that is not run."""
    targets = [Target.parse(text) for text in texts]
    for target in targets:
        if target.label and target.label not in labels:
            raise UnknownNameError(f"label of the target {str(target)!r}", target.label, labels)
    return targets


def refuse_unmeasured(
    targets: Sequence[Target],
    *,
    ragas: bool,
    judged: Collection[str],
    reader: bool,
    questions: Sequence[BenchmarkQuestion] | None = None,
) -> None:
    """Refuse targets on metrics that this run will not compute, and name the option that would compute them.

    `questions` are the benchmark's, where they are known: a metric that applies to none of them is refused too.
    """
    for target in targets:
        if target.metric in COSTS:
            continue
        metric = get_metric(target.metric)
        missing = ""
        if metric.group == "ragas" and not ragas:
            missing = "leave out --no-ragas"
        elif metric.group == "judge" and target.metric not in judged:
            missing = "name a judge with --judge MODEL[@URL] that scores it (--judge-metrics)"
            if target.metric in ("context_precision", "context_recall"):
                missing += f", or take id_based_{target.metric}, which needs no model"
        elif metric.group == "answer" and not reader:
            missing = "name a reader with --llm MODEL[@URL]"
        elif questions is not None and not any(map(metric.applies, questions)):
            missing = f"no question has what it needs. {ADD_GOLD}, {ADD_ANSWERS}"
        if missing:
            raise InputError(f"--target {str(target)!r}: this run does not measure {target.metric}: {missing}")


def check_targets(targets: Sequence[Target], strategies: Mapping[str, StrategyEntry]) -> list[TargetResult]:
    """Check each target for its label, or for every label; `strategies` are those of results.json.

    Metrics are judged by their zero-filled means: a failed question counts as the worst value.
    """
    found = []
    for target in targets:
        for label in [target.label] if target.label else strategies:
            entry, name = strategies[label], target.metric
            value = figure(entry, name) if name in COSTS else entry["metrics"].get(name)
            found.append(TargetResult(target, label, value))
    return found


def targets_entry(results: Sequence[TargetResult]) -> dict[str, dict[str, dict[str, Any]]]:
    """Make the entry: condition → label → {"value", "passed"}; a condition on a time names seconds or latency."""
    entries: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        outcome = {"value": result.value, "passed": result.passed}
        entries.setdefault(result.target.condition, {})[result.label] = outcome
    return entries
