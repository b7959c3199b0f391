"""The values that Prefect's form offers for a parameter, and what else it accepts; no list loads a model or a graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True)
class Offer:
    """Names to choose from and, where the set is open, `others`: what other values are, by title and pattern."""

    names: Sequence[str]
    title: str = "choose"
    others: Mapping[str, str] | None = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of one value."""
        closed: dict[str, Any] = {"type": "string", "enum": list(self.names)}
        others = [
            {"type": "string", "title": title, "pattern": pattern} for title, pattern in (self.others or {}).items()
        ]
        every = [*([{**closed, "title": self.title}] if self.names else []), *others]
        return every[0] if len(every) == 1 and self.others else {"anyOf": every} if others else closed


def _datasets() -> Offer:
    from hopbench.eval.benchmarks.loader import shipped_folders

    return Offer(list(shipped_folders()), "shipped", {"folder, file or Hub name": r"^.*[/.~:].*$"})


def _stores() -> Offer:
    from hopbench.flows.settings.stores import STORES

    return Offer(STORES)


def _methods() -> Offer:
    from hopbench.retrieval.graph.construction.plan import METHODS

    return Offer(METHODS)


def _extractors() -> Offer:
    from hopbench.retrieval.graph.construction.plan import extractor_names

    return Offer(extractor_names())


def _embedders() -> Offer:
    from hopbench.retrieval.embedding import BUILT_IN, EXAMPLES
    from hopbench.retrieval.plugins.registry import EMBEDDERS, offered_names

    names = list(dict.fromkeys([*BUILT_IN, *offered_names(EMBEDDERS)]))
    alone = [name for name in names if name not in EXAMPLES]
    return Offer(alone, "embedder", {"NAME:MODEL": f"^({_any(names)}):.+$"})


def _labels() -> Offer:
    """Labels, with the words for several of them; parameters in brackets and a reranker may follow a name."""
    from hopbench.retrieval.strategies.label import strategy_names, tuned_names

    names = strategy_names()
    tuned = [f"{name}:tuned" for name in tuned_names()]
    changed = rf"^({_any(names)})(:[^+\[\]]+)?(\[[^\[\]]*\])?(\+[^:+\[\]]+(\[[^\[\]]*\])?)?$"
    return Offer(["all", "all:tuned", *names, *tuned], "label", {"NAME[field=value]+RERANKER": changed})


def _changes() -> Offer:
    from hopbench.retrieval.strategies.label import strategy_names

    return Offer((), others={"strategy.field=value": rf"^({_any(strategy_names())})\.\w+=.+$"})


def _metrics() -> Offer:
    return Offer((), others={"NAME or NAME@K": r"^\S+$"})


def _judge_metrics() -> Offer:
    from hopbench.eval.metrics import all_metrics

    return Offer(["all", *all_metrics("judge")])


def _judge_profiles() -> Offer:
    from hopbench.flows.settings.models import PROFILES

    return Offer(PROFILES)


def _efforts() -> Offer:
    return Offer(EFFORTS, "known", {"a provider's own": r"^[a-z]+$"})


def _judge_on() -> Offer:
    return Offer(("all", "finalists"), "labels", {"finalists:N": r"^finalists:[1-9][0-9]*$"})


def _runners() -> Offer:
    from hopbench.flows.settings.options import RUNNERS

    return Offer(["", *RUNNERS], "here", {"dask=HOST:PORT": r"^dask=.+:[0-9]+$"})


def _sweep_files() -> Offer:
    """The shipped sweep files but those that tuned the presets, which write into the package."""
    from importlib.resources import files

    shipped = sorted(file.name for file in files("hopbench.flows.sweeps").iterdir() if file.name.endswith(".yaml"))
    names = [name.removesuffix(".yaml") for name in shipped if not name.startswith("tune_")]
    return Offer(names, "shipped", {"a file where the flow runs": r"^.+\.ya?ml$"})


def _any(names: Sequence[str]) -> str:
    return "|".join(map(re.escape, names))


OFFERS: Mapping[str, Callable[[], Offer]] = {
    "datasets": _datasets,
    "stores": _stores,
    "methods": _methods,
    "extractors": _extractors,
    "embedders": _embedders,
    "labels": _labels,
    "changes": _changes,
    "metrics": _metrics,
    "judge_metrics": _judge_metrics,
    "judge_profiles": _judge_profiles,
    "efforts": _efforts,
    "judge_on": _judge_on,
    "runners": _runners,
    "sweep_files": _sweep_files,
}
"""The name under which a `Setting` asks for them → the values."""
