"""A dimension of a sweep's space, and the conditions under which it varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hopbench.eval.sweep.values import Range, Scalar
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError


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
        """Whether it varies beside these values."""
        return all(chosen.get(other) in values for other, values in self.when.items())


def refuse_idle(dimension: Dimension, others: Sequence[Dimension], start: Strategy, fixed: bool) -> None:
    """Raise InputError for values that could never be tried: fractions of whole numbers, conditions that nothing meets.

    `fixed`: while it varies, the others have their start values.
    """
    usual, span = start.spec(), dimension.values
    if isinstance(span, Range) and type(usual.get(dimension.name)) is int and not span.whole:
        raise InputError(f"{start.name}: space.{dimension.name} takes whole numbers: write low, high and step as such")
    varied = {} if fixed else {other_dimension.name: other_dimension.values for other_dimension in others}
    for other, wanted in dimension.when.items():
        among = varied.get(other, [usual[other]])
        if not any(_holds(among, value) for value in wanted):
            present = f"{among.low} to {among.high}" if isinstance(among, Range) else _shown(among)
            how = "one factor at a time keeps it" if fixed else "it is"
            wish = _shown(wanted)
            raise InputError(
                f"{start.name}: when: {dimension.name} varies only where {other} is {wish}, and {how} {present}: "
                f"correct the condition, or let {other} have that value"
            )


def _holds(among: Sequence[Scalar] | Range, value: Scalar) -> bool:
    if isinstance(among, Range):
        return not isinstance(value, str) and among.low <= value <= among.high
    return value in among


def _shown(values: Sequence[Scalar]) -> str:
    return " or ".join(str(value) for value in values) or "nothing"


def listed(values: Sequence[Scalar] | Scalar) -> list[Scalar]:
    """The values of a condition, which may be one alone."""
    return list(values) if isinstance(values, list) else [values]  # type: ignore[list-item]


def in_order(conditional: Sequence[Dimension]) -> list[Dimension]:
    """Each after those that its condition names."""
    left, ordered = list(conditional), list[Dimension]()
    while left:
        names = {dimension.name for dimension in left}
        ready = [dimension for dimension in left if not names & set(dimension.when)]
        if not ready:
            raise InputError(f"when: {', '.join(sorted(names))} depend on each other: break the circle")
        ordered += ready
        left = [dimension for dimension in left if dimension not in ready]
    return ordered
