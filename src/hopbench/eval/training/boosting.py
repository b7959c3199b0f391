"""Learn hoprank's trees: first ones on top of the linear score, second ones on top of these."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.training.examples import TrainingExample, parts_of
from hopbench.eval.training.fitting import Floats, RankedLists, packed
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.pair_features import tree_features, tree_names
from hopbench.retrieval.strategies.hoprank.scoring import in_their_order
from hopbench.retrieval.strategies.hoprank.trees import Tree, Trees
from hopbench.retrieval.strategies.hoprank.words import Flags
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.processes import usable_processors


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
    """Fit trees whose value, added to `lists.given`, puts gold passages first; see `fit_ranking` for the loss.

    Raises InputError where LightGBM cannot be loaded, or its process ends early.
    """
    if not boosting.rounds or len(lists.gold) < 2 * boosting.least_rows or not np.ptp(lists.features, axis=0).any():
        return Trees(tuple(names), ())  # nothing can be split
    command = [sys.executable, "-P", "-m", "hopbench.eval.training.fitting", str(os.getpid())]
    given = packed(lists, tuple(names), boosting.settings(), boosting.rounds)
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(
            f"LightGBM, which grows hoprank's trees, ended with: {lines[-1]}; it needs the OpenMP runtime (Debian: "
            "libgomp1) and memory for the candidates of all questions; --rounds 0 learns the linear score alone"
        )
    trees = [tree for tree in map(tree_of, json.loads(done.stdout.splitlines()[-1])) if tree.feature]
    share = boosting.share
    return Trees(tuple(names), tuple(replace(tree, value=[share * value for value in tree.value]) for tree in trees))


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


PARTS, PARTS_SEED = 3, 1


def fit_both(
    group: Sequence[TrainingExample],
    worth: Floats,
    listed: Callable[[TrainingExample], ListFacts],
    boosting: Boosting,
    seen: Flags,
    *,
    second: bool = True,
) -> tuple[Trees, Trees]:
    """Fit first trees to examples of weight `worth` (n,), and `second` ones on top.

    `listed` reads the facts of an example after the passes; `seen` (f,) tells which features the trees may use. What
    second trees learn of a question comes of first ones that were grown without it, on two of `PARTS`: those that know
    a question are surer of its order than they would be of any other. First ones and those of parts grow at the same
    time, a process on each processor.
    """
    first = [_list_of(example, listed(example), seen) for example in group]
    part_of = np.array(parts_of(group, PARTS, PARTS_SEED))
    parts = range(PARTS if second and len(set(part_of)) > 1 else 0)
    chosen = [np.arange(len(group)), *(np.flatnonzero(part_of != part) for part in parts)]
    with ThreadPoolExecutor(usable_processors()) as pool:
        trees, *judges = pool.map(lambda rows: _fit([first[row] for row in rows], worth[rows], boosting), chosen)
    if not judges or not trees.trees:
        return trees, Trees(tree_names(), ())
    lists = []
    for example, one, part in zip(group, first, part_of, strict=True):
        facts = listed(example)  # anew: those of all examples take some gigabytes
        lists.append(_list_of(example, in_their_order(facts, judges[part].value(one[0])), seen))
    # Fewer second trees, and three quarters of their values: more gains nothing.
    fewer = replace(boosting, rounds=boosting.rounds * 4 // 5, share=boosting.share * 0.75)
    return trees, _fit(lists, worth, fewer)


_List = tuple[Floats, NDArray[np.bool_], Floats]


def _list_of(example: TrainingExample, facts: ListFacts, seen: Flags) -> _List:
    """A list for trees to order: features (k, f) of the chunks that trees read, which are gold, their score so far."""
    read = slice(facts.read)
    return tree_features(facts) * seen, np.isin(facts.chunks[read], example.gold), facts.score[read]


def _fit(lists: Sequence[_List], worth: Floats, boosting: Boosting) -> Trees:
    features, gold, score = (np.concatenate(arrays) for arrays in zip(*lists, strict=True))
    start = np.cumsum([0, *(len(one[1]) for one in lists)])[:-1]
    return fit_trees(RankedLists(features, gold, start, worth, score), tree_names(), boosting)
