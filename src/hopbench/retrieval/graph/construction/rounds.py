"""A search for the nearest rows in rounds of a minute, each kept: a killed build goes on after the last of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
import pandas as pd

from hopbench.retrieval.graph.construction.staging import Part, Staging
from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.search.neighbours import Candidates, Held
from hopbench.retrieval.support.blas import in_threads

SECONDS = 60.0  # a round: at a million chunks a round's end takes some 3 s
ROWS = 4_000_000  # candidates in a part: 48 MB
CANDIDATES, LEAST, LEFT = "candidates", "least", "left"  # the tables of a round

Work = Callable[[], None]
Search = Callable[[Candidates, Sequence[Work]], None]
"""Does each of the works, which offer candidates, in any order and on as many threads as BLAS has."""


def at_once(found: Candidates, works: Sequence[Work]) -> None:
    """A `Search` that keeps nothing."""
    in_threads(lambda work: work(), works)


@dataclass(frozen=True)
class Rounds:
    """A `Search` that keeps in `staging`, under `name`, what was found after each `seconds`."""

    staging: Staging
    name: str
    seconds: float = SECONDS

    def __call__(self, found: Candidates, works: Sequence[Work]) -> None:
        """See `Search`: without the works that an earlier process did, whose candidates are taken over."""
        left = self._taken_over(found, len(works))
        while left:
            left = self._round(works, left)
            if left:
                self.staging.save(self.name, _tables(found.held(), left, len(works)))

    def _round(self, works: Sequence[Work], numbers: Sequence[int]) -> list[int]:
        """Do works until the time is over, the first in any case; returns the numbers of the others."""
        end = monotonic() + self.seconds

        def done(number: int) -> bool:
            if number != numbers[0] and monotonic() >= end:
                return False
            works[number]()
            return True

        return [number for number, is_done in zip(numbers, in_threads(done, numbers), strict=True) if not is_done]

    def _taken_over(self, found: Candidates, works: int) -> list[int]:
        """The numbers of the works that are left."""
        kept = self.staging.load(self.name)
        left = None if kept is None else next(kept.parts(LEFT))
        if kept is None or left is None or left["of"].iloc[0] != works:
            return list(range(works))
        candidates = pd.concat(kept.parts(CANDIDATES))
        rows, others, products = (candidates[name].to_numpy() for name in ("row", "candidate", "product"))
        found.take_over(Held(rows, others, products, next(kept.parts(LEAST))["least"].to_numpy()))
        return left["work"].tolist()


def _tables(held: Held, left: Sequence[int], works: int) -> Iterator[Part]:
    for part in blocks(max(len(held.rows), 1), ROWS):
        columns = {"row": held.rows[part], "candidate": held.candidates[part], "product": held.products[part]}
        yield CANDIDATES, pd.DataFrame(columns)
    yield LEAST, pd.DataFrame({"least": held.least})
    yield LEFT, pd.DataFrame({"work": np.array(left), "of": works})
