"""Rows of a table as the parameters of a query that writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.graph.schema import SPARSE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]


def properties(table: pd.DataFrame, keys: Sequence[str]) -> list[Row]:
    """Rows of {key columns…, properties}; a missing value is left out, as Neo4j does."""
    names = [name for name in table.columns if name not in keys]
    return list(_rows(table, keys, names))


def _rows(table: pd.DataFrame, keys: Sequence[str], names: Sequence[str]) -> Iterator[Row]:
    values = zip(*(table[name].tolist() for name in [*keys, *names]), strict=True)
    for row in values:
        properties = dict(zip(names, row[len(keys) :], strict=True))
        yield {
            **dict(zip(keys, row, strict=False)),
            "properties": {name: value for name, value in properties.items() if not _missing(name, value)},
        }


def _missing(name: str, value: object) -> bool:
    nan = isinstance(value, float) and value != value  # noqa: PLR0124 (NaN is a missing value)
    return value is None or nan or (name in SPARSE_COLUMNS and not value)
