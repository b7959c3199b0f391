"""The entry point groups under which installed packages offer plug-ins; reading their names imports no package."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

STRATEGIES = "hopbench.strategies"
METRICS = "hopbench.metrics"
LOADERS = "hopbench.loaders"
EMBEDDERS = "hopbench.embedders"
RERANKERS = "hopbench.rerankers"
EXTRACTORS = "hopbench.extractors"


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group, in the order of their names and packages."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, package_of(point)))


def offered_names(group: str) -> list[str]:
    """The names in a group, whether or not the plug-ins behind them can be loaded."""
    return list(dict.fromkeys(point.name for point in offered(group)))


def package_of(point: EntryPoint) -> str:
    """`hopbench-mine 1.0`; empty for an entry point without a distribution."""
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
