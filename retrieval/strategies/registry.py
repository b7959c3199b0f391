"""Strategies by name, their presets, and the labels by which runs speak of them.

A label is `NAME` (the documented preset: the source's defaults), `NAME:tuned` (the preset file beside this module), or
either with `[field=value,…]`. `pagerank` and `hoprank` have no source defaults: their plain label is the tuned preset.
`all` stands for every plain label, `all:tuned` for the strategies that have a second preset.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import Any

from hopbench.retrieval.strategies import names
from hopbench.retrieval.strategies.activation.strategy import Activation
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.strategies.baselines import BM25, Hybrid, Vector
from hopbench.retrieval.strategies.dual_level.strategy import DualLevel
from hopbench.retrieval.strategies.entity_expansion.strategy import EntityExpansion
from hopbench.retrieval.strategies.expansion_queries.strategy import ExpansionQueries
from hopbench.retrieval.strategies.graph_expansion.strategy import GraphExpansion
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.kg2rag.strategy import KG2RAG
from hopbench.retrieval.strategies.naming import aliases, by_field, field_named
from hopbench.retrieval.strategies.neighborhood import Neighborhood
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.strategies.plugins.code import PluginCode, plugin_code
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError
from hopbench.retrieval.support.yaml_file import YamlError, parse_yaml

BUILT_IN: tuple[type[Strategy], ...] = (
    Vector,
    BM25,
    Hybrid,
    GraphExpansion,
    ExpansionQueries,
    Activation,
    EntityExpansion,
    Neighborhood,
    DualLevel,
    KG2RAG,
    PageRank,
    HopRank,
)
WITHOUT_SOURCE = names.WITHOUT_SOURCE
BASELINES = ("vector", "bm25", "hybrid")
_LABEL = re.compile(r"^(?P<name>[^:\[\]]+)(?::(?P<preset>[^\[\]]+))?(?:\[(?P<changes>[^\[\]]*)\])?$")


@dataclass(frozen=True)
class Preset:
    """Tuned parameters and how they were found (data digests, trials, objective, sweep file)."""

    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]


class Registry:
    """Strategies by name; a second one of the same name is refused.

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
        """Add what an installed package offers, or keep in `broken` why it cannot be used."""
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
        """The code of the plug-in that offers a name; nothing for our own names, and for unknown ones."""
        return self.code_of(self._strategies[name]) if name in self._strategies else ()


def _usable(strategy: object) -> type[Strategy]:
    """Refuse what `hopbench.strategies` cannot be."""
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise InputError("it is no Strategy class")
    for attribute in ("name", "summary"):
        if not isinstance(getattr(strategy, attribute, None), str):
            raise InputError(f"it has no `{attribute}`, which is text")
    match = _LABEL.match(strategy.name)
    if match is None or match["name"] != strategy.name or "," in strategy.name or strategy.name == "all":
        raise InputError(f"its name {strategy.name!r} cannot stand in a label: leave out colons, brackets and commas")
    if inspect.isabstract(strategy):
        raise InputError(f"it lacks {', '.join(sorted(strategy.__abstractmethods__))}")
    for field, spec in strategy.parameters().items():
        if not isinstance(spec.metadata.get("bounds"), Bounds) or spec.default is dataclasses.MISSING:
            raise InputError(f"its field {field!r} has no default and bounds: declare it with param(…)")
    return strategy


@cache
def registry() -> Registry:
    """The built-in strategies and those that installed packages offer under the entry point `hopbench.strategies`."""
    found = Registry(BUILT_IN)
    for point in entry_points(group=names.GROUP):
        found.load(point)
    return found


def preset(name: str) -> Preset | None:
    """The tuned preset of a strategy, if it has one."""
    file = files("hopbench.retrieval.strategies") / "presets" / f"{name}.yaml"
    if not file.is_file():
        return None
    content = parse_yaml(file.read_text(encoding="utf-8"), f"preset {name}")
    return Preset(content["parameters"], content["provenance"])


def make(label: str) -> Strategy:
    """The strategy that a label names, its parameters checked."""
    match = _LABEL.match(label)
    if match is None:
        raise InputError(f"{label!r} is no strategy label: write NAME, NAME:tuned or NAME[field=value,…]")
    name, chosen = match["name"], match["preset"]
    strategy = registry().get(name)
    parameters: dict[str, Any] = {}
    if chosen is not None or name in WITHOUT_SOURCE:
        parameters.update(_preset_parameters(name, chosen or "tuned"))
    parameters.update(_changes(strategy, match["changes"] or ""))
    for field in parameters:
        field_named(strategy, field)  # also a preset's are checked
    return strategy(**parameters)


def parts_of(label: str) -> tuple[str, str | None, Mapping[str, str]]:
    """Name, preset and changes of a label as they are written; a label of another form is all name."""
    match = _LABEL.match(label)
    if match is None:
        return label, None, {}
    return match["name"], match["preset"], _written(match["changes"] or "")


def _preset_parameters(name: str, chosen: str) -> Mapping[str, Any]:
    if chosen == "documented" and name not in WITHOUT_SOURCE:
        return {}
    found = preset(name)
    if chosen != "tuned" or (found is None and name not in WITHOUT_SOURCE):
        having = "tuned" if name in WITHOUT_SOURCE else "documented, tuned" if found else "documented"
        raise InputError(f"strategy {name!r} has no preset {chosen!r}; it has: {having}")
    return found.parameters if found else {}


def _changes(strategy: type[Strategy], text: str) -> dict[str, Any]:
    values = by_field(strategy, _written(text))
    return {name: parse_value(strategy, name, value) for name, value in values.items()}


def _written(changes: str) -> dict[str, str]:
    """The changes of a label as they stand there: "a=1,b=2" is {"a": "1", "b": "2"}."""
    pairs = (part.partition("=") for part in changes.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_value(strategy: type[Strategy], name: str, text: str) -> Any:
    """A parameter's value from the command line, by the type of its default."""
    default = strategy.parameters()[field_named(strategy, name)].default
    if isinstance(default, str):
        return text
    try:
        value = parse_yaml(text, name) if text else text
    except YamlError:
        return text  # the bounds refuse it, naming the field
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, float) and isinstance(value, str):  # YAML reads .5 as a number, but 1e-3 as text
        try:
            return float(value)
        except ValueError:
            return value
    return value


def label_of(name: str, preset_name: str | None, changes: Mapping[str, str]) -> str:
    """The label of a strategy with changed parameters."""
    listed = ",".join(f"{field}={value}" for field, value in changes.items())
    return name + (f":{preset_name}" if preset_name else "") + (f"[{listed}]" if listed else "")


def resolve(selection: str, changes: Sequence[str] = ()) -> dict[str, Strategy]:
    """Labels and strategies for `--strategies` (comma-separated, `all`, `all:tuned`) with `--set strategy.field=value`.

    A change applies to every selected label of its strategy, and the label shows it.
    """
    by_strategy: dict[str, dict[str, str]] = {}
    for change in changes:
        target, equals, value = change.partition("=")
        name, dot, field = target.partition(".")
        if not equals or not dot:
            raise InputError(
                f"--set {change!r} cannot be read: write strategy.field=value, such as pagerank.restart=0.3"
            )
        by_strategy.setdefault(name, {})[field_named(registry().get(name), field.strip())] = value
    chosen: dict[str, Strategy] = {}
    for selected in _expand(selection):
        label = _with_changes(selected, by_strategy)
        chosen[label] = make(label)
    unused = [name for name in by_strategy if not any(strategy.name == name for strategy in chosen.values())]
    if unused:
        raise InputError(f"--set names {', '.join(unused)}, which --strategies {selection!r} does not select")
    return chosen


def changed_label(label: str, changes: Mapping[str, object]) -> str:
    """The label of the same strategy with changed parameters, those it names already among them."""
    return _with_changes(label, {label.partition("[")[0].partition(":")[0]: {n: str(v) for n, v in changes.items()}})


def canonical_label(label: str) -> str:
    """The label with the fields' own names in place of aliases; any other label as it is, also one of no strategy."""
    match = _LABEL.match(label)
    if match is None or not match["changes"] or match["name"] not in registry().names():
        return label
    strategy, own = registry().get(match["name"]), _written(match["changes"])
    if aliases(strategy).keys().isdisjoint(own):
        return label
    return label_of(match["name"], match["preset"], by_field(strategy, own))


def _with_changes(label: str, by_strategy: Mapping[str, Mapping[str, str]]) -> str:
    label = canonical_label(label)
    match = _LABEL.match(label)
    if match is None or match["name"] not in by_strategy:
        return label
    own = {**_written(match["changes"] or ""), **by_strategy[match["name"]]}
    return label_of(match["name"], match["preset"], own)


def _expand(selection: str) -> list[str]:
    labels: list[str] = []
    for part in re.split(r",(?![^\[]*\])", selection):
        entry = part.strip()
        if entry == "all":
            labels += registry().names()
        elif entry == "all:tuned":
            labels += [f"{name}:tuned" for name in registry().names() if name not in WITHOUT_SOURCE and preset(name)]
        elif entry:
            labels.append(entry)
    if not labels:
        raise InputError(f"--strategies {selection!r} selects nothing; known: {', '.join(registry().names())}")
    return list(dict.fromkeys(labels))


def defaults(strategy: type[Strategy]) -> dict[str, Any]:
    """The documented parameters of a strategy."""
    return {
        name: spec.default for name, spec in strategy.parameters().items() if spec.default is not dataclasses.MISSING
    }
