"""The registry of metrics (built-in, of installed packages, cut-offs requested), and which metric is primary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
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
        self.registry: Registry[Offer] = Registry("group of metrics", METRICS, BUILT_IN, self._taken)
        self._requested: dict[str, Metric] = {}
        self._plugin_of: dict[str, str] = {}
        for name in BUILT_IN:
            self.registry.get(name)
        self.built_in = frozenset(self.defaults)
        self.registry.plugins()

    def register(self, metric: Metric) -> Metric:
        """Add a metric that is always measured; refuses a name, or a tracking name, that is taken."""
        taken = {mlflow_name(known) for known in (*self.defaults, *self.families)}
        if mlflow_name(metric.name) in taken:
            raise InputError(f"metric {metric.name!r} is registered already; give the new one another name")
        self.defaults[metric.name] = metric
        return metric

    def find(self, name: str) -> Metric | None:
        """The metric of that name, a family's of any cut-off too; None for an unknown name."""
        known = self.defaults.get(name) or self._requested.get(name)
        family, at, k = name.partition("@")
        if known is None and at and family in self.families and k.isdecimal():
            known = self._requested[name] = self.families[family].metric(int(k))
        return known

    def get(self, name: str) -> Metric:
        """As `find`; raises UnknownNameError for an unknown name."""
        metric = self.find(name)
        if metric is None:
            also = [f"{family}@{k}" for family in self.families for k in range(1, 101)]
            raise UnknownNameError("metric", name, [*self.defaults, *(f"{one}@K" for one in self.families)], also)
        return metric

    def code_of(self, name: str) -> tuple[PluginCode, ...]:
        """Return the code of the plug-in that provides a metric; empty for a built-in one."""
        family = name.partition("@")[0]
        plugin = self._plugin_of.get(name) or self._plugin_of.get(family, "")
        return self.registry.code_of(plugin) if plugin else ()

    def _taken(self, name: str, offer: object) -> Offer:
        """Register what a module or package offers, all of it or nothing."""
        offered = offer if isinstance(offer, tuple) else (offer,)
        before = dict(self.defaults), dict(self.families)
        try:
            for one in offered:
                self._take(one)
        except BaseException:
            self.defaults, self.families = before
            raise
        if name not in BUILT_IN:
            added = [one for one in (*self.defaults, *self.families) if one not in before[0] and one not in before[1]]
            self._plugin_of.update(dict.fromkeys(added, name))
        return offered

    def _take(self, one: object) -> None:
        if isinstance(one, Metric):
            self.register(one)
            return
        if not isinstance(one, MetricFamily):
            raise InputError(f"{one!r} is neither a Metric nor a MetricFamily")
        if one.name in self.families or "@" in one.name:
            raise InputError(f"the family of metrics {one.name!r} has a name that is taken or holds an @")
        for k in one.cutoffs:
            self.register(one.metric(k))
        self.families[one.name] = one


def mlflow_name(name: str) -> str:
    """The name under which MLflow takes a metric, as it refuses "@": `recall@5` → `recall_at_5`."""
    return name.replace("@", "_at_")


@cache
def catalogue() -> Catalogue:
    """Return all metrics (created on first use: a plug-in may import this package)."""
    return Catalogue()


PRIMARY = "all_gold@10"
"""The default metric of comparisons, baselines and nightly verdicts."""


def register(metric: Metric) -> Metric:
    """Add a metric; refuses a name, or a tracking name, that is taken."""
    return catalogue().register(metric)


def get_metric(name: str) -> Metric:
    """The metric of that name, a family's of any cut-off too; UnknownNameError offers the nearest one."""
    return catalogue().get(name)


def asked_metrics(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names measured only on request. Raises InputError for what a run cannot measure on request."""
    requested = [get_metric(name) for name in names if name not in all_metrics()]
    if other := next((one for one in requested if one.group != "ranking" or one.compute is None), None):
        raise InputError(f"metric {other.name!r} is not computed from rankings, so it cannot be requested by name")
    return tuple(dict.fromkeys(one.name for one in requested))


def metrics_among(names: Iterable[object]) -> list[Metric]:
    """The metrics that some names (columns of rows) stand for: in the order of registration, then of the names."""
    present = dict.fromkeys(map(str, names))
    default = [metric for name, metric in all_metrics().items() if name in present]
    known = {metric.name for metric in default}
    more = (catalogue().find(name) for name in present if name not in known)
    return [*default, *(metric for metric in more if metric is not None)]


def metric_code(names: Iterable[str] = ()) -> tuple[PluginCode, ...]:
    """The code of the plug-ins whose metrics every trial is scored by, and of those with these names."""
    found = (code for name in (*all_metrics(), *names) for code in catalogue().code_of(name))
    return tuple({code.distribution: code for code in found}.values())


def all_metrics(group: Group | None = None) -> Mapping[str, Metric]:
    """Name → metric of those measured by default, in the order of registration, all or one group's (read-only)."""
    chosen = {name: m for name, m in catalogue().defaults.items() if group is None or m.group == group}
    return MappingProxyType(chosen)


def ragas_metrics(names: Iterable[object]) -> list[str]:
    """Which of some names are RAGAS's metrics, those without a model first, in the order of registration."""
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


PRIMARIES = (PRIMARY, "has_answer@10")
"""The primary metric is the first of these that applies to a question of the benchmark."""

ADD_GOLD = (
    "gold passages go into qrels/test.tsv beside queries.jsonl (query-id, corpus-id, score; tab-separated, with that "
    "heading)"
)
ADD_ANSWERS = "answers into queries.jsonl (metadata.answer, metadata.answer_aliases)"


def primary_metric(benchmark: Benchmark) -> str | None:
    """The benchmark's primary metric: by gold passages, else by answers that a text can contain, else none."""
    return _first(name for name in PRIMARIES if any(map(get_metric(name).applies, benchmark.questions)))


def primary_of(results: Mapping[str, Any]) -> str | None:
    """The primary metric named in results.json; in files of older versions, the first that was measured."""
    benchmark = results["benchmark"]
    if "primary_metric" in benchmark:
        return None if benchmark["primary_metric"] is None else str(benchmark["primary_metric"])
    measured = {name for entry in (results.get("strategies") or {}).values() for name in entry["metrics"]}
    return _first(name for name in PRIMARIES if name in measured)


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


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)
