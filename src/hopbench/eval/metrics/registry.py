"""The registry of metrics (built-in, of installed packages, cut-offs requested), and which metric is primary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from hopbench.eval.metrics.base import Group, Metric, MetricFamily
from hopbench.eval.types import Benchmark
from hopbench.retrieval.plugins.code import PluginCode
from hopbench.retrieval.plugins.registry import METRICS, Registry
from hopbench.retrieval.support.errors import InputError, UnknownNameError

Offer = tuple[Metric | MetricFamily, ...]
_HERE = "hopbench.eval.metrics"
BUILT_IN: Mapping[str, str] = {
    "ranking": f"{_HERE}.built_in:RANKING",
    "answers": f"{_HERE}.built_in:ANSWERS",
    "titles": f"{_HERE}.built_in:TITLES",
    "ragas_context": f"{_HERE}.ragas_context:METRICS",
    "reach": f"{_HERE}.built_in:REACH",
    "answer_match": f"{_HERE}.built_in:ANSWER_MATCH",
    "judged": f"{_HERE}.built_in:JUDGED",
}
"""Group → its metrics and families, in the order of reports; an entry point of a package has the same form."""


class Catalogue:
    """Metrics and families by name, with the plug-in of each. A plug-in whose names are taken is refused whole."""

    def __init__(self) -> None:
        self.defaults: dict[str, Metric] = {}
        self.families: dict[str, MetricFamily] = {}
        self.registry: Registry[Offer] = Registry("group of metrics", METRICS, BUILT_IN, self._add)
        self._requested: dict[str, Metric] = {}
        self._plugin_of: dict[str, str] = {}
        for name in BUILT_IN:
            self.registry.get(name)
        self.built_in = frozenset(self.defaults)
        self.registry.plugins()

    def register(self, metric: Metric) -> Metric:
        """Add a metric that is always measured; refuses a name, or a tracking name, that is taken."""
        if mlflow_name(metric.name) in map(mlflow_name, (*self.defaults, *self.families)):
            raise InputError(f"metric {metric.name!r} is registered already; give the new one another name")
        self.defaults[metric.name] = metric
        return metric

    def find(self, name: str) -> Metric | None:
        """Look up a metric by name, a family's of any cut-off too; None for an unknown name."""
        known = self.defaults.get(name) or self._requested.get(name)
        family, _, k = name.partition("@")
        if known is None and family in self.families and k.isdecimal():
            known = self._requested[name] = self.families[family].metric(int(k))
        return known

    def code_of(self, name: str) -> tuple[PluginCode, ...]:
        """Return the code of the plug-in that provides a metric; empty for a built-in one."""
        plugin = self._plugin_of.get(name) or self._plugin_of.get(name.partition("@")[0], "")
        return self.registry.code_of(plugin) if plugin else ()

    def _add(self, name: str, offer: object) -> Offer:
        """Register what a module or package offers, all of it or nothing."""
        offered = offer if isinstance(offer, tuple) else (offer,)
        metrics: list[Metric] = []
        families: dict[str, MetricFamily] = {}
        for one in offered:
            if isinstance(one, Metric):
                metrics.append(one)
            elif not isinstance(one, MetricFamily):
                raise InputError(f"{one!r} is neither a Metric nor a MetricFamily")
            elif one.name in self.families or one.name in families or "@" in one.name:
                raise InputError(f"the family of metrics {one.name!r} has a name that is taken or holds an @")
            else:
                families[one.name] = one
                metrics += map(one.metric, one.cutoffs)
        before = self.defaults, self.families
        self.defaults, self.families = dict(self.defaults), {**self.families, **families}
        try:
            for metric in metrics:
                self.register(metric)
        except InputError:
            self.defaults, self.families = before
            raise
        if name not in BUILT_IN:
            added = {*self.defaults, *self.families}.difference(*before)
            self._plugin_of.update(dict.fromkeys(added, name))
        return offered


def mlflow_name(name: str) -> str:
    """Replace "@", which MLflow refuses in a metric's name: `recall@5` → `recall_at_5`."""
    return name.replace("@", "_at_")


@cache
def catalogue() -> Catalogue:
    """Return all metrics (created on first use: a plug-in may import this package)."""
    return Catalogue()


def register(metric: Metric) -> Metric:
    """Add a metric to those that every run measures.

    Args:
        metric: Its name, and its name in MLflow (`@` is `_at_`), must be new.

    Returns:
        The metric itself.

    Raises:
        InputError: The name is taken.

    Example:
        >>> register(Metric("hit@1", "the first passage is gold", "ours", ("gold",), hit_at_1))
    """
    return catalogue().register(metric)


def get_metric(name: str) -> Metric:
    """Return the metric of that name, a family's of any cut-off too; UnknownNameError offers the nearest one."""
    known = catalogue()
    metric = known.find(name)
    if metric is None:
        also = [f"{family}@{k}" for family in known.families for k in range(1, 101)]
        raise UnknownNameError("metric", name, [*known.defaults, *(f"{one}@K" for one in known.families)], also)
    return metric


def all_metrics(group: Group | None = None) -> Mapping[str, Metric]:
    """Name → metric of those measured by default, in the order of registration, all or one group's."""
    return {name: m for name, m in catalogue().defaults.items() if group is None or m.group == group}


def requested_metrics(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names measured only on request. Raises InputError for what a run cannot measure on request."""
    requested = dict.fromkeys(get_metric(name) for name in names if name not in catalogue().defaults)
    for metric in requested:
        if metric.group != "ranking" or metric.compute is None:
            raise InputError(f"metric {metric.name!r} is not computed from rankings, so it cannot be requested by name")
    return tuple(metric.name for metric in requested)


def metrics_among(names: Iterable[object]) -> list[Metric]:
    """Return the metrics that some names (columns of rows) stand for: in the order of registration, then of names."""
    present = dict.fromkeys(map(str, names))
    ordered = dict.fromkeys([*(name for name in catalogue().defaults if name in present), *present])
    return [metric for metric in map(catalogue().find, ordered) if metric is not None]


def metric_code(names: Iterable[str] = ()) -> tuple[PluginCode, ...]:
    """Return the code of the plug-ins whose metrics every trial is scored by, and of those with these names."""
    known = catalogue()
    found = (code for name in (*known.defaults, *names) for code in known.code_of(name))
    return tuple({code.distribution: code for code in found}.values())


def ragas_metrics(names: Iterable[object]) -> list[str]:
    """Return which of some names are RAGAS's metrics, those without a model first, in the order of registration."""
    present = set(names)
    return [name for group in ("ragas", "judge") for name in all_metrics(group) if name in present]


def sign_of(name: str) -> float:
    """The metric's `sign`; 1 for a name that is not registered, as of a package that is not installed any more."""
    metric = catalogue().find(name)
    return 1.0 if metric is None else metric.sign


def worst_of(name: str) -> float:
    """What a failed question counts in the metric's mean; 0 for a name that is not registered."""
    metric = catalogue().find(name)
    return 0.0 if metric is None else metric.worst


def rank_key(name: str, value: float | None) -> float:
    """Sorts values of a metric best first; what was not measured comes last."""
    return math.inf if value is None or math.isnan(value) else -sign_of(name) * value


def best_value(name: str, values: Iterable[float | None]) -> float | None:
    """The best of the measured values of a metric; None where there is none."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return min(known, key=lambda value: rank_key(name, value), default=None)


PRIMARY = "all_gold@10"
"""The default metric of comparisons, baselines and nightly verdicts."""

PRIMARIES = (PRIMARY, "has_answer@10")
"""The primary metric is the first of these that applies to a question of the benchmark."""

ADD_GOLD = (
    "gold passages go into qrels/test.tsv beside queries.jsonl (query-id, corpus-id, score; tab-separated, with that "
    "heading)"
)
ADD_ANSWERS = "answers into queries.jsonl (metadata.answer, metadata.answer_aliases)"


def primary_metric(benchmark: Benchmark) -> str | None:
    """Choose the deciding metric: by gold passages, else by answers that a text can contain, else none."""
    applicable = (name for name in PRIMARIES if any(map(get_metric(name).applies, benchmark.questions)))
    return next(applicable, None)


def primary_of(results: Mapping[str, Any]) -> str | None:
    """The primary metric that results.json names."""
    name = results["benchmark"].get("primary_metric")
    return None if name is None else str(name)


def lacking(primary: str | None) -> str:
    """What a benchmark with this primary metric is missing and how to add it; empty where nothing is."""
    if primary == PRIMARY:
        return ""
    if primary is not None:
        return f"no question has gold passages, so {primary} decides; to know whether evidence was found: {ADD_GOLD}"
    return (
        "no question has gold passages or an answer that a text can show, so nothing says which strategy is better, "
        f"and none is ahead here: {ADD_GOLD}, {ADD_ANSWERS}; a judge can score without gold (--llm with --judge)"
    )
