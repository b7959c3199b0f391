"""The names of a strategy's parameters: its fields, and what the source documents call them.

An alias is only another way to write a field: values, labels and trials' ids have the field's own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from hopbench.retrieval.strategies.parameters import Bounds, Parameters
from hopbench.retrieval.support.errors import ParameterError, UnknownNameError

T = TypeVar("T")


def aliases(strategy: type[Parameters]) -> dict[str, str]:
    """Alias → field, in the order of the fields."""
    return dict(_aliases(strategy))


def _aliases(strategy: type[Parameters]) -> Iterator[tuple[str, str]]:
    taken = dict.fromkeys(strategy.parameters(), "")
    for field, spec in strategy.parameters().items():
        bounds: Bounds = spec.metadata["bounds"]
        for alias in bounds.aliases:
            if alias in taken:
                other = taken[alias] or alias
                raise ParameterError(f"{strategy.name}: {alias!r} names {other} and {field}: an alias names one field")
            taken[alias] = field
            yield alias, field


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
