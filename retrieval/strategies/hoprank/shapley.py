"""Each feature's exact contribution to the value of trees: Shapley values, as TreeSHAP defines them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.tree import Tree
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers

# Gauss and Legendre's four points on 0..1 and their weights: exact for polynomials of degree 7.
_POINTS = 0.06943184420297371, 0.33000947820757187, 0.6699905217924281, 0.9305681557970263
_WEIGHTS = 0.17392742256872692, 0.32607257743127307, 0.32607257743127307, 0.17392742256872692
MAX_PATH = 2 * len(_POINTS)  # distinct features on the way to a leaf


@dataclass(frozen=True, eq=False)
class Ways:
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

    def contributions(self, features: Floats) -> Floats:
        """What each feature of rows (k, f) adds to their values, (k, f).

        Shapley values, where a feature that is not known goes both ways by the share of training rows (Lundberg et al.,
        From local explanations to global understanding with explainable AI for trees, 2020, algorithm 2: what LightGBM
        computes with `pred_contrib`). For a leaf reached over features j = 1…d, whose splits a row passes (o = 1) or
        not (o = 0) and by chance passes with share z, the sum over all orders is an integral,

            value · (oᵢ − zᵢ) · ∫₀¹ ∏_{j≠i} ((1 − t)·zⱼ + t·oⱼ) dt,

        of a polynomial of degree d − 1: four points give it exactly.
        """
        passes = np.ones((len(self.value), self.share.shape[1], len(features)))
        above = features.T[self.split_feature] > self.split_threshold[:, None]
        missed = above != self.split_right[:, None]
        row, column = np.nonzero(missed)
        passes[self.split_leaf[row], self.split_place[row], column] = 0.0
        share = self.share[..., None]
        weight = np.zeros_like(passes)
        for point, size in zip(_POINTS, _WEIGHTS, strict=True):
            factor = (1.0 - point) * share + point * passes
            weight += size * np.multiply.reduce(factor, axis=1)[:, None] / factor
        added = self.value[:, None, None] * (passes - share) * weight
        total = np.zeros(features.shape[::-1])
        order, begin, feature = self._by_feature
        if len(order) and len(features):
            total[feature] = np.add.reduceat(added.reshape(-1, len(features))[order], begin)
        return total.T

    @cached_property
    def _by_feature(self) -> tuple[Numbers, Numbers, Numbers]:
        """The places of all ways by feature, where each feature's begin, and the features."""
        flat = self.feature.ravel()
        order = flat.argsort(kind="stable")
        feature, begin = np.unique(flat[order], return_index=True)
        return order, begin, feature

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Ways:
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
