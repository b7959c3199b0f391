"""The strategies' names without the strategies: what a shell completes must not load scipy."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.resources import files

GROUP = "hopbench.strategies"
BUILT_IN = (
    "vector",
    "bm25",
    "hybrid",
    "graph_expansion",
    "expansion_queries",
    "activation",
    "entity_expansion",
    "neighborhood",
    "dual_level",
    "kg2rag",
    "pagerank",
    "hoprank",
)
WITHOUT_SOURCE = ("pagerank", "hoprank")


def strategy_names() -> list[str]:
    """Our strategies, and what installed plug-ins call theirs; whether these can be loaded is not known here."""
    return [*BUILT_IN, *(point.name for point in entry_points(group=GROUP))]


def tuned_names() -> list[str]:
    """The strategies that have a second preset, which `all:tuned` runs."""
    folder = files("hopbench.retrieval.strategies") / "presets"
    return [name for name in BUILT_IN if name not in WITHOUT_SOURCE and (folder / f"{name}.yaml").is_file()]
