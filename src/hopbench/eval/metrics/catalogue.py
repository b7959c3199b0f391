"""All metrics by name: ours, those of installed packages, and the cut-offs of families that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from hopbench.eval.metrics.base import Metric, MetricFamily
from hopbench.retrieval.plugins.code import PluginCode
from hopbench.retrieval.plugins.registry import METRICS, Registry
from hopbench.retrieval.support.errors import InputError, UnknownNameError

Offer = tuple[Metric | MetricFamily, ...]
_HERE = "hopbench.eval.metrics"
BUILT_IN: Mapping[str, str] = {
    "ranking": f"{_HERE}.ranking:METRICS",
    "answers": f"{_HERE}.answers:METRICS",
    "titles": f"{_HERE}.titles:METRICS",
    "ragas_context": f"{_HERE}.ragas_context:METRICS",
    "reach": f"{_HERE}.joined:REACH",
    "answer_match": f"{_HERE}.answer_match:METRICS",
    "judged": f"{_HERE}.joined:JUDGED",
}
"""Module → its metrics and families, in the order of reports; an entry point of a package has the same form."""


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
        """The code of the plug-in that offers a metric; nothing for our own."""
        family = name.partition("@")[0]
        plugin = self._plugin_of.get(name) or self._plugin_of.get(family, "")
        return self.registry.code_of(plugin) if plugin else ()

    def _taken(self, name: str, offer: object) -> Offer:
        """Take in what a module or a package offers, all of it or nothing."""
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
    """All metrics, made when the first one is asked for: a plug-in may import this package."""
    return Catalogue()


def added_names(names: Iterable[str]) -> list[str]:
    """Which of some names are metrics, but none that every run measures: of plug-ins, or cut-offs asked for."""
    return [name for name in names if name not in catalogue().built_in and catalogue().find(name) is not None]
