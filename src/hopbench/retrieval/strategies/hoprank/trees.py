"""Gradient-boosted regression trees: their values, each feature's exact contribution (TreeSHAP), and their JSON.

Learned by LightGBM (`hopbench train hoprank`), evaluated here: importing that library takes 1.4 s, and what these trees
say must not depend on a processor. Comparisons and additions in a fixed order are all that happens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.candidates import blocks
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.arithmetic import summed
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.timing import done_once


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
        """List the leaves from left to right, each with its way from the root: splits, and whether it goes right."""
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
        """Compute each feature's contribution to the values of rows, (k, f).

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
        passes = (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(np.float64)
        share = self.share[:, None]
        weight = np.zeros((len(share), *passes.shape))
        for point, part in _POINTS[size // 2 - 1]:
            factor = (1.0 - point) * share + point * passes
            weight += part * np.multiply.reduce(factor, axis=2)[..., None] / factor
        by_pattern = self.value[:, None, None] * (passes - share) * weight
        order = np.argsort(self.feature, axis=None, kind="stable")
        order = order[np.isin(order, self._split_places[0] * size + self._split_places[1])]
        feature, begin = np.unique(self.feature.ravel()[order], return_index=True)
        return order // size, feature, begin, by_pattern[order // size, :, order % size]


def ways_of(trees: Sequence[Tree]) -> list[Ways]:
    """All ways of some trees that have a split, those of similar length together: short ones take less work."""
    by_length: dict[int, list[_Way]] = {length: [] for length in range(2, MAX_PATH + 1, 2)}
    for tree in trees:
        below: dict[int, float] = {~leaf: float(count) for leaf, count in enumerate(tree.count)}
        leaves = tree.leaves()
        for leaf, path in leaves:
            for split, _ in path:
                below[split] = below.get(split, 0.0) + tree.count[leaf]
        for leaf, path in leaves:
            shares: dict[int, float] = {}
            splits = []
            for split, right in path:
                feature = tree.feature[split]
                into = below[tree.right[split] if right else tree.left[split]]
                shares[feature] = shares.get(feature, 1.0) * into / below[split]
                splits.append((list(shares).index(feature), feature, tree.threshold[split], right))
            if shares:
                by_length[len(shares) + len(shares) % 2].append((tree.value[leaf], shares, splits))
    return [_joined(ways, length) for length, ways in by_length.items() if ways]


# The value of a leaf, the share of rows that pass each feature on the way to it, and the splits: the feature's place
# among those, its number, the threshold, and whether the way goes right.
_Way = tuple[float, dict[int, float], list[tuple[int, int, float, bool]]]


def _joined(ways: Sequence[_Way], length: int) -> Ways:
    features, share = np.zeros((len(ways), length), np.int64), np.ones((len(ways), length))
    for number, (_, shares, _) in enumerate(ways):
        features[number, : len(shares)] = list(shares)
        share[number, : len(shares)] = list(shares.values())
    splits = [(number, *split) for number, (_, _, own) in enumerate(ways) for split in sorted(own)]
    ends, places, split_features, thresholds, rights = zip(*splits, strict=True)
    return Ways(
        value=np.array([value for value, _, _ in ways]),
        feature=features,
        share=share,
        split_leaf=np.array(ends, np.int64),
        split_place=np.array(places, np.int64),
        split_feature=np.array(split_features, np.int64),
        split_threshold=np.array(thresholds, np.float64),
        split_right=np.array(rights, bool),
    )


MAX_LEAVES = 16
BYTE_BITS = 8  # bits
ROW_BATCH = 64  # of features that are evaluated at a time: what their splits compare takes 1 MB
FEATURE_DECIMALS = 6  # of the features of trees: a threshold is never nearer to a value than that

# By the bits of leaves that are out of the question, the first one that is not.
_FIRST_LEFT = np.array([(~bits & (bits + 1)).bit_length() - 1 for bits in range(1 << MAX_LEAVES)], np.int8)


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over f named features; the value of a row is the sum of a leaf of each."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]

    def value(self, features: Floats) -> Floats:
        """Evaluate rows (k, f), (k,)."""
        if not self.trees:
            return np.zeros(len(features))
        split_feature, threshold, on_the_left = self._splits
        first = MAX_LEAVES * np.arange(len(self.trees))[:, None]
        parts = [np.zeros(0)]
        for part in blocks(len(features), ROW_BATCH):
            # A row that goes right at a split cannot reach the leaves on its left. What is left over begins with its
            # leaf (Lucchese et al., QuickScorer, SIGIR 2015).
            right = features[part].T.copy().take(split_feature, axis=0) > threshold[..., None]
            out = np.multiply(right.view(np.uint8), on_the_left[..., None])
            leaf = _FIRST_LEFT.take(np.bitwise_or.reduce(out, axis=0))
            parts.append(summed(self._leaf_values.take(first + leaf)))
        return np.concatenate(parts)

    @cached_property
    @done_once()
    def _splits(self) -> tuple[Numbers, Floats, NDArray[np.uint8] | NDArray[np.uint16]]:
        """The splits of t trees by their number, (s, t): feature, threshold, and the bits of leaves on the left.

        No leaf is on the left where a tree has no such split.
        """
        size = max((len(tree.feature) for tree in self.trees), default=0), len(self.trees)
        feature, threshold = np.zeros(size, np.int64), np.zeros(size)
        on_the_left = np.zeros(size, np.uint16)
        for number, tree in enumerate(self.trees):
            count = len(tree.feature)
            feature[:count, number], threshold[:count, number] = tree.feature, tree.threshold
            for leaf, (_, path) in enumerate(tree.leaves()):
                for split, right in path:
                    on_the_left[split, number] |= 0 if right else 1 << leaf
        return feature, threshold, on_the_left.astype(np.uint8) if size[0] < BYTE_BITS else on_the_left

    @cached_property
    @done_once()
    def _leaf_values(self) -> Floats:
        values = np.zeros((len(self.trees), MAX_LEAVES))
        for number, tree in enumerate(self.trees):
            values[number, : len(tree.value)] = [tree.value[leaf] for leaf, _ in tree.leaves()]
        return values

    def contributions(self, features: Floats) -> tuple[Floats, float]:
        """Compute each feature's contribution to the values of rows, (k, f), and the mean they are added to."""
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


MAX_TREES = 5000
MAX_NUMBER = 1e6  # no score has use for larger numbers, and sums of them would lose what others say
MAX_ROWS = 2**53


def tree_lines(trees: Trees) -> str:
    """Write the items of a JSON list of trees, one on each line."""
    names = trees.names
    rows = ({**vars(tree), "feature": [names[number] for number in tree.feature]} for tree in trees.trees)
    return ",".join("\n  " + json.dumps(row) for row in rows)


def read_trees(content: object, names: Sequence[str]) -> Trees:
    """Read trees from a file's list; ValueError, KeyError or TypeError where it holds anything else."""
    if not isinstance(content, list):
        raise TypeError("trees are no list")
    if len(content) > MAX_TREES:
        raise ValueError(f"{len(content)} trees, {MAX_TREES} are allowed")
    number = {name: place for place, name in enumerate(names)}
    trees = (
        Tree(
            feature=[number[name] for name in one["feature"]],
            threshold=[float(value) for value in one["threshold"]],
            left=[int(node) for node in one["left"]],
            right=[int(node) for node in one["right"]],
            value=[float(value) for value in one["value"]],
            count=[int(rows) for rows in one["count"]],
        )
        for one in content
    )
    return Trees(tuple(names), tuple(trees))


def check_trees(trees: Trees, name: str, remedy: str) -> None:
    """Raise InputError for splits and leaves that are no tree, or one that this version cannot evaluate."""
    for place, tree in enumerate(trees.trees):
        if fault := next(_faults(tree), None):
            raise InputError(f"{name}: tree {place} {fault}: {remedy}")


def _faults(tree: Tree) -> Iterator[str]:
    """Name faults in order; only the first holds: a later check relies on what those before it have ruled out."""
    splits = len(tree.feature)
    sides = tree.left, tree.right
    if {len(tree.threshold), *map(len, sides)} != {splits} or {len(tree.value), len(tree.count)} != {splits + 1}:
        yield "has lists of lengths that do not fit: n features, thresholds, left and right ends, n + 1 leaves"
    if splits >= MAX_LEAVES:
        yield f"has more than {MAX_LEAVES} leaves"
    if {*tree.left, *tree.right} != {*range(1, splits), *(~leaf for leaf in range(splits + 1) if splits)}:
        yield "does not reach each of its splits and leaves"
    if any(0 <= end <= split for side in sides for split, end in enumerate(side)):
        yield "leads back to a split above"
    if not all(map(math.isfinite, [*tree.threshold, *tree.value])):
        yield "holds a number that is not finite"
    if max(map(abs, tree.value)) > MAX_NUMBER:
        yield f"holds a value beyond {MAX_NUMBER:,.0f}"
    if min(tree.count) < 1:
        yield "has a leaf of no training row"
    if max(tree.count) > MAX_ROWS:
        yield f"has a leaf of more than {MAX_ROWS:,} training rows"
    if any(len({tree.feature[split] for split, _ in path}) > MAX_PATH for _, path in tree.leaves()):
        yield f"asks for more than {MAX_PATH} features on the way to a leaf"
