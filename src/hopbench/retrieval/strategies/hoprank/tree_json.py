"""Trees as JSON: a line for each, features by name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hopbench.retrieval.strategies.hoprank.shapley import MAX_PATH
from hopbench.retrieval.strategies.hoprank.tree import Tree
from hopbench.retrieval.strategies.hoprank.trees import MAX_LEAVES, Trees
from hopbench.retrieval.support.errors import InputError

MAX_TREES = 5000
MOST = 1e6  # no score has use for larger numbers, and sums of them would lose what others say
MOST_ROWS = 2**53


def lines(trees: Trees) -> str:
    """The JSON list of trees, one on each line."""
    return ",".join("\n  " + json.dumps(_content(tree, trees.names)) for tree in trees.trees)


def _content(tree: Tree, names: Sequence[str]) -> dict[str, Any]:
    return {
        "feature": [names[number] for number in tree.feature],
        "threshold": list(tree.threshold),
        "left": list(tree.left),
        "right": list(tree.right),
        "value": list(tree.value),
        "count": list(tree.count),
    }


def read(content: object, names: Sequence[str]) -> Trees:
    """Trees of a file's list; ValueError, KeyError or TypeError where it holds anything else."""
    if not isinstance(content, list):
        raise TypeError("trees are no list")
    if len(content) > MAX_TREES:
        raise ValueError(f"{len(content)} trees, {MAX_TREES} are allowed")
    number = {name: place for place, name in enumerate(names)}
    return Trees(tuple(names), tuple(_tree(one, number) for one in content))


def _tree(one: Mapping[str, Any], number: Mapping[str, int]) -> Tree:
    return Tree(
        feature=[number[name] for name in one["feature"]],
        threshold=[float(value) for value in one["threshold"]],
        left=[int(node) for node in one["left"]],
        right=[int(node) for node in one["right"]],
        value=[float(value) for value in one["value"]],
        count=[int(rows) for rows in one["count"]],
    )


def check(trees: Trees, name: str, remedy: str) -> None:
    """InputError for a list of splits and leaves that is no tree, or one that this version cannot evaluate."""
    for place, tree in enumerate(trees.trees):
        fault = next((words for broken, words in _FAULTS if broken(tree)), None)
        if fault:
            raise InputError(f"{name}: tree {place} {fault}: {remedy}")


def _uneven(tree: Tree) -> bool:
    splits = {len(one) for one in (tree.feature, tree.threshold, tree.left, tree.right)}
    leaves = {len(tree.value), len(tree.count)}
    return len(splits) > 1 or leaves != {len(tree.feature) + 1}


def _unreached(tree: Tree) -> bool:
    splits = len(tree.feature)
    below = {*tree.left, *tree.right}
    return below != {*range(1, splits), *(~leaf for leaf in range(splits + 1) if splits)}


# In this order: a later one relies on what those before it have ruled out.
_FAULTS: tuple[tuple[Callable[[Tree], bool], str], ...] = (
    (_uneven, "has lists of lengths that do not fit: n features, thresholds, left and right ends, n + 1 leaves"),
    (lambda tree: len(tree.value) > MAX_LEAVES, f"has more than {MAX_LEAVES} leaves"),
    (_unreached, "does not reach each of its splits and leaves"),
    (
        lambda tree: any(0 <= end <= split for side in (tree.left, tree.right) for split, end in enumerate(side)),
        "leads back to a split above",
    ),
    (lambda tree: not all(map(math.isfinite, [*tree.threshold, *tree.value])), "holds a number that is not finite"),
    (lambda tree: max(map(abs, tree.value)) > MOST, f"holds a value beyond {MOST:,.0f}"),
    (lambda tree: min(tree.count) < 1, "has a leaf of no training row"),
    (lambda tree: max(tree.count) > MOST_ROWS, f"has a leaf of more than {MOST_ROWS:,} training rows"),
    (
        lambda tree: any(len({tree.feature[split] for split, _ in way}) > MAX_PATH for _, way in tree.leaves()),
        f"asks for more than {MAX_PATH} features on the way to a leaf",
    ),
)
