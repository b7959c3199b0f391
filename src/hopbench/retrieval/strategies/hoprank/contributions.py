"""Scores of the best candidates, and what each feature contributes to them."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from hopbench.retrieval.hits import DETAILED
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.paths import Ranked
from hopbench.retrieval.strategies.hoprank.scoring import Judged, judged_scores
from hopbench.retrieval.strategies.hoprank.weights import score_names
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers

SHARE_DECIMALS = 12  # a hundred of them add up to the score within 1e-9, which has DECIMALS itself
MEAN = "mean_of_trees"
UNREAD = "not_read_by_trees"


@dataclass(frozen=True, eq=False)
class Scores:
    """`values` (k,) of chunks (k,), which are these `rows` (k,) of the last pass.

    The value is the linear score. To that of the chunks that trees judged, which come first, what they say is added,
    and `lowered` to that of the others: so none of them passes one that the first trees judged.
    """

    chunks: Numbers
    rows: Numbers
    values: Floats
    last: Ranked
    judged: Sequence[Judged] = ()
    lowered: float = 0.0

    @classmethod
    def of(cls, last: Ranked, judged: Sequence[Judged]) -> Scores:
        """The scores of the last pass, of trees where they judged."""
        if not judged:
            rows = np.arange(len(last.chunks))
            return cls(last.chunks, rows, last.scores.round(DECIMALS), last)
        first, *more = judged
        rows = last.chunks.searchsorted(first.chunks)
        added = np.zeros(len(last.chunks))
        added[rows] = first.value
        for one in more:
            added[last.chunks.searchsorted(one.chunks)] += one.value
        values, lowered = judged_scores(last.scores, rows, added[rows])
        rows = np.concatenate([rows, np.delete(np.arange(len(values)), rows)])
        return cls(last.chunks[rows], rows, values[rows].round(DECIMALS), last, judged, lowered)

    def only(self, best: Numbers) -> Scores:
        """Those of some chunks in their order, without what is known of the others."""
        chunks, rows = self.chunks[best], self.rows[best]
        last = Ranked(chunks, self.last.features.take(rows, axis=0), self.last.weights)
        return replace(self, chunks=chunks, rows=np.arange(len(best)), values=self.values[best], last=last)

    @cached_property
    def names(self) -> dict[str, int]:
        """The columns of `shares` by name: features of the linear score, then those that only trees see."""
        names = score_names()[: self.last.features.shape[1]]
        more = (*self.judged[0].trees.names, MEAN, UNREAD) if self.judged else ()
        return {name: column for column, name in enumerate(dict.fromkeys((*names, *more)))}

    def shares(self, rows: Numbers) -> Floats:
        """What each feature adds to some of the values, (r, f): feature × weight, and the Shapley values of trees."""
        linear = self.last.features[self.rows[rows]] * self.last.weights
        total = np.zeros((len(rows), len(self.names)))
        total[:, : linear.shape[1]] = linear
        for judged in self.judged:
            self._add(total, self.chunks[rows], judged)
        return total.round(SHARE_DECIMALS)

    def _add(self, total: Floats, chunks: Numbers, judged: Judged) -> None:
        """Add to rows of contributions (r, f) what trees say of the chunks (r,) that they judged."""
        place = Lookup.of(judged.chunks, np.arange(len(judged.chunks)), otherwise=NOWHERE)[chunks]
        (read,) = np.nonzero(place != NOWHERE)
        if judged is self.judged[0]:
            total[place == NOWHERE, self.names[UNREAD]] = self.lowered
        columns = np.array([self.names[name] for name in judged.trees.names])
        shares, mean = judged.trees.contributions(judged.features[place[read]])
        total[read[:, None], columns] += shares
        total[read, self.names[MEAN]] += mean


class Contributions(Mapping[str, float]):
    """Each feature's contribution to a hit's score, by name; computed on access for a block of hits: few are read."""

    def __init__(self, blocks: _Blocks, place: int) -> None:
        self._blocks, self._place = blocks, place

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks.names)

    def __len__(self) -> int:
        return len(self._blocks.names)

    def items(self) -> ItemsView[str, float]:
        """Names with values, without looking up each."""
        return self._values.items()

    @cached_property
    def _values(self) -> dict[str, float]:
        return dict(zip(self._blocks.names, self._blocks.row(self._place).tolist(), strict=True))

    def __repr__(self) -> str:
        return repr(self._values)


class _Blocks:
    """The contributions to all hits of a ranking, a block of them at a time."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores
        self._known: dict[int, Floats] = {}

    @property
    def names(self) -> Mapping[str, int]:
        """The columns of a row by name."""
        return self._scores.names

    def row(self, place: int) -> Floats:
        """The contributions to the hit at this place."""
        block = place // DETAILED
        if block not in self._known:
            last = min((block + 1) * DETAILED, len(self._scores.values))
            self._known[block] = self._scores.shares(np.arange(block * DETAILED, last))
        return np.asarray(self._known[block][place % DETAILED])


def contributions_of(scores: Scores) -> Callable[[int], Contributions]:
    """What gives the contributions to one of some scores by its place."""
    return partial(Contributions, _Blocks(scores))
