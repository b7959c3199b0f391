"""Each feature's exact contribution to the value of trees: Shapley values, as TreeSHAP defines them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.tree import Tree
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers

# Gauss and Legendre's n points on 0..1, each with its weight: exact for polynomials of degree 2n − 1.
_POINTS = (
    ((0.5, 1.0),),
    ((0.21132486540518712, 0.5), (0.7886751345948129, 0.5)),
    ((0.1127016653792583, 0.2777777777777778), (0.5, 0.4444444444444444), (0.8872983346207417, 0.2777777777777778)),
    (
        (0.06943184420297371, 0.17392742256872692),
        (0.33000947820757187, 0.32607257743127307),
        (0.6699905217924281, 0.32607257743127307),
        (0.9305681557970263, 0.17392742256872692),
    ),
)
MAX_PATH = 2 * len(_POINTS)  # distinct features on the way to a leaf


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways to some leaves: (l, d) the features on each with the share of rows that pass, and (s,) their splits.

    Places without a feature have share 1, and every row passes them; d is even. Splits follow by way and place.
    """

    value: Floats
    feature: Numbers
    share: Floats
    split_leaf: Numbers
    split_place: Numbers
    split_feature: Numbers
    split_threshold: Floats
    split_right: NDArray[Any]

    def contributions(self, features: Floats) -> Floats:
        """What each feature of rows (k, f) adds to their values, (k, f).

        Shapley values, where a feature that is not known goes both ways by the share of training rows (Lundberg et al.,
        From local explanations to global understanding with explainable AI for trees, 2020, algorithm 2: what LightGBM
        computes with `pred_contrib`). For a leaf reached over features j = 1…d, whose splits a row passes (o = 1) or
        not (o = 0) and by chance passes with share z, the sum over all orders is an integral,

            value · (oᵢ − zᵢ) · ∫₀¹ ∏_{j≠i} ((1 − t)·zⱼ + t·oⱼ) dt,

        of a polynomial of degree d − 1: d/2 points give it exactly.
        """
        if not len(features):
            return np.zeros(features.shape)
        above = features.T[self.split_feature] > self.split_threshold[:, None]
        missed = above != self.split_right[:, None]
        passes = np.ones((*self.share.shape, len(features)), np.uint8)
        way, place, begin = self._split_places
        passes[way, place] = ~np.logical_or.reduceat(missed, begin)
        pattern = np.packbits(passes, axis=1, bitorder="little")[:, 0]
        way, feature, begin, by_pattern = self._by_feature
        added = np.take_along_axis(by_pattern, pattern[way], axis=1)
        total = np.zeros(features.shape[::-1])
        total[feature] = np.add.reduceat(added, begin)
        return total.T

    @cached_property
    def _split_places(self) -> tuple[Numbers, Numbers, Numbers]:
        """Of each feature on a way: the way, its place, and where its splits begin."""
        number = self.split_leaf * self.share.shape[1] + self.split_place
        begin = np.flatnonzero(np.diff(number, prepend=-1))
        return self.split_leaf[begin], self.split_place[begin], begin

    @cached_property
    def _by_feature(self) -> tuple[Numbers, Numbers, Numbers, Floats]:
        """The places of all ways (p,), by feature: their ways, the features, where each begins, and what places add.

        That is (p, 2ᵈ), for each pattern of features that a row passes: bit i is place i of the way. There are few, so
        nothing is left to compute for a row but its pattern (Yang, Fast TreeSHAP, 2021).
        """
        size = self.share.shape[1]
        order = np.argsort(self.feature, axis=None, kind="stable")
        order = order[np.isin(order, self._split_places[0] * size + self._split_places[1])]
        feature, begin = np.unique(self.feature.ravel()[order], return_index=True)
        return order // size, feature, begin, self._by_pattern()[order // size, :, order % size]

    def _by_pattern(self) -> Floats:
        """What each place of each way adds, (l, 2ᵈ, d)."""
        size = self.share.shape[1]
        passes = (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(np.float64)
        share = self.share[:, None]
        weight = np.zeros((len(share), *passes.shape))
        for point, part in _POINTS[size // 2 - 1]:
            factor = (1.0 - point) * share + point * passes
            weight += part * np.multiply.reduce(factor, axis=2)[..., None] / factor
        return np.asarray(self.value[:, None, None] * (passes - share) * weight)

    @classmethod
    def of(cls, ways: Sequence[_Way], length: int) -> Ways:
        """The ways, of at most `length` features each."""
        shape = len(ways), length
        of_way, share = np.zeros(shape, np.int64), np.ones(shape)
        for number, way in enumerate(ways):
            of_way[number, : len(way.shares)] = list(way.shares)
            share[number, : len(way.shares)] = list(way.shares.values())
        splits = [(number, *split) for number, way in enumerate(ways) for split in sorted(way.splits)]
        ends, places, features, thresholds, rights = zip(*splits, strict=True)
        return cls(
            value=np.array([way.value for way in ways]),
            feature=of_way,
            share=share,
            split_leaf=np.array(ends, np.int64),
            split_place=np.array(places, np.int64),
            split_feature=np.array(features, np.int64),
            split_threshold=np.array(thresholds, np.float64),
            split_right=np.array(rights, bool),
        )


@dataclass(frozen=True)
class _Way:
    """A way to a leaf: its value, the share of rows that pass each feature, and splits.

    A split is the feature's place, its number, the threshold, and whether the way goes right.
    """

    value: float
    shares: dict[int, float]
    splits: list[tuple[int, int, float, bool]]


def ways_of(trees: Sequence[Tree]) -> list[Ways]:
    """All ways of some trees that have a split, those of similar length together: short ones take less work."""
    ways = [way for tree in trees for way in _ways_of(tree)]
    by_length = (
        [way for way in ways if length - 2 < len(way.shares) <= length] for length in range(2, MAX_PATH + 1, 2)
    )
    return [Ways.of(chosen, 2 * half) for half, chosen in enumerate(by_length, 1) if chosen]


def _ways_of(tree: Tree) -> Iterator[_Way]:
    below = _counts(tree)
    for leaf, way in tree.leaves():
        shares: dict[int, float] = {}
        splits = []
        for split, right in way:
            feature = tree.feature[split]
            into = below[tree.right[split] if right else tree.left[split]]
            shares[feature] = shares.get(feature, 1.0) * into / below[split]
            splits.append((list(shares).index(feature), feature, tree.threshold[split], right))
        yield _Way(tree.value[leaf], shares, splits)


def _counts(tree: Tree) -> dict[int, float]:
    """How many training rows pass each split and leaf."""
    found: dict[int, float] = {~leaf: float(count) for leaf, count in enumerate(tree.count)}
    for leaf, way in tree.leaves():
        for split, _ in way:
            found[split] = found.get(split, 0.0) + tree.count[leaf]
    return found
