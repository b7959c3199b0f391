"""Learning hoprank's numbers from questions with gold passages: pool, edge models and passes, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.training.lessons import Lesson, balance
from eval.training.losses import Floats, RankedLists, fit_logistic, fit_ranking
from retrieval.errors import UnknownNameError
from retrieval.strategies.hoprank import HopRank
from retrieval.strategies.hoprank.edges import KINDS
from retrieval.strategies.hoprank.paths import Paths, Ranked, follow
from retrieval.strategies.hoprank.scoring import passes, pool_ranking, with_paths
from retrieval.strategies.hoprank.weights import EdgeModel, Weights, feature_names, score_names

PASSES = 2
LEAST_GOLD = 3  # edges to gold that a kind's model needs; with fewer, the kind says nothing
NEVER = -30.0


@dataclass(frozen=True)
class Trainer:
    """How to learn. `without` names features or kinds of edges to leave out: an ablation."""

    anchors: int = HopRank.anchors
    passes: int = PASSES
    without: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse names that nothing has."""
        known = {name for group in feature_names().values() for name in group}
        for name in sorted(self.without - known):
            raise UnknownNameError("feature or kind of edge of hoprank", name, known)

    def fit(self, group: Sequence[Lesson]) -> Weights:
        """Learn all numbers from a group of lessons."""
        worth = balance(group)
        nothing = np.zeros(0)
        ranked = [pool_ranking(lesson.candidates, nothing) for lesson in group]
        first, ranked = self._fit_ranking(group, ranked, worth)
        edges = tuple(self._fit_edges(group, worth, kind) for kind in range(len(KINDS)))
        learned = []
        for _ in range(self.passes):
            followed = [self._follow(*pair, edges) for pair in zip(group, ranked, strict=True)]
            listed = [
                Ranked(paths.chunks, with_paths(lesson.candidates, paths), nothing)
                for lesson, paths in zip(group, followed, strict=True)
            ]
            weights, ranked = self._fit_ranking(group, listed, worth)
            learned.append(weights)
        return Weights(first, edges, tuple(learned))

    def ranking(self, lesson: Lesson, weights: Weights) -> list[str]:
        """A lesson's passages, best first, under some weights."""
        *_, (last, _) = passes(lesson.candidates, weights, self.anchors, lesson.reached)
        order = np.argsort(-last.scores, kind="stable")
        return list(dict.fromkeys(lesson.passages[row] for row in last.chunks[order].tolist()))

    def _follow(self, lesson: Lesson, ranked: Ranked, edges: tuple[EdgeModel, ...]) -> Paths:
        return follow(lesson.candidates, lesson.reached, ranked, edges, self.anchors)

    def _fit_ranking(
        self, group: Sequence[Lesson], listed: Sequence[Ranked], worth: Floats
    ) -> tuple[Floats, list[Ranked]]:
        """Weights for the listed chunks' features, and the lists ranked by them."""
        features = np.concatenate([one.features for one in listed])
        names = score_names()[: features.shape[1]]
        features[:, [self._left_out(name) for name in names]] = 0.0
        start = np.cumsum([0, *(len(one.chunks) for one in listed)])[:-1]
        gold = np.concatenate([np.isin(one.chunks, lesson.gold) for one, lesson in zip(listed, group, strict=True)])
        weights = fit_ranking(RankedLists(features, gold, start, worth))
        return weights, [Ranked(one.chunks, one.features, weights) for one in listed]

    def _left_out(self, name: str) -> bool:
        return name in self.without or name.removeprefix("log_").removeprefix("path_") in self.without

    def _fit_edges(self, group: Sequence[Lesson], worth: Floats, kind: int) -> EdgeModel:
        """The model of one kind, from the edges that leave gold passages; they lead to gold or not."""
        names = feature_names()["edge"]
        features, labels, counts = [np.zeros((0, len(names)))], [np.zeros(0, bool)], [np.zeros(0)]
        for lesson, weight in zip(group, worth, strict=True):
            edges, values = lesson.reached.leaving(lesson.gold)
            chosen = edges.kind == kind
            features.append(values[chosen])
            labels.append(np.isin(edges.target[chosen], lesson.gold))
            counts.append(np.full(int(chosen.sum()), weight))
        to_gold = np.concatenate(labels)
        if to_gold.sum() < LEAST_GOLD or KINDS[kind] in self.without:
            return EdgeModel(np.zeros(len(names)), NEVER)
        values = np.concatenate(features)
        values[:, [name in self.without for name in names]] = 0.0
        return EdgeModel(*fit_logistic(values, to_gold, np.concatenate(counts)))
