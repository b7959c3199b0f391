"""Learning hoprank's trees: first ones on top of the linear score, second ones on top of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.training.boosting import Boosting, fit_trees
from hopbench.eval.training.examples import TrainingExample, parts_of
from hopbench.eval.training.losses import Floats, RankedLists
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts, list_facts
from hopbench.retrieval.strategies.hoprank.list_features import tree_features, tree_names
from hopbench.retrieval.strategies.hoprank.scoring import Passed, again
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.words import Flags

PARTS, SEED = 3, 1


@dataclass(frozen=True)
class TreeTrainer:
    """How trees are grown; `seen` (f,) tells which features they may use."""

    boosting: Boosting
    seen: Flags

    def fit(self, group: Sequence[TrainingExample], passed: Sequence[Passed], worth: Floats) -> tuple[Trees, Trees]:
        """First and second trees for examples after their passes, which count `worth` (n,).

        What second trees learn of a question comes of first ones that were grown without it, on two of `PARTS`: those
        that know a question are surer of its order than they would be of any other.
        """
        pairs = list(zip(group, passed, strict=True))
        first = [_List.of(example, list_facts(example.candidates, one)) for example, one in pairs]
        trees = self._grown(first, worth, self.boosting)
        part_of = np.array(parts_of(group, PARTS, SEED))
        if not trees.trees or len(set(part_of)) < 2:
            return trees, Trees(tree_names(), ())
        judges = []
        for part in range(PARTS):
            others = np.flatnonzero(part_of != part)
            judges.append(self._grown([first[row] for row in others], worth[others], self.boosting))
        second = []
        for (example, one), listed, part in zip(pairs, first, part_of, strict=True):
            value = judges[part].value(listed.features * self.seen)
            second.append(_List.of(example, again(list_facts(example.candidates, one), value)))
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
