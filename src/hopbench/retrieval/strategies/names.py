"""The one table of built-in strategies, and the names of all, without loading any (they load scipy)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from importlib.resources import files

from hopbench.retrieval.plugins.groups import STRATEGIES, offered, offered_names
from hopbench.retrieval.strategies.label import WITHOUT_SOURCE

_HERE = "hopbench.retrieval.strategies"
BUILT_IN: Mapping[str, str] = {
    "vector": f"{_HERE}.baselines:Vector",
    "bm25": f"{_HERE}.baselines:BM25",
    "hybrid": f"{_HERE}.baselines:Hybrid",
    "graph_expansion": f"{_HERE}.graph_expansion.strategy:GraphExpansion",
    "expansion_queries": f"{_HERE}.expansion_queries.strategy:ExpansionQueries",
    "activation": f"{_HERE}.activation.strategy:Activation",
    "entity_expansion": f"{_HERE}.entity_expansion.strategy:EntityExpansion",
    "neighborhood": f"{_HERE}.neighborhood:Neighborhood",
    "dual_level": f"{_HERE}.dual_level.strategy:DualLevel",
    "kg2rag": f"{_HERE}.kg2rag.strategy:KG2RAG",
    "pagerank": f"{_HERE}.pagerank:PageRank",
    "hoprank": f"{_HERE}.hoprank.strategy:HopRank",
}
"""Name → `module:class`, in the order in which `all` runs them; an entry point of a package has the same form."""


def strategy_names() -> list[str]:
    """The names of built-in strategies and of plug-ins, whether or not a plug-in can be loaded."""
    return list(dict.fromkeys([*BUILT_IN, *offered_names(STRATEGIES)]))


def tuned_names() -> list[str]:
    """The strategies that have a second preset, which `all:tuned` selects; of plug-ins those whose package lists it."""
    folder = files(_HERE) / "presets"
    ours = [name for name in BUILT_IN if name not in WITHOUT_SOURCE and (folder / f"{name}.yaml").is_file()]
    return [*ours, *(point.name for point in offered(STRATEGIES) if _ships_preset(point))]


def _ships_preset(point: EntryPoint) -> bool:
    wanted = "/".join([*point.module.split(".")[:-1], "presets", f"{point.name}.yaml"])
    return any(file.as_posix() == wanted for file in (point.dist.files if point.dist else None) or ())
