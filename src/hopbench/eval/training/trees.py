"""Learning hoprank's trees: first ones on top of the linear score, second ones on top of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.training.boosting import Boosting, fit_trees
from hopbench.eval.training.examples import TrainingExample, parts_of
from hopbench.eval.training.losses import Floats, RankedLists
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.list_features import tree_features, tree_names
from hopbench.retrieval.strategies.hoprank.scoring import in_their_order
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.words import Flags, Numbers
from hopbench.retrieval.support.forked import usable_processors

PARTS, SEED = 3, 1


@dataclass(frozen=True)
class TreeTrainer:
    """How trees are grown; `seen` (f,) tells which features they may use, `second` whether second ones are grown."""

    boosting: Boosting
    seen: Flags
    second: bool = True

    def fit(
        self, group: Sequence[TrainingExample], listed: Callable[[TrainingExample], ListFacts], worth: Floats
    ) -> tuple[Trees, Trees]:
        """First and second trees for examples which count `worth` (n,); `listed` reads the facts after their passes.

        What second trees learn of a question comes of first ones that were grown without it, on two of `PARTS`: those
        that know a question are surer of its order than they would be of any other. First ones and those of parts grow
        at the same time, a process on each processor.
        """
        first = [_List.of(example, listed(example)) for example in group]
        part_of = np.array(parts_of(group, PARTS, SEED))
        parts = range(PARTS if self.second and len(set(part_of)) > 1 else 0)
        chosen = [np.arange(len(group)), *(np.flatnonzero(part_of != part) for part in parts)]

        def grown(rows: Numbers) -> Trees:
            return self._grown([first[row] for row in rows], worth[rows], self.boosting)

        with ThreadPoolExecutor(usable_processors()) as pool:
            trees, *judges = pool.map(grown, chosen)
        if not judges or not trees.trees:
            return trees, Trees(tree_names(), ())
        second = []
        for example, one, part in zip(group, first, part_of, strict=True):
            value = judges[part].value(one.features * self.seen)
            facts = listed(example)  # anew: those of all examples take some gigabytes
            second.append(_List.of(example, in_their_order(facts, value)))
        return trees, self._grown(second, worth, self.boosting.second())

    def _grown(self, lists: Sequence[_List], worth: Floats, boosting: Boosting) -> Trees:
        features = np.concatenate([one.features for one in lists]) * self.seen
        gold, score = (np.concatenate([getattr(one, name) for one in lists]) for name in ("gold", "score"))
        start = np.cumsum([0, *(len(one.gold) for one in lists)])[:-1]
        return fit_trees(RankedLists(features, gold, start, worth, score), tree_names(), boosting)


@dataclass(frozen=True, eq=False)
class _List:
    """What trees are to put in order: the features (k, f) of chunks, which are gold, and the score they have."""

    features: Floats
    gold: NDArray[np.bool_]
    score: Floats

    @classmethod
    def of(cls, example: TrainingExample, facts: ListFacts) -> _List:
        """Those of an example that are read."""
        read = slice(facts.read)
        return cls(tree_features(facts), np.isin(facts.chunks[read], example.gold), facts.score[read])
