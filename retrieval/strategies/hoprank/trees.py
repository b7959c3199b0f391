"""Gradient-boosted regression trees: their value, and each feature's exact contribution to it (TreeSHAP).

Learned by LightGBM (`hopbench train hoprank`), evaluated here: importing that library takes 1.4 s, and what these trees
say must not depend on a processor. Comparisons and additions in a fixed order are all that happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.arithmetic import summed

MAX_LEAVES = 16
FEATURE_DECIMALS = 6  # of the features of trees: a threshold is never nearer to a value than that
# Gauss and Legendre's four points on 0..1 and their weights: exact for polynomials of degree 7.
_POINTS = 0.06943184420297371, 0.33000947820757187, 0.6699905217924281, 0.9305681557970263
_WEIGHTS = 0.17392742256872692, 0.32607257743127307, 0.32607257743127307, 0.17392742256872692
MAX_PATH = 2 * len(_POINTS)  # distinct features on the way to a leaf

# By the bits of leaves that are out of the question, the first one that is not.
_FIRST_LEFT = np.array([(~bits & (bits + 1)).bit_length() - 1 for bits in range(1 << MAX_LEAVES)], np.int8)


@dataclass(frozen=True)
class Tree:
    """A binary tree of n splits and n + 1 leaves.

    At split i a row goes to `left[i]` where its `feature[i]` is at most `threshold[i]`, else to `right[i]`: a split's
    number, or ~k for leaf k. `value` and `count` (n + 1,) are what each leaf adds and its share of training rows.
    """

    feature: Sequence[int]
    threshold: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]
    value: Sequence[float]
    count: Sequence[int]

    def leaves(self) -> list[tuple[int, list[tuple[int, bool]]]]:
        """The leaves from left to right, each with its way from the root: splits, and whether it goes right."""
        found: list[tuple[int, list[tuple[int, bool]]]] = []
        todo: list[tuple[int, list[tuple[int, bool]]]] = [(0 if self.feature else ~0, [])]
        while todo:
            node, way = todo.pop()
            if node < 0:
                found.append((~node, way))
                continue
            todo.append((self.right[node], [*way, (node, True)]))
            todo.append((self.left[node], [*way, (node, False)]))
        return found


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over f named features; the value of a row is the sum of a leaf of each."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]

    def value(self, features: Floats) -> Floats:
        """The value of rows (k, f), (k,)."""
        if not self.trees:
            return np.zeros(len(features))
        return summed(self._leaf_values[np.arange(len(self.trees))[:, None], self._leaf(features)])

    def _leaf(self, features: Floats) -> NDArray[np.int8]:
        """Which leaf, from the left, each row reaches in each tree, (t, k).

        A row that goes right at a split cannot reach the leaves on its left. What is left over begins with its leaf
        (Lucchese et al., QuickScorer, SIGIR 2015).
        """
        feature, threshold, on_the_left = self._splits
        right = features.T[feature] > threshold[..., None]
        return _FIRST_LEFT[np.bitwise_or.reduce(np.where(right, on_the_left[..., None], 0), axis=1)]

    @cached_property
    def _splits(self) -> tuple[Numbers, Floats, NDArray[np.uint16]]:
        """Feature, threshold and leaves on the left of each split, (t, s); no row goes right where there is none."""
        size = len(self.trees), max((len(tree.feature) for tree in self.trees), default=0)
        feature, threshold = np.zeros(size, np.int64), np.full(size, np.inf)
        on_the_left = np.zeros(size, np.uint16)
        for number, tree in enumerate(self.trees):
            count = len(tree.feature)
            feature[number, :count], threshold[number, :count] = tree.feature, tree.threshold
            for place, (_, way) in enumerate(tree.leaves()):
                for split, right in way:
                    on_the_left[number, split] |= 0 if right else 1 << place
        return feature, threshold, on_the_left

    @cached_property
    def _leaf_values(self) -> Floats:
        values = np.zeros((len(self.trees), MAX_LEAVES))
        for number, tree in enumerate(self.trees):
            values[number, : len(tree.value)] = [tree.value[leaf] for leaf, _ in tree.leaves()]
        return values

    def contributions(self, features: Floats) -> tuple[Floats, float]:
        """What each feature of rows (k, f) adds to their values, (k, f), and the mean value it is added to.

        Shapley values, where a feature that is not known goes both ways by the share of training rows (Lundberg et al.,
        From local explanations to global understanding with explainable AI for trees, 2020, algorithm 2: what LightGBM
        computes with `pred_contrib`). For a leaf reached over features j = 1…d, whose splits a row passes (o = 1) or
        not (o = 0) and by chance passes with share z, the sum over all orders is an integral,

            value · (oᵢ − zᵢ) · ∫₀¹ ∏_{j≠i} ((1 − t)·zⱼ + t·oⱼ) dt,

        of a polynomial of degree d − 1: four points give it exactly.
        """
        ways = self._ways
        passes = np.ones((len(ways.value), ways.share.shape[1], len(features)))
        above = features.T[ways.split_feature] > ways.split_threshold[:, None]
        missed = above != ways.split_right[:, None]
        row, column = np.nonzero(missed)
        passes[ways.split_leaf[row], ways.split_place[row], column] = 0.0
        share = ways.share[..., None]
        weight = np.zeros_like(passes)
        for point, size in zip(_POINTS, _WEIGHTS, strict=True):
            factor = (1.0 - point) * share + point * passes
            weight += size * np.multiply.reduce(factor, axis=1)[:, None] / factor
        added = ways.value[:, None, None] * (passes - share) * weight
        total = np.zeros((len(self.names), len(features)))
        np.add.at(total, ways.feature.ravel(), added.reshape(-1, len(features)))
        return total.T, self.mean

    @cached_property
    def mean(self) -> float:
        """The mean value of training rows."""
        means = [
            float(summed(np.array(tree.value) * np.array(tree.count, np.float64))) / sum(tree.count)
            for tree in self.trees
        ]
        return float(summed(np.array(means))) if means else 0.0

    @cached_property
    def _ways(self) -> _Ways:
        return _Ways.of(self.trees)


@dataclass(frozen=True, eq=False)
class _Ways:
    """The ways to all leaves: (l, d) the features on each with the share of rows that pass, and (s,) their splits.

    Places without a feature have share 1, and every row passes them.
    """

    value: Floats
    feature: Numbers
    share: Floats
    split_leaf: Numbers
    split_place: Numbers
    split_feature: Numbers
    split_threshold: Floats
    split_right: NDArray[Any]

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> _Ways:
        """All ways of some trees."""
        value: list[float] = []
        ways: list[dict[int, float]] = []
        splits: list[tuple[int, int, int, float, bool]] = []
        for tree in trees:
            below = _counts(tree)
            for leaf, way in tree.leaves():
                shares: dict[int, float] = {}
                for split, right in way:
                    feature = tree.feature[split]
                    into = below[tree.right[split] if right else tree.left[split]]
                    shares[feature] = shares.get(feature, 1.0) * into / below[split]
                    place = list(shares).index(feature)
                    splits.append((len(value), place, feature, tree.threshold[split], right))
                value.append(tree.value[leaf])
                ways.append(shares)
        shape = len(ways), max(map(len, ways), default=0)
        of_way, share = np.zeros(shape, np.int64), np.ones(shape)
        for number, shares in enumerate(ways):
            of_way[number, : len(shares)], share[number, : len(shares)] = list(shares), list(shares.values())
        ends, places, features, thresholds, rights = zip(*splits, strict=True) if splits else [()] * 5
        return cls(
            value=np.array(value),
            feature=of_way,
            share=share,
            split_leaf=np.array(ends, np.int64),
            split_place=np.array(places, np.int64),
            split_feature=np.array(features, np.int64),
            split_threshold=np.array(thresholds, np.float64),
            split_right=np.array(rights, bool),
        )


def _counts(tree: Tree) -> dict[int, float]:
    """How many training rows pass each split and leaf."""
    found: dict[int, float] = {~leaf: float(count) for leaf, count in enumerate(tree.count)}
    for leaf, way in tree.leaves():
        for split, _ in way:
            found[split] = found.get(split, 0.0) + tree.count[leaf]
    return found
