"""Registry of strategies: by label, with their presets and changed parameters (`label` says how labels are written)."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypedDict

from hopbench.retrieval.fitted import FittedOn, sets_of
from hopbench.retrieval.plugins.registry import STRATEGIES, Registry
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.label import BUILT_IN, TUNED, WITHOUT_SOURCE, Label, split_labels
from hopbench.retrieval.strategies.parameters import Parameters, aliases, by_field, checked, field_named
from hopbench.retrieval.strategies.reranker import PREFIX, Reranked, rerankers
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import YamlError, parse_yaml

BY_HAND = "set by hand"
REMEDY = "write it as `hopbench sweep` does, with `parameters` and `provenance.tuned_on`"


@dataclass(frozen=True)
class Preset:
    """Tuned parameters and how they were found (data digests, trials, objective, sweep file)."""

    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]


def preset_of(strategy: type[Strategy]) -> Preset | None:
    """The tuned preset that travels with a strategy, if there is one.

    Raises InputError for a file that states no parameters, or not on what they were tuned: a tuned label must know the
    questions that chose its numbers.
    """
    package = strategy.__module__.rpartition(".")[0]
    if package.startswith("hopbench.retrieval.strategies"):
        package = "hopbench.retrieval.strategies"
    elif package not in sys.modules:  # a module of no package has no folder of its own
        return None
    file = files(package) / "presets" / f"{strategy.name}.yaml"
    if not file.is_file():
        return None
    what = f"preset {file.name} of {strategy.name}"
    content = parse_yaml(file.read_text(encoding="utf-8"), what)
    stated = content if isinstance(content, dict) else {}
    parameters, provenance = stated.get("parameters"), stated.get("provenance")
    if not isinstance(parameters, dict) or not isinstance(provenance, dict):
        raise InputError(f"{what} lacks parameters or provenance: {REMEDY}")
    if not isinstance(provenance.get("tuned_on"), dict) or not provenance["tuned_on"]:
        raise InputError(f"{what} does not say on which data sets it was tuned: {REMEDY}")
    for name in parameters:
        field_named(strategy, name)
    return Preset(parameters, provenance)


@cache
def registry() -> Registry[type[Strategy]]:
    """The built-in strategies and those that installed packages offer under the entry point `hopbench.strategies`."""

    def usable(name: str, offered: object) -> type[Strategy]:
        strategy = checked(Strategy, name, offered)  # type: ignore[type-abstract]
        preset_of(strategy)  # refuses one that cannot be used
        return strategy

    return Registry("strategy", STRATEGIES, BUILT_IN, usable)


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
    if not parts.reranker:
        return made
    kind = rerankers().get(parts.reranker)
    second = by_field(kind, parts.reranker_changes)
    reranker = kind(**{name: parse_value(kind, name, value) for name, value in second.items()})
    return Reranked(base=made, reranker=reranker)


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
    if isinstance(default, float) and isinstance(value, int | str) and not isinstance(value, bool):
        with suppress(ValueError):  # YAML reads .5 as a number, but 1e-3 as text
            return float(value)
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
    selected_labels: list[str] = []
    for entry in split_labels(selection):
        if entry == "all":
            selected_labels += registry().names()
        elif entry == f"all:{TUNED}":
            tunable = (name for name in registry().names() if name not in WITHOUT_SOURCE and preset(name))
            selected_labels += [str(Label(name, TUNED)) for name in tunable]
        else:
            selected_labels.append(entry)
    if not selected_labels:
        raise InputError(f"--strategies {selection!r} selects nothing; known: {', '.join(registry().names())}")
    chosen: dict[str, Strategy] = {}
    for selected in dict.fromkeys(selected_labels):
        given = by_strategy.get(Label.of_any(selected).name)
        label = changed_label(selected, given) if given else canonical_label(selected)
        chosen[label] = make(label)
    unused = [name for name in by_strategy if not any(Label.of_any(label).name == name for label in chosen)]
    if unused:
        raise InputError(f"--set names {', '.join(unused)}, which --strategies {selection!r} does not select")
    return chosen


def changed_label(label: str, changes: Mapping[str, object]) -> str:
    """The label of the same strategy with changed parameters, those it names already among them."""
    parts = Label.of_any(canonical_label(label))
    written = {name: str(value) for name, value in changes.items()}
    return str(dataclasses.replace(parts, changes={**parts.changes, **written}))


def canonical_label(label: str) -> str:
    """The label with the fields' own names in place of aliases; any other text unchanged."""
    parts = Label.of_any(label)
    if not parts.changes or parts.name not in registry().names():
        return label
    strategy = registry().get(parts.name)
    if aliases(strategy).keys().isdisjoint(parts.changes):
        return label
    return str(dataclasses.replace(parts, changes=by_field(strategy, parts.changes)))


def defaults(strategy: type[Strategy]) -> dict[str, Any]:
    """The documented parameters of a strategy."""
    return {
        name: spec.default for name, spec in strategy.parameters().items() if spec.default is not dataclasses.MISSING
    }


class InSample(TypedDict):
    """The sets on which a label was tuned or learned that share questions with a benchmark, and how many they share."""

    sets: Sequence[str]
    questions: int


@dataclass(frozen=True)
class LabelKind:
    """`kind` in a word or two, and the sets on which the label's numbers were tuned or from which they were learned."""

    kind: str
    fitted_on: tuple[FittedOn, ...] = ()

    def in_sample(self, digest: str, questions: Collection[str]) -> InSample | None:
        """Which of those sets a benchmark is, or shares questions with; None where it has nothing in common with them.

        `questions` are the hashes of the benchmark's questions.
        """
        whole = {one.name for one in self.fitted_on if one.digest == digest}
        shared = {one.name: one.questions & set(questions) for one in self.fitted_on}
        named = sorted(whole | {name for name, common in shared.items() if common})
        if not named:
            return None
        return {"sets": named, "questions": len(questions) if whole else len(frozenset().union(*shared.values()))}


def kind_of(label: str, strategy: Strategy, tuned_on: Sequence[FittedOn] = ()) -> LabelKind:
    """The kind of a label; `tuned_on` are the sets on which its changes were tuned, as a sweep's best.yaml lists them.

    Changes make a label one that was set by hand, except those of fields that name learned numbers. What its other
    numbers were fitted on stays known.
    """
    if strategy.foreign:  # its label is the user's own, and says nothing of presets
        return LabelKind(strategy.kind, tuple(strategy.fitted_on()))
    parts = Label.of_any(label)
    kind, sets = strategy.kind, list(strategy.fitted_on())
    tuned = preset(parts.name) if parts.is_tuned else None
    if tuned is not None:
        kind = TUNED
        sets += sets_of(tuned.provenance["tuned_on"])
    if parts.reranker_changes or set(parts.changes) - set(strategy.fitted_fields):
        kind = TUNED if tuned_on else BY_HAND
        sets += tuned_on
    return LabelKind(kind, tuple(dict.fromkeys(sets)))
