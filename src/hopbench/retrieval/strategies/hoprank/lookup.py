"""Values by number of a few among very many: a question's work must not grow with the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.words import Numbers


@dataclass(frozen=True, eq=False)
class Lookup:
    """`values` (k,) of the numbers `keys` (k,), ascending; every other number has `otherwise`."""

    keys: Numbers
    values: NDArray[Any]
    otherwise: Any = 0

    @classmethod
    def of(cls, keys: NDArray[Any], values: NDArray[Any], otherwise: Any = 0) -> Lookup:
        """From distinct keys in any order."""
        order = keys.argsort(kind="stable")
        return cls(keys[order], values[order], otherwise)

    @classmethod
    def marks(cls, keys: Numbers) -> Lookup:
        """True for some distinct rows, ascending."""
        return cls(keys, np.ones(len(keys), bool), otherwise=False)

    def __getitem__(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The value of each row."""
        if not len(self.keys):
            return np.full(len(rows), self.otherwise, self.values.dtype)
        places = self.keys.searchsorted(rows)  # beyond the last key where a row is: taken as the last
        known = self.keys.take(places, mode="clip") == rows
        return np.where(known, self.values.take(places, mode="clip"), self.otherwise)
