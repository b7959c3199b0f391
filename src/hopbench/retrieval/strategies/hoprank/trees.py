"""Gradient-boosted regression trees: their value, and each feature's exact contribution to it (TreeSHAP).

Learned by LightGBM (`hopbench train hoprank`), evaluated here: importing that library takes 1.4 s, and what these trees
say must not depend on a processor. Comparisons and additions in a fixed order are all that happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.strategies.hoprank.shapley import Ways, ways_of
from hopbench.retrieval.strategies.hoprank.tree import Tree
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.arithmetic import summed
from hopbench.retrieval.support.timing import done_once

MAX_LEAVES = 16
BYTE = 8  # bits
ROWS = 64  # of features that are evaluated at a time: what their splits compare takes 1 MB
FEATURE_DECIMALS = 6  # of the features of trees: a threshold is never nearer to a value than that

# By the bits of leaves that are out of the question, the first one that is not.
_FIRST_LEFT = np.array([(~bits & (bits + 1)).bit_length() - 1 for bits in range(1 << MAX_LEAVES)], np.int8)


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over f named features; the value of a row is the sum of a leaf of each."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]

    def value(self, features: Floats) -> Floats:
        """The value of rows (k, f), (k,)."""
        if not self.trees:
            return np.zeros(len(features))
        first = MAX_LEAVES * np.arange(len(self.trees))[:, None]
        parts = [self._leaf_values.take(first + self._leaf(features[part])) for part in blocks(len(features), ROWS)]
        return np.concatenate([np.zeros(0), *map(summed, parts)])

    def _leaf(self, features: Floats) -> NDArray[np.int8]:
        """Which leaf, from the left, each row reaches in each tree, (t, k).

        A row that goes right at a split cannot reach the leaves on its left. What is left over begins with its leaf
        (Lucchese et al., QuickScorer, SIGIR 2015).
        """
        splits = self._splits
        right = features.T.copy().take(splits.feature, axis=0) > splits.threshold[..., None]
        out = np.multiply(right.view(np.uint8), splits.on_the_left[..., None])
        return np.asarray(_FIRST_LEFT.take(np.bitwise_or.reduce(out, axis=0)))

    @cached_property
    @done_once()
    def _splits(self) -> _Splits:
        return _Splits.of(self.trees)

    @cached_property
    @done_once()
    def _leaf_values(self) -> Floats:
        values = np.zeros((len(self.trees), MAX_LEAVES))
        for number, tree in enumerate(self.trees):
            values[number, : len(tree.value)] = [tree.value[leaf] for leaf, _ in tree.leaves()]
        return values

    def contributions(self, features: Floats) -> tuple[Floats, float]:
        """What each feature of rows (k, f) adds to their values, (k, f), and the mean value it is added to."""
        total = np.zeros((len(features), len(self.names)))
        for ways in self._ways:
            total += ways.contributions(features)
        return total, self.mean

    @cached_property
    def mean(self) -> float:
        """The mean value of training rows."""
        means = [
            float(summed(np.array(tree.value) * np.array(tree.count, np.float64))) / sum(tree.count)
            for tree in self.trees
        ]
        return float(summed(np.array(means))) if means else 0.0

    @cached_property
    def _ways(self) -> list[Ways]:
        return ways_of(self.trees)


@dataclass(frozen=True, eq=False)
class _Splits:
    """The splits of t trees by their number, (s, t): feature, threshold, bits of leaves on the left.

    No leaf is on the left where a tree has no such split.
    """

    feature: Numbers
    threshold: Floats
    on_the_left: NDArray[np.uint8] | NDArray[np.uint16]

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> _Splits:
        """The splits of some trees."""
        size = max((len(tree.feature) for tree in trees), default=0), len(trees)
        feature, threshold = np.zeros(size, np.int64), np.zeros(size)
        on_the_left = np.zeros(size, np.uint16)
        for number, tree in enumerate(trees):
            count = len(tree.feature)
            feature[:count, number], threshold[:count, number] = tree.feature, tree.threshold
            for leaf, (_, way) in enumerate(tree.leaves()):
                for split, right in way:
                    on_the_left[split, number] |= 0 if right else 1 << leaf
        return cls(feature, threshold, on_the_left.astype(np.uint8) if size[0] < BYTE else on_the_left)
