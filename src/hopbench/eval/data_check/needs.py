"""What each metric and command needs, and whether a data set has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hopbench.eval.metrics import all_metrics, primary_metric
from hopbench.eval.metrics.base import Metric, Need
from hopbench.eval.types import Benchmark

WORDS: dict[Need, str] = {
    "gold": "gold passages",
    "answers": "answers that a text can show",
    "reference": "answers",
    "reader": "--llm",
    "judge": "--judge",
}
"""What a data set or a flag must give; contexts and graphs every run makes by itself."""


class MetricUse(NamedTuple):
    """A metric: what it needs of data and flags, and for how many questions the data set has that."""

    name: str
    needs: tuple[str, ...]
    questions: int


class CommandUse(NamedTuple):
    """A command: what it needs of a data set, whether it has it, and a word on it."""

    command: str
    needs: str
    works: bool
    note: str = ""


def metric_uses(benchmark: Benchmark) -> list[MetricUse]:
    """All metrics in the order of their registry."""
    return [
        MetricUse(metric.name, _needs(metric), sum(map(metric.applies, benchmark.questions)))
        for metric in all_metrics().values()
    ]


def _needs(metric: Metric) -> tuple[str, ...]:
    return tuple(WORDS[need] for need in metric.needs if need in WORDS) or ("questions",)


def command_uses(benchmark: Benchmark) -> list[CommandUse]:
    """The commands that take a data set."""
    return list(_commands(benchmark))


def _commands(benchmark: Benchmark) -> Iterator[CommandUse]:
    asked = bool(benchmark.questions)
    gold = any(question.gold for question in benchmark.questions)
    primary = primary_metric(benchmark) if asked else None
    yield CommandUse("graph build, explain", "passages", True)
    yield CommandUse("run, nightly", "questions", asked, _ranked_by(primary) if asked else "")
    yield CommandUse("sweep", "gold passages or answers, and the role tune", primary is not None, _role(benchmark))
    yield CommandUse("train hoprank", "gold passages, and the role tune", gold, _role(benchmark))


def _ranked_by(primary: str | None) -> str:
    return f"labels are ranked by {primary}" if primary else "labels are not ranked: nothing says which is better"


def _role(benchmark: Benchmark) -> str:
    return "warns, as the role is report: --set-role tune" if benchmark.role == "report" else ""
