"""Bounded parameters: the fields of strategies and rerankers, checked when one is made, and their aliases."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from hopbench.retrieval.support.errors import InputError, ParameterError, UnknownNameError

_NAME = re.compile(r"[^:,+\[\]]+")  # what can stand in a label as its name


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
        for name, spec in self.parameters().items():
            bounds, value, wanted = spec.metadata["bounds"], getattr(self, name), type(spec.default)
            fits = type(value) is wanted or (wanted is float and type(value) is int)
            if fits and bounds.choices:
                fits = value in bounds.choices
            elif fits and bounds.low is not None and bounds.high is not None:
                fits = bounds.low <= value <= bounds.high
            if not fits:
                limits = bounds.describe() or f"a {wanted.__name__}"
                raise ParameterError(f"{self.name}.{name} = {value!r} is not allowed: it takes {limits}")

    @classmethod
    def parameters(cls) -> Mapping[str, dataclasses.Field[Any]]:
        """The fields by name, in order of definition."""
        return {spec.name: spec for spec in dataclasses.fields(cls)}

    def spec(self) -> dict[str, Any]:
        """All parameters with their values: enough to make the same object again."""
        return dataclasses.asdict(self)


T = TypeVar("T")
K = TypeVar("K", bound=Parameters)


def aliases(strategy: type[Parameters]) -> dict[str, str]:
    """Alias → field, in the order of the fields. Raises ParameterError where an alias names two."""
    named: dict[str, str] = {}
    for name, spec in strategy.parameters().items():
        for alias in spec.metadata["bounds"].aliases:
            if alias in named or alias in strategy.parameters():
                other = named.get(alias, alias)
                raise ParameterError(f"{strategy.name}: {alias!r} names {other} and {name}: an alias names one field")
            named[alias] = name
    return named


def field_named(strategy: type[Parameters], name: str) -> str:
    """The field that `name` means: its own name or an alias. Raises UnknownNameError for any other."""
    known, other = strategy.parameters(), aliases(strategy)
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


def checked(kind: type[K], name: str, offered: object) -> type[K]:
    """Refuse what cannot be a strategy or reranker of this name: another type, or a class without summary or bounds."""
    if not (isinstance(offered, type) and issubclass(offered, kind)):
        raise InputError(f"it is no {kind.__name__} class")
    for attribute in ("name", "summary"):
        if not isinstance(getattr(offered, attribute, None), str):
            raise InputError(f"it has no `{attribute}`, which is text")
    if not _NAME.fullmatch(offered.name) or offered.name == "all":
        raise InputError(f"its name {offered.name!r} cannot stand in a label: leave out : , + [ and ]")
    if offered.name != name:
        raise InputError(f"it is named {offered.name!r}, its entry point {name!r}: give both one name")
    if inspect.isabstract(offered):
        raise InputError(f"it lacks {', '.join(sorted(vars(offered)['__abstractmethods__']))}")
    for parameter, spec in offered.parameters().items():
        if not isinstance(spec.metadata.get("bounds"), Bounds) or spec.default is dataclasses.MISSING:
            raise InputError(f"its field {parameter!r} has no default and bounds: declare it with param(…)")
    return offered
