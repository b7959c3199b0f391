"""The catalogue of strategy classes: our own and those of plug-ins."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint

from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.strategies.plugins.code import PluginCode, plugin_code
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError

_NAME = re.compile(r"[^:,\[\]]+")  # what can stand in a label as its name


class Registry:
    """Strategy classes by name; a second class with the same name is refused.

    `broken` holds, by entry point, why a plug-in cannot be used: all others can.
    """

    def __init__(self, strategies: Iterable[type[Strategy]] = ()) -> None:
        self._strategies: dict[str, type[Strategy]] = {}
        self._code: dict[type[Strategy], tuple[PluginCode, ...]] = {}
        self.broken: dict[str, str] = {}
        for strategy in strategies:
            self.register(strategy)

    def register(self, strategy: type[Strategy]) -> type[Strategy]:
        """Add a strategy class; usable as a decorator."""
        known = self._strategies.get(strategy.name)
        if known is not None:
            raise ParameterError(
                f"two strategies are named {strategy.name!r}: {known.__module__}, {strategy.__module__}"
            )
        self._strategies[strategy.name] = strategy
        return strategy

    def load(self, point: EntryPoint) -> None:
        """Add the strategy of an installed package, or note in `broken` why it cannot be used."""
        try:
            strategy = point.load()
            self.register(_usable(strategy))
            # Read now: later the files may be newer than the code that was imported.
            self._code[strategy] = plugin_code(strategy, point)
        except (Exception, SystemExit) as error:  # a package may do anything when it is imported
            reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            whose = "" if point.dist is None else f" of the package {point.dist.name} {point.dist.version}"
            self.broken[point.name] = (
                f"the plug-in {point.name} = {point.value}{whose} cannot be used: {reason}. "
                "Correct the package and install it again, or uninstall it"
            )

    def get(self, name: str) -> type[Strategy]:
        """The class registered under `name`."""
        if name not in self._strategies:
            if name in self.broken:
                raise InputError(self.broken[name])
            raise UnknownNameError("strategy", name, self._strategies)
        return self._strategies[name]

    def names(self) -> list[str]:
        """All names in order of registration."""
        return list(self._strategies)

    def code_of(self, strategy: type[Strategy]) -> tuple[PluginCode, ...]:
        """The code of the plug-in that the class comes from; nothing for our own."""
        if strategy not in self._code:
            self._code[strategy] = plugin_code(strategy)
        return self._code[strategy]

    def code_named(self, name: str) -> tuple[PluginCode, ...]:
        """The code of the plug-in that offers a strategy; nothing for our own and for unknown names."""
        return self.code_of(self._strategies[name]) if name in self._strategies else ()


def _usable(strategy: object) -> type[Strategy]:
    """Refuse what cannot be a strategy: another type, or a class without name, summary or bounds."""
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise InputError("it is no Strategy class")
    for attribute in ("name", "summary"):
        if not isinstance(getattr(strategy, attribute, None), str):
            raise InputError(f"it has no `{attribute}`, which is text")
    if not _NAME.fullmatch(strategy.name) or strategy.name == "all":
        raise InputError(f"its name {strategy.name!r} cannot stand in a label: leave out colons, brackets and commas")
    if inspect.isabstract(strategy):
        raise InputError(f"it lacks {', '.join(sorted(strategy.__abstractmethods__))}")
    for field, spec in strategy.parameters().items():
        if not isinstance(spec.metadata.get("bounds"), Bounds) or spec.default is dataclasses.MISSING:
            raise InputError(f"its field {field!r} has no default and bounds: declare it with param(…)")
    return strategy
