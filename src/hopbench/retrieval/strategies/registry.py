"""Strategies by label, with their presets and changed parameters (`label` says how a label is written).

`all` selects every plain label, `all:tuned` the strategies that have a second preset.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.catalogue import registry
from hopbench.retrieval.strategies.label import TUNED, WITHOUT_SOURCE, Label, split_labels
from hopbench.retrieval.strategies.naming import aliases, by_field, field_named
from hopbench.retrieval.strategies.parameters import Parameters
from hopbench.retrieval.strategies.preset import Preset, preset_of
from hopbench.retrieval.strategies.reranked import PREFIX, Reranked
from hopbench.retrieval.strategies.reranker import Reranker, rerankers
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import YamlError, parse_yaml

__all__ = ["Preset", "canonical_label", "changed_label", "defaults", "make", "preset", "registry", "remade", "resolve"]


def preset(name: str) -> Preset | None:
    """The tuned preset of a strategy, if it has one; none for an unknown name."""
    return preset_of(registry().get(name)) if name in registry().names() else None


def make(label: str) -> Strategy:
    """The strategy that a label names, its parameters checked."""
    parts = Label.parse(label)
    strategy = registry().get(parts.name)
    parameters: dict[str, Any] = {}
    if parts.preset is not None or parts.is_tuned:
        parameters.update(_preset_parameters(parts.name, parts.preset or TUNED))
    changes = by_field(strategy, parts.changes)
    parameters.update({name: parse_value(strategy, name, value) for name, value in changes.items()})
    for field in parameters:
        field_named(strategy, field)  # also a preset's are checked
    made = strategy(**parameters)
    return Reranked(base=made, reranker=_reranker(parts)) if parts.reranker else made


def _reranker(parts: Label) -> Reranker:
    kind = rerankers().get(parts.reranker)
    changes = by_field(kind, parts.reranker_changes)
    return kind(**{name: parse_value(kind, name, value) for name, value in changes.items()})


def remade(stages: str, spec: Mapping[str, Any]) -> Strategy:
    """The strategy of a `spec` again, `stages` being its name (`hoprank`, `hoprank+mine`); unknown parameters raise."""
    parts = Label.of_any(stages)
    mine = f"{PREFIX}."
    own = {name: value for name, value in spec.items() if name != PREFIX and not name.startswith(mine)}
    strategy = registry().get(parts.name)
    for name in own:
        field_named(strategy, name)
    made = strategy(**own)
    if not parts.reranker:
        return made
    second = {name.removeprefix(mine): value for name, value in spec.items() if name.startswith(mine)}
    return Reranked(base=made, reranker=rerankers().get(parts.reranker)(**second))


def _preset_parameters(name: str, chosen: str) -> Mapping[str, Any]:
    if chosen == "documented" and name not in WITHOUT_SOURCE:
        return {}
    tuned = preset(name)
    if chosen != TUNED or (tuned is None and name not in WITHOUT_SOURCE):
        having = "tuned" if name in WITHOUT_SOURCE else "documented, tuned" if tuned else "documented"
        raise InputError(f"strategy {name!r} has no preset {chosen!r}; it has: {having}")
    return tuned.parameters if tuned else {}


def parse_value(strategy: type[Parameters], name: str, text: str) -> Any:
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
    unused = [name for name in by_strategy if not any(Label.of_any(label).name == name for label in chosen)]
    if unused:
        raise InputError(f"--set names {', '.join(unused)}, which --strategies {selection!r} does not select")
    return chosen


def changed_label(label: str, changes: Mapping[str, object]) -> str:
    """The label of the same strategy with changed parameters, those it names already among them."""
    return _with_changes(label, {Label.of_any(label).name: {name: str(value) for name, value in changes.items()}})


def canonical_label(label: str) -> str:
    """The label with the fields' own names in place of aliases; any other text unchanged."""
    parts = Label.of_any(label)
    if not parts.changes or parts.name not in registry().names():
        return label
    strategy = registry().get(parts.name)
    if aliases(strategy).keys().isdisjoint(parts.changes):
        return label
    return str(dataclasses.replace(parts, changes=by_field(strategy, parts.changes)))


def _with_changes(label: str, by_strategy: Mapping[str, Mapping[str, str]]) -> str:
    label = canonical_label(label)
    parts = Label.of_any(label)
    if parts.name not in by_strategy:
        return label
    return str(parts.with_changes(by_strategy[parts.name]))


def _expand(selection: str) -> list[str]:
    labels: list[str] = []
    for entry in split_labels(selection):
        if entry == "all":
            labels += registry().names()
        elif entry == f"all:{TUNED}":
            tunable = (name for name in registry().names() if name not in WITHOUT_SOURCE and preset(name))
            labels += [str(Label(name, TUNED)) for name in tunable]
        else:
            labels.append(entry)
    if not labels:
        raise InputError(f"--strategies {selection!r} selects nothing; known: {', '.join(registry().names())}")
    return list(dict.fromkeys(labels))


def defaults(strategy: type[Strategy]) -> dict[str, Any]:
    """The documented parameters of a strategy."""
    return {
        name: spec.default for name, spec in strategy.parameters().items() if spec.default is not dataclasses.MISSING
    }
