"""The registry of strategy classes: our own, and those that installed packages offer."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cache

from hopbench.retrieval.plugins.groups import STRATEGIES
from hopbench.retrieval.plugins.registry import Registry
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.strategies.names import BUILT_IN
from hopbench.retrieval.strategies.preset import preset_of
from hopbench.retrieval.support.errors import InputError

_NAME = re.compile(r"[^:,+\[\]]+")  # what can stand in a label as its name


@cache
def registry() -> Registry[type[Strategy]]:
    """The built-in strategies and those that installed packages offer under the entry point `hopbench.strategies`."""
    return Registry("strategy", STRATEGIES, BUILT_IN, usable)


def usable(name: str, strategy: object) -> type[Strategy]:
    """Refuse what cannot be a strategy: another type, or a class without name, summary or bounds."""
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise InputError("it is no Strategy class")
    for attribute in ("name", "summary"):
        if not isinstance(getattr(strategy, attribute, None), str):
            raise InputError(f"it has no `{attribute}`, which is text")
    if not _NAME.fullmatch(strategy.name) or strategy.name == "all":
        raise InputError(f"its name {strategy.name!r} cannot stand in a label: leave out : , + [ and ]")
    if strategy.name != name:
        raise InputError(f"it is named {strategy.name!r}, its entry point {name!r}: give both one name")
    if inspect.isabstract(strategy):
        raise InputError(f"it lacks {', '.join(sorted(strategy.__abstractmethods__))}")
    for field, spec in strategy.parameters().items():
        if not isinstance(spec.metadata.get("bounds"), Bounds) or spec.default is dataclasses.MISSING:
            raise InputError(f"its field {field!r} has no default and bounds: declare it with param(…)")
    preset_of(strategy)  # refuses one that cannot be used
    return strategy
