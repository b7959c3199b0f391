"""The space of configurations that an entry of a sweep file opens: its dimensions and their conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from math import prod

from hopbench.eval.sweep.candidate import BUILD, Build, Candidate
from hopbench.eval.sweep.dimension import Dimension, in_order, listed, refuse_idle
from hopbench.eval.sweep.entry import Entry
from hopbench.eval.sweep.model import SweepFile
from hopbench.eval.sweep.values import Range, Scalar
from hopbench.retrieval.graph.construction.plan import BuildSettings
from hopbench.retrieval.graph.schema import SIMILAR_TO
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.registry import changed_label, make
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError


@dataclass(frozen=True)
class Space:
    """All configurations that one entry of a sweep file allows."""

    entry: Entry
    content: SweepFile

    @cached_property
    def start(self) -> Strategy:
        """The strategy of the entry's label with its base values."""
        start = make(self.entry.strategy)
        return _made(type(start), {**start.spec(), **self.entry.base})

    @cached_property
    def dimensions(self) -> list[Dimension]:
        """What varies: those without a condition in the file's order, then those with one, then build settings."""
        real = _real(type(self.start))
        spans = {name: span.real() if name in real else span for name, span in self.entry.space.items()}
        varied: dict[str, Sequence[Scalar] | Range] = {**self.entry.grid, **spans}
        conditions = {name: {o: listed(v) for o, v in when.items()} for name, when in self.entry.when.items()}
        varying = [Dimension(name, values, conditions.get(name, {})) for name, values in varied.items()]
        settings = {name: values for name, values in self.content.build.model_dump().items() if values}
        return [
            *(dimension for dimension in varying if not dimension.when),
            *in_order([dimension for dimension in varying if dimension.when]),
            *(Dimension(BUILD + name, values) for name, values in settings.items()),
        ]

    def check(self) -> None:
        """Refuse parameters that are unknown, out of bounds, or named in two places."""
        kind, entry = type(make(self.entry.strategy)), self.entry
        for first, second in (("base", "grid"), ("base", "space"), ("grid", "space")):
            both = sorted(set(getattr(entry, first)) & set(getattr(entry, second)))
            if both:
                raise InputError(
                    f"{kind.name}: {', '.join(both)} stands in {first} and in {second}: leave it in one of them"
                )
        others = [other for when in entry.when.values() for other in when]
        for parameter in (*entry.base, *entry.grid, *entry.space, *entry.when, *others):
            if parameter not in kind.parameters():
                raise UnknownNameError(f"parameter of {kind.name}", parameter, kind.parameters())
        if fixed := sorted(set(entry.when) - set(entry.grid) - set(entry.space)):
            raise InputError(f"{kind.name}: when: {', '.join(fixed)} does not vary: list its values in grid or space")
        start_stays = self.content.search == "ofat"
        for dimension in self.dimensions:
            refuse_idle(dimension, self.dimensions, self.start, start_stays)
        for dimension in self.dimensions:
            for value in dimension.ends():
                self.candidate(_picker({**self._needed(dimension), dimension.name: value}))

    def short_ranges(self) -> list[str]:
        """Ranges that end below their `high`, since the step does not divide them."""
        return [
            f"{self.entry.strategy}: space.{name}: steps of {span.step} do not reach {span.high}: "
            f"values from {span.low} to {end} are tried"
            for name, span in self.entry.space.items()
            if abs(span.high - (end := span.ends()[1])) > 1e-9 * max(1.0, abs(span.high))
        ]

    def _needed(self, dimension: Dimension) -> dict[str, Scalar]:
        """The values that the others must have for it to vary, conditions of conditions included."""
        needed: dict[str, Scalar] = {}
        varied = {dimension.name: dimension for dimension in self.dimensions}
        for other, values in dimension.when.items():
            known = varied[other].ends() if other in varied else values
            needed |= {**self._needed(varied[other])} if other in varied else {}
            needed[other] = next((value for value in values if value in known), values[0])
        return needed

    def candidate(self, pick: Callable[[Dimension], Scalar]) -> Candidate:
        """The configuration that `pick` makes, asked only for dimensions that vary beside what it chose before."""
        chosen: dict[str, Scalar] = dict(self.start.spec())
        varied: dict[str, Scalar] = {}
        for dimension in self.dimensions:
            if dimension.active(chosen):
                chosen[dimension.name] = varied[dimension.name] = pick(dimension)
        own = {name: value for name, value in varied.items() if not name.startswith(BUILD)}
        strategy = _made(type(self.start), {**self.start.spec(), **own})
        label = changed_label(self.entry.strategy, {**self.entry.base, **own})
        build = self._usual_build
        settings = {n.removeprefix(BUILD): v for n, v in varied.items() if n.startswith(BUILD)}
        return _above_floor(Candidate(strategy, label, varied, build=build.changed(settings)))

    @property
    def combinations(self) -> int:
        """How many the grid has."""
        return prod(len(dimension.listed()) for dimension in self.dimensions)

    def grid(self) -> Iterator[Candidate]:
        """Every combination, in the order of the file; dimensions whose conditions fail have the start's value."""
        listed = [dimension.listed() for dimension in self.dimensions]
        for values in product(*listed):
            at = {dimension.name: value for dimension, value in zip(self.dimensions, values, strict=True)}
            yield self.candidate(_from(at))

    def builds(self) -> list[Build]:
        """Every combination of the build settings."""
        settings = [dimension for dimension in self.dimensions if dimension.name.startswith(BUILD)]
        names = [dimension.name.removeprefix(BUILD) for dimension in settings]
        combinations = product(*(dimension.listed() for dimension in settings))
        return [self._usual_build.changed(dict(zip(names, values, strict=True))) for values in combinations]

    def one_at_a_time(self) -> Iterator[Candidate]:
        """The start, then each value of each dimension beside the start's values of all others."""
        yield replace(self.candidate(self._usual), varied={})
        for dimension in self.dimensions:
            for value in dimension.listed():
                yield self._changed(dimension, value)

    def _changed(self, changed: Dimension, value: Scalar) -> Candidate:
        candidate = self.candidate(lambda dimension: value if dimension is changed else self._usual(dimension))
        shown = {name: v for name, v in candidate.varied.items() if name == changed.name}
        return replace(candidate, varied=shown)

    def _usual(self, dimension: Dimension) -> Scalar:
        """The start's value of a parameter, the default of a build setting."""
        name = dimension.name.removeprefix(BUILD)
        owner = self._usual_build if dimension.name.startswith(BUILD) else self.start
        value: Scalar = getattr(owner, name)
        return value

    @property
    def _usual_build(self) -> Build:
        return Build(self.content.embedder, self.content.extractor)


def _picker(wanted: Mapping[str, Scalar]) -> Callable[[Dimension], Scalar]:
    """Picks the wanted values, and of all other dimensions the first."""
    return lambda dimension: wanted.get(dimension.name, dimension.ends()[0])


def _from(values: Mapping[str, Scalar]) -> Callable[[Dimension], Scalar]:
    return lambda dimension: values[dimension.name]


def _made(kind: type[Strategy], parameters: Mapping[str, Scalar]) -> Strategy:
    """The strategy; a whole number for a real parameter counts as that real, so that 1 and 1.0 are one trial."""
    real = _real(kind)
    values = {n: float(v) if n in real and type(v) is int else v for n, v in parameters.items()}
    return kind(**values)  # type: ignore[arg-type] # the strategy checks its parameters itself


def _real(kind: type[Strategy]) -> set[str]:
    """The parameters that take real numbers."""
    return {spec.name for spec in fields(kind) if isinstance(spec.default, float)}


def _above_floor(candidate: Candidate) -> Candidate:
    """Refuse a threshold below the floor of the graph, which would promise edges that are never built."""
    floor = candidate.build.similar_floor
    floor = BuildSettings.similar_floor if floor is None else floor
    threshold = candidate.strategy.lowest_weights().get(SIMILAR_TO, floor)
    if threshold < floor:
        raise ParameterError(
            f"{candidate.strategy.name}.min_similarity = {threshold} is below the floor of the graph's SIMILAR_TO "
            f"edges, {floor}: raise it, or lower build.similar_floor"
        )
    return candidate
