"""The values that a shell's completion and Prefect's form offer, without loading a model, a graph or heavy packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pkgutil import resolve_name
from typing import Any

RUNNERS = ("threads", "processes", "dask")
TITLES = {"datasets": "shipped", "embedders": "embedder", "labels": "label", "efforts": "known", "judge_on": "labels"}
TITLES |= {"runners": "here", "sweep_files": "shipped"}
OTHERS = {
    "datasets": {"folder, file or Hub name": r"^.*[/.~:].*$"},
    "metrics": {"NAME or NAME@K": r"^\S+$"},
    "efforts": {"a provider's own": r"^[a-z]+$"},
    "judge_on": {"finalists:N": r"^finalists:[1-9][0-9]*$"},
    "runners": {"dask=HOST:PORT": r"^dask=.+:[0-9]+$"},
    "sweep_files": {"a file where the flow runs": r"^.+\.ya?ml$"},
}
"""What other values a form takes, by title and pattern."""


FIXED = {
    "judge_metrics": ("all",),  # the names of some would take loading them
    "judge_profiles": ("full", "compact"),
    "judge_on": ("all", "finalists"),
    "efforts": ("none", "minimal", "low", "medium", "high", "xhigh"),
    "metrics": ("recall", "all_gold"),
    "runners": RUNNERS,
    "set_roles": ("tune", "report", "halves"),
    "roles": ("tune", "report"),
    "question_writers": ("rules", "ragas"),
}
SOURCES = {
    "datasets": "hopbench.eval.benchmarks.loader:shipped_folders",
    "stores": "hopbench.flows.settings.home:STORES",
    "methods": "hopbench.retrieval.graph.construction.plan:METHODS",
    "extractors": "hopbench.retrieval.graph.construction.plan:extractor_names",
    "embedders": "hopbench.retrieval.embedding:BUILT_IN",
}
"""Where the names of a list are: a sequence, or a function that returns it."""
PLUGINS = {"embedders": "hopbench.embedders", "metrics": "hopbench.metrics"}


def known_names(values: str) -> Sequence[str]:
    """The names of a list of values; for `embedders` and `metrics` those to which a model or a cut-off is added."""
    if values == "sweep_files":
        from importlib.resources import files

        shipped = sorted(one.name for one in files("hopbench.flows.sweeps").iterdir() if one.name.endswith(".yaml"))
        return [name.removesuffix(".yaml") for name in shipped if not name.startswith("tune_")]  # not the presets'
    if values in FIXED:
        names: Sequence[str] = FIXED[values]
    else:
        source = resolve_name(SOURCES.get(values, "hopbench.retrieval.strategies.label:strategy_names"))
        names = list(source() if callable(source) else source)
    if values in PLUGINS:
        from hopbench.retrieval.plugins.registry import offered_names

        return list(dict.fromkeys([*names, *offered_names(PLUGINS[values])]))
    if values in ("labels", "label", "sides"):
        from hopbench.retrieval.strategies.label import tuned_names

        return [*names, *(f"{name}:tuned" for name in tuned_names())]
    return names


def complete(values: str, incomplete: str) -> list[str]:
    """What a shell offers for the beginning of a value."""
    names: Iterable[str] = known_names(values)
    before = ""
    if values == "labels":  # the last of several, with commas between
        before, comma, incomplete = incomplete.rpartition(",")
        names = [name for name in ("all", "all:tuned", *names) if name not in before.split(",")]
        before += comma
    if values in ("labels", "label", "sides") and "+" in incomplete:
        from hopbench.retrieval.plugins.registry import RERANKERS, offered_names

        label, plus, incomplete = incomplete.rpartition("+")
        names, before = offered_names(RERANKERS), before + label + plus
    elif values == "sides":
        names = ("champion", *names)
    elif values == "embedders":
        from hopbench.retrieval.embedding import EXAMPLES

        names = [f"{name}:" if name in EXAMPLES else name for name in names]
    elif values == "changes":  # the fields of a strategy would take loading it
        names = [] if "." in incomplete else [f"{name}." for name in names]
    elif values == "metrics":
        names = [f"{name}@" for name in names]
    return [before + name for name in names if name.startswith(incomplete)]


def schema_of(values: str) -> dict[str, Any]:
    """The JSON Schema of one value: the known names and, where the list is open, patterns of others."""
    names, others = list(known_names(values)), dict(OTHERS.get(values, {}))
    every = "|".join(map(re.escape, names))
    if values == "embedders":
        from hopbench.retrieval.embedding import EXAMPLES

        names, others = [name for name in names if name not in EXAMPLES], {"NAME:MODEL": f"^({every}):.+$"}
    elif values == "labels":
        every = "|".join(map(re.escape, known_names("strategies")))
        changed = rf"^({every})(:[^+\[\]]+)?(\[[^\[\]]*\])?(\+[^:+\[\]]+(\[[^\[\]]*\])?)?$"
        names, others = ["all", "all:tuned", *names], {"NAME[field=value]+RERANKER": changed}
    elif values == "changes":
        names, others = [], {"strategy.field=value": rf"^({every})\.\w+=.+$"}
    elif values == "metrics":
        names = []
    elif values == "judge_metrics":
        from hopbench.eval.metrics import all_metrics

        names = ["all", *all_metrics("judge")]
    elif values == "runners":
        names = ["", *names]
    closed: dict[str, Any] = {"type": "string", "enum": names}
    if not others:
        return closed
    texts = [{"type": "string", "title": title, "pattern": pattern} for title, pattern in others.items()]
    options = [*([{**closed, "title": TITLES[values]}] if names else []), *texts]
    return options[0] if len(options) == 1 else {"anyOf": options}
