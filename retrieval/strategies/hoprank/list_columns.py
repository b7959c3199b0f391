"""What is known of listed candidates in arrays of a fixed size: of one list, or of several side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from hopbench.retrieval.strategies.hoprank.pairs import PARTNERS
from hopbench.retrieval.strategies.hoprank.paths import sigmoid
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers

TOP = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class ListColumns:
    """Facts about the k best candidates, best first, of which trees read the first r.

    `score` (k,) is what they are ordered by, `first_score` and `pool_score` (k,) are those of the first pass and of the
    pool; `base` (k, 12) and `paths` (k, 6) are features of the linear score. `anchor` (k,) tells the anchors of the
    last pass that lead to another candidate, `own` (k,) is the entity each is titled by.
    `edge` (k, k) is P(edge) of the best edge from the one to the other, `best` (k, 17) the features of the best edge
    into each, `best_anchor` and `best_edge` (k,) its P(anchor) and P(edge): 0 where there is none. `cosine` (r,) and
    `alike` (r, r) are the cosines of those that are read with the question and with each other.
    Of several lists all have an axis more, the first. `known` are features of these that others need as well.
    """

    chunks: Numbers
    score: Floats
    first_score: Floats
    pool_score: Floats
    base: Floats
    paths: Floats
    anchor: Flags
    own: Numbers
    edge: Floats
    best: Floats
    best_anchor: Floats
    best_edge: Floats
    cosine: Floats
    alike: Floats
    known: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def sure(self) -> Floats:
        """σ(score − fifth best score) of each, (k,)."""
        fifth = min(4, self.score.shape[-1] - 1)
        return sigmoid(self.score - self.score[..., fifth, None])

    @property
    def partners_sure(self) -> Floats:
        """The same of the first `PARTNERS`, (1, p): a factor of what stands in columns of partners."""
        return self.sure[..., None, :PARTNERS]

    @property
    def above(self) -> Flags:
        """Whether the column's candidate stands above the row's, (k, k), the same for all lists."""
        return _below_diagonal(self.score.shape[-1])


@cache
def _below_diagonal(size: int) -> Flags:
    return np.tri(size, k=-1, dtype=bool)
