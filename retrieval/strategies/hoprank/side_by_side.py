"""Several lists of the same size side by side: what costs one array operation a list then costs one for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from hopbench.retrieval.strategies.hoprank.list_columns import ListColumns
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.pairs import Pairs
from hopbench.retrieval.strategies.hoprank.word_links import WordLinks

Links = TypeVar("Links", Pairs, WordLinks)
_COLUMNS = tuple(column.name for column in fields(ListColumns) if column.name != "known")


@dataclass(frozen=True, eq=False, kw_only=True)
class SideBySide(ListColumns):
    """The facts about n `lists` of k candidates, r of which are read: every array has them on its first axis."""

    lists: Sequence[ListFacts]

    @classmethod
    def of(cls, lists: Sequence[ListFacts]) -> Self:
        """Lists of the same size."""
        columns: dict[str, Any] = {name: np.stack([getattr(one, name) for one in lists]) for name in _COLUMNS}
        return cls(**columns, lists=lists)

    @property
    def read(self) -> int:
        """How many candidates of a list trees read, r."""
        return self.lists[0].read

    @cached_property
    def pairs(self) -> Pairs:
        """Each that is read with each of the very first of its list."""
        return _stacked([one.pairs for one in self.lists])

    @cached_property
    def word_links(self) -> WordLinks:
        """The links by words of each that is read with the very first of its list."""
        return _stacked([one.word_links for one in self.lists])


def _stacked(links: Sequence[Links]) -> Links:
    kind = type(links[0])
    return kind(*(np.stack([getattr(one, column.name) for one in links]) for column in fields(kind)))
