"""Learn hoprank's trees on top of the linear score."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopbench.eval.training.examples import TrainingExample
from hopbench.eval.training.fitting import Floats, RankedLists, packed
from hopbench.retrieval.strategies.hoprank.paths import Passed
from hopbench.retrieval.strategies.hoprank.tree_features import TREE_FEATURES, tree_lists
from hopbench.retrieval.strategies.hoprank.trees import Tree, Trees
from hopbench.retrieval.strategies.hoprank.words import Flags
from hopbench.retrieval.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Boosting:
    """Settings for growing trees; `share` of their values is added to the score they were grown on.

    More of them gains on families that were learned from and loses on those left out, where all of them still are above
    the linear score (docs/hoprank.md).
    """

    rounds: int = 250
    leaves: int = 8
    rate: float = 0.07
    least_rows: int = 100
    l2: float = 5.0
    columns: float = 0.5
    questions: float = 0.8
    bins: int = 63
    share: float = 1.0
    seed: int = 1

    def settings(self) -> dict[str, Any]:
        """Return LightGBM's parameters, with one thread and one order of work, so that two fits give the same bytes."""
        return {
            "num_leaves": self.leaves,
            "learning_rate": self.rate,
            "min_data_in_leaf": self.least_rows,
            "lambda_l2": self.l2,
            "feature_fraction": self.columns,
            "bagging_fraction": self.questions,
            "bagging_freq": 1,
            "max_bin": self.bins,
            "feature_pre_filter": False,
            "seed": self.seed,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }


def fit_trees(lists: RankedLists, names: Sequence[str], boosting: Boosting) -> Trees:
    """Fit trees whose value, added to `lists.given`, puts gold passages first; see `fit_ranking` for the loss."""
    if not boosting.rounds or len(lists.gold) < 2 * boosting.least_rows or not np.ptp(lists.features, axis=0).any():
        return Trees(tuple(names), ())  # nothing can be split
    grown = _grown(packed(lists, tuple(names), boosting.settings(), boosting.rounds))
    found = map(tree_of, grown)
    return Trees(tuple(names), tuple(_shrunk(tree, boosting.share) for tree in found if tree.feature))


def _grown(given: bytes) -> list[Mapping[str, Any]]:
    """Grow LightGBM's trees. Raises InputError where it cannot be loaded, or its process ends early."""
    command = [sys.executable, "-P", "-m", "hopbench.eval.training.fitting", str(os.getpid())]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(
            f"LightGBM, which grows hoprank's trees, ended with: {lines[-1]}; it needs the OpenMP runtime (Debian: "
            "libgomp1) and memory for the candidates of all questions; --rounds 0 learns the linear score alone"
        )
    return list(json.loads(done.stdout.splitlines()[-1]))


def _shrunk(tree: Tree, share: float) -> Tree:
    return replace(tree, value=[share * value for value in tree.value])


def tree_of(root: Mapping[str, Any]) -> Tree:
    """Convert a tree of LightGBM's dump."""
    splits: list[Mapping[str, Any]] = []
    leaves: list[Mapping[str, Any]] = []
    ends: dict[tuple[int, str], int] = {}

    def number(node: Mapping[str, Any]) -> int:
        if "leaf_value" in node:
            leaves.append(node)
            return ~(len(leaves) - 1)
        mine = len(splits)
        splits.append(node)
        for side in ("left_child", "right_child"):
            ends[mine, side] = number(node[side])
        return mine

    number(root)
    return Tree(
        feature=[int(split["split_feature"]) for split in splits],
        threshold=[float(split["threshold"]) for split in splits],
        left=[ends[place, "left_child"] for place in range(len(splits))],
        right=[ends[place, "right_child"] for place in range(len(splits))],
        value=[float(leaf["leaf_value"]) for leaf in leaves],
        count=[int(leaf.get("leaf_count", 1)) for leaf in leaves],
    )


def fit_lists(
    group: Sequence[TrainingExample], passed: Iterable[Passed], worth: Floats, seen: Flags, boosting: Boosting
) -> Trees:
    """Fit trees to examples of weight `worth` (n,) after their passes; `seen` (f,) are the features they may use."""
    lists = []
    for example, one in zip(group, passed, strict=True):
        chunks, features = tree_lists(example.candidates, [one])[0]
        score = one[-1][0].scores[one[-1][0].chunks.searchsorted(chunks)]
        lists.append((features * seen, np.isin(chunks, example.gold), score))
    features, gold, score = (np.concatenate(column) for column in zip(*lists, strict=True))
    start = np.cumsum([0, *(len(own) for _, own, _ in lists)])[:-1]
    return fit_trees(RankedLists(features, gold, start, worth, score), TREE_FEATURES, boosting)
