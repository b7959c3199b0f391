"""The space of configurations that an entry of a sweep file opens: dimensions, their conditions, candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from math import prod

from hopbench.eval.sweep.fields import Entry, Range, Scalar
from hopbench.eval.sweep.file import SweepFile
from hopbench.retrieval.graph.construction.plan import BuildSettings, build_numbers
from hopbench.retrieval.graph.schema import SIMILAR_TO
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.registry import changed_label, make
from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError

BUILD = "build."


@dataclass(frozen=True)
class Build:
    """The build settings of the graph that a configuration is tried on; None is the builder's default."""

    embedder: str = "wordllama"
    extractor: str = "rules"
    similar_top_k: int | None = None
    similar_floor: float | None = None
    max_tokens: int | None = None

    def settings(self) -> dict[str, int | float]:
        """The settings that differ from the builder's defaults."""
        return {name: value for name in build_numbers() if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        parts = [self.embedder, self.extractor, *(f"{name}={value}" for name, value in self.settings().items())]
        return ", ".join(parts)


@dataclass(frozen=True)
class Candidate:
    """A configuration to try on every data set.

    `label` is what `run` makes the same strategy from. An ablation names the strategy it changes, `of`, and the edge
    types that it is `without`. `varied` are the values that the search gave it, those of build
    settings under `build.NAME`.
    """

    strategy: Strategy
    label: str
    varied: Mapping[str, Scalar] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    of: Strategy | None = None
    build: Build = Build()

    @property
    def key(self) -> tuple[Strategy, Build]:
        """A key that is equal for equal configurations."""
        return self.strategy, self.build

    @property
    def title(self) -> str:
        """Its label, with what an ablation removes and the build settings that vary."""
        build = [f"{name}={value}" for name, value in self.varied.items() if name.startswith(BUILD)]
        return " without ".join([" ".join([self.label, *build]), *self.without])


@dataclass(frozen=True)
class Dimension:
    """A parameter (or `build.` setting) that varies, and the values of others under which it does."""

    name: str
    values: Sequence[Scalar] | Range
    when: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)

    def listed(self) -> Sequence[Scalar]:
        """All values. Raises InputError for a range without a step."""
        listed = self.values.values() if isinstance(self.values, Range) else self.values
        if not listed:
            raise InputError(f"space.{self.name}: a range without step has no list of values: give it a step")
        return listed

    def ends(self) -> Sequence[Scalar]:
        """The values by which the bounds of the whole dimension can be checked."""
        return self.values.ends() if isinstance(self.values, Range) else self.values

    def active(self, chosen: Mapping[str, Scalar]) -> bool:
        """Whether it varies, given these values of the other dimensions."""
        return all(chosen.get(other) in values for other, values in self.when.items())


def in_order(conditional: Sequence[Dimension]) -> list[Dimension]:
    """Sort dimensions so that each comes after those that its condition names."""
    left, ordered = list(conditional), list[Dimension]()
    while left:
        names = {dimension.name for dimension in left}
        ready = [dimension for dimension in left if not names & set(dimension.when)]
        if not ready:
            raise InputError(f"when: {', '.join(sorted(names))} depend on each other: break the circle")
        ordered += ready
        left = [dimension for dimension in left if dimension not in ready]
    return ordered


@dataclass(frozen=True)
class Space:
    """The configurations that one entry of a sweep file allows."""

    entry: Entry
    content: SweepFile

    @cached_property
    def start(self) -> Strategy:
        """The strategy of the entry's label with its base values."""
        start = make(self.entry.strategy)
        return _made(type(start), {**start.spec(), **self.entry.base})

    @cached_property
    def dimensions(self) -> list[Dimension]:
        """The dimensions: unconditional ones in the file's order, then conditional ones, then build settings."""
        real = _real(type(self.start))
        spans = {name: span.real() if name in real else span for name, span in self.entry.space.items()}
        varied: dict[str, Sequence[Scalar] | Range] = {**self.entry.grid, **spans}
        varying = []
        for name, values in varied.items():
            when = self.entry.when.get(name, {}).items()
            conditions = {other: wanted if isinstance(wanted, list) else [wanted] for other, wanted in when}
            varying.append(Dimension(name, values, conditions))
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
        for dimension in self.dimensions:
            self._refuse_idle(dimension)
        for dimension in self.dimensions:
            for value in dimension.ends():
                wanted = {**self._needed(dimension), dimension.name: value}
                self.candidate(lambda one: wanted.get(one.name, one.ends()[0]))  # noqa: B023

    def _refuse_idle(self, dimension: Dimension) -> None:
        """Raise InputError for values that could never be tried: fractions of integers, conditions that never hold."""
        start, span, fixed = self.start, dimension.values, self.content.search == "ofat"
        usual = start.spec()
        if isinstance(span, Range) and type(usual.get(dimension.name)) is int and not span.whole:
            raise InputError(
                f"{start.name}: space.{dimension.name} takes whole numbers: write low, high and step as such"
            )
        varied = {} if fixed else {one.name: one.values for one in self.dimensions}
        for other, wanted in dimension.when.items():
            among = varied.get(other, [usual[other]])
            if isinstance(among, Range):
                holds = any(not isinstance(value, str) and among.low <= value <= among.high for value in wanted)
                present = f"{among.low} to {among.high}"
            else:
                holds, present = any(value in among for value in wanted), " or ".join(map(str, among))
            if not holds:
                how = "one factor at a time keeps it" if fixed else "it is"
                wish = " or ".join(map(str, wanted)) or "nothing"
                raise InputError(
                    f"{start.name}: when: {dimension.name} varies only where {other} is {wish}, and {how} {present}: "
                    f"correct the condition, or let {other} have that value"
                )

    def short_ranges(self) -> list[str]:
        """Warn of ranges that end below their `high` because the step does not divide them."""
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
        """Make the configuration that `pick` chooses, dimension by dimension; it is called only for those that vary."""
        chosen: dict[str, Scalar] = dict(self.start.spec())
        varied: dict[str, Scalar] = {}
        for dimension in self.dimensions:
            if dimension.active(chosen):
                chosen[dimension.name] = varied[dimension.name] = pick(dimension)
        own = {name: value for name, value in varied.items() if not name.startswith(BUILD)}
        settings = {n.removeprefix(BUILD): v for n, v in varied.items() if n.startswith(BUILD)}
        strategy = _made(type(self.start), {**self.start.spec(), **own})
        build = replace(self._usual_build, **settings)  # type: ignore[arg-type] # the sweep file's schema checked them
        floor = BuildSettings.similar_floor if build.similar_floor is None else build.similar_floor
        threshold = strategy.lowest_weights().get(SIMILAR_TO, floor)
        if threshold < floor:  # it would promise edges that are never built
            raise ParameterError(
                f"{strategy.name}.min_similarity = {threshold} is below the floor of the graph's SIMILAR_TO "
                f"edges, {floor}: raise it, or lower build.similar_floor"
            )
        label = changed_label(self.entry.strategy, {**self.entry.base, **own})
        return Candidate(strategy, label, varied, build=build)

    @property
    def combinations(self) -> int:
        """The number of combinations in the grid."""
        return prod(len(dimension.listed()) for dimension in self.dimensions)

    def grid(self) -> Iterator[Candidate]:
        """List every combination in the file's order; dimensions whose conditions fail keep the start's value."""
        for values in product(*(dimension.listed() for dimension in self.dimensions)):
            at = {dimension.name: value for dimension, value in zip(self.dimensions, values, strict=True)}
            yield self.candidate(lambda dimension: at[dimension.name])  # noqa: B023 - called at once

    def builds(self) -> list[Build]:
        """List every combination of the build settings."""
        settings = [dimension for dimension in self.dimensions if dimension.name.startswith(BUILD)]
        names = [dimension.name.removeprefix(BUILD) for dimension in settings]
        combinations = product(*(dimension.listed() for dimension in settings))
        return [replace(self._usual_build, **dict(zip(names, values, strict=True))) for values in combinations]  # type: ignore[arg-type]

    def one_at_a_time(self) -> Iterator[Candidate]:
        """List the start, then each value of each dimension with the start's values of all others."""

        def usual(dimension: Dimension) -> Scalar:
            owner = self._usual_build if dimension.name.startswith(BUILD) else self.start
            value: Scalar = getattr(owner, dimension.name.removeprefix(BUILD))
            return value

        yield replace(self.candidate(usual), varied={})
        for changed in self.dimensions:
            for value in changed.listed():
                candidate = self.candidate(lambda one: value if one is changed else usual(one))  # noqa: B023
                shown = {name: v for name, v in candidate.varied.items() if name == changed.name}
                yield replace(candidate, varied=shown)

    @property
    def _usual_build(self) -> Build:
        return Build(self.content.embedder, self.content.extractor)


def _made(kind: type[Strategy], parameters: Mapping[str, Scalar]) -> Strategy:
    """Make the strategy; whole numbers for real parameters become floats, so that 1 and 1.0 are one trial."""
    real = _real(kind)
    values = {n: float(v) if n in real and type(v) is int else v for n, v in parameters.items()}
    return kind(**values)  # type: ignore[arg-type] # the strategy checks its parameters itself


def _real(kind: type[Strategy]) -> set[str]:
    """List the parameters that take real numbers."""
    return {spec.name for spec in fields(kind) if isinstance(spec.default, float)}
