"""Gradient boosting by LightGBM under hoprank's own loss, on top of a score that is there already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopbench.eval.training.grow import packed
from hopbench.eval.training.losses import RankedLists
from hopbench.retrieval.strategies.hoprank.tree import Tree
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Boosting:
    """How trees are grown, and what `share` of their values is added to the score they were grown on.

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

    def second(self) -> Boosting:
        """Of second trees: fewer, and three quarters of their values. The rest gains nothing on families left out."""
        return replace(self, rounds=self.rounds * 4 // 5, share=self.share * 0.75)

    def settings(self) -> dict[str, Any]:
        """LightGBM's names for them: one thread and one order of work, so that two fits give the same bytes."""
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
    """Trees whose value, added to `lists.given`, puts gold passages first; see `fit_ranking` for the loss."""
    if not boosting.rounds or len(lists.gold) < 2 * boosting.least_rows or not np.ptp(lists.features, axis=0).any():
        return Trees(tuple(names), ())  # nothing can be split
    grown = _grown(packed(lists, tuple(names), boosting.settings(), boosting.rounds))
    found = map(tree_of, grown)
    return Trees(tuple(names), tuple(_shrunk(tree, boosting.share) for tree in found if tree.feature))


def _grown(given: bytes) -> list[Mapping[str, Any]]:
    """LightGBM's trees. Raises InputError where it cannot be loaded, or its process ends early."""
    command = [sys.executable, "-P", "-m", "hopbench.eval.training.grow", str(os.getpid())]
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
    """A tree of LightGBM's dump."""
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
