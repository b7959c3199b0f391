"""Bounded parameters: the fields of strategies and rerankers, checked when one is made, and their aliases."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from hopbench.retrieval.support.errors import ParameterError, UnknownNameError


@dataclass(frozen=True)
class Bounds:
    """The values that a parameter may have: `low`..`high`, or one of `choices`; `aliases` are its other names."""

    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def describe(self) -> str:
        """The bounds in words, as the lists and the errors print them."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return "" if self.low is None else f"{self.low:g}..{self.high:g}"


def param(
    default: Any,
    help: str,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    aliases: Sequence[str] = (),
) -> Any:
    """A strategy's field with its description and bounds, and the names by which its source calls it."""
    return field(default=default, metadata={"bounds": Bounds(help, low, high, tuple(choices), tuple(aliases))})


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """A frozen dataclass whose fields are declared with `param`; values outside their bounds are refused."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            self._check(spec, getattr(self, spec.name))

    def _check(self, spec: dataclasses.Field[Any], value: object) -> None:
        bounds: Bounds = spec.metadata["bounds"]
        wanted = type(spec.default)
        fits = type(value) is wanted or (wanted is float and type(value) is int)
        if fits and bounds.choices:
            fits = value in bounds.choices
        elif fits and bounds.low is not None and bounds.high is not None:
            fits = bounds.low <= value <= bounds.high  # type: ignore[operator]
        if not fits:
            limits = bounds.describe() or f"a {wanted.__name__}"
            raise ParameterError(f"{self.name}.{spec.name} = {value!r} is not allowed: it takes {limits}")

    @classmethod
    def parameters(cls) -> Mapping[str, dataclasses.Field[Any]]:
        """The fields by name, in order of definition."""
        return {spec.name: spec for spec in dataclasses.fields(cls)}

    def spec(self) -> dict[str, Any]:
        """All parameters with their values: enough to make the same object again."""
        return dataclasses.asdict(self)


T = TypeVar("T")


def aliases(strategy: type[Parameters]) -> dict[str, str]:
    """Alias → field, in the order of the fields."""
    return dict(_aliases(strategy))


def _aliases(strategy: type[Parameters]) -> Iterator[tuple[str, str]]:
    taken = dict.fromkeys(strategy.parameters(), "")
    for name, spec in strategy.parameters().items():
        bounds: Bounds = spec.metadata["bounds"]
        for alias in bounds.aliases:
            if alias in taken:
                other = taken[alias] or alias
                raise ParameterError(f"{strategy.name}: {alias!r} names {other} and {name}: an alias names one field")
            taken[alias] = name
            yield alias, name


def field_named(strategy: type[Parameters], name: str) -> str:
    """The field that `name` means: its own name or an alias. Raises UnknownNameError for any other."""
    known = strategy.parameters()
    other = aliases(strategy)
    if name not in known and name not in other:
        raise UnknownNameError(f"parameter of {strategy.name}", name, known, also=other)
    return other.get(name, name)


def by_field(strategy: type[Parameters], values: Mapping[str, T]) -> dict[str, T]:
    """Values by name or alias as values by field; an unknown name stays, for its user to refuse.

    Raises ParameterError where two names mean one field.
    """
    fields = aliases(strategy)
    by_name: dict[str, T] = {}
    written: dict[str, str] = {}
    for name, value in values.items():
        field = fields.get(name, name)
        if field in written:
            raise ParameterError(f"{strategy.name}: {written[field]} and {name} are one parameter: leave one of them")
        by_name[field], written[field] = value, name
    return by_name
