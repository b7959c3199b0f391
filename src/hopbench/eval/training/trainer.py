"""Learn hoprank from questions with gold passages: pool, edge models, passes and trees, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.training.boosting import Boosting, fit_lists
from hopbench.eval.training.examples import TrainingExample, balance
from hopbench.eval.training.fitting import Floats, RankedLists, fit_logistic, fit_ranking
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.edges import EDGE_FEATURES, KINDS, TRIPLE, TRIPLE_FEATURES
from hopbench.retrieval.strategies.hoprank.paths import (
    OVER_TRIPLES,
    SCORE_FEATURES,
    Ranked,
    follow,
    pool_ranking,
    with_paths,
)
from hopbench.retrieval.strategies.hoprank.strategy import Scores
from hopbench.retrieval.strategies.hoprank.tree_features import GROUPS, TREE_FEATURES, tree_lists
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.weights import FEATURES, Weights, passes
from hopbench.retrieval.support.errors import UnknownNameError

EDGE = "edge"


def spelled_out(without: Iterable[str]) -> frozenset[str]:
    """Expand names of groups to their features; features, kinds of edges and `edge` stay.

    UnknownNameError for what is none of them.
    """
    known = {EDGE, *GROUPS, *(name for group in FEATURES.values() for name in group)}
    found: set[str] = set()
    for name in sorted(without):
        if name not in known:
            raise UnknownNameError("feature, group of features or kind of edge of hoprank", name, known)
        found |= set(GROUPS.get(name, {name}))
    return frozenset(found)


PASSES = 2
MIN_GOLD_EDGES = 3  # edges to gold that a kind's model needs; with fewer, the kind says nothing
NEVER = -30.0
BEST_EDGE = frozenset(f"best_{name}" for name in EDGE_FEATURES)


@dataclass(frozen=True)
class Trainer:
    """Learns hoprank. `without` names what an ablation leaves out (`spelled_out`); `edge` is all features of edges.

    No tree is grown in a `boosting` of no rounds.
    """

    anchors: int = HopRank.anchors
    passes: int = PASSES
    without: frozenset[str] = frozenset()
    boosting: Boosting = field(default_factory=Boosting)

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        _ = self._without

    @cached_property
    def _without(self) -> frozenset[str]:
        return spelled_out(self.without)

    def fit(self, group: Sequence[TrainingExample]) -> Weights:
        """Learn all numbers from a group of examples; those with triples only fit the weights of paths over triples.

        So a graph without triples is ranked as if there were none; where every example has some, all are learned from.
        """
        stated = [example for example in group if example.triples]
        plain = [example for example in group if not example.triples] or stated
        worth = balance(plain)
        nothing = np.zeros(0)
        ranked = [pool_ranking(example.candidates, nothing) for example in plain]
        first, ranked = self._fit_ranking(plain, ranked, worth)
        edges = tuple(self._fit_edges(plain, worth, kind) for kind in range(TRIPLE))
        edges = (*edges, self._fit_edges(stated, balance(stated), TRIPLE))
        with_triples = [pool_ranking(example.candidates, first) for example in stated]
        learned = []
        for _ in range(self.passes):
            weights, ranked = self._fit_ranking(plain, self._list(plain, ranked, edges), worth)
            more, with_triples = self._fit_triples(stated, self._list(stated, with_triples, edges), weights)
            learned.append(np.concatenate([weights, more]))
        linear = Weights(first, edges, tuple(learned))
        return replace(linear, trees=self._fit_trees(plain, worth, linear))

    def rankings(self, example: TrainingExample, weights: Weights) -> dict[str, list[str]]:
        """Rank an example's passages by model: the linear score alone, and with trees where there are some."""
        passed = list(passes(example.candidates, weights, self.anchors, example.reached))
        last, paths = passed[-1]
        results = {"linear": Scores.of(last, weights.trees)}
        if paths is not None and weights.trees.trees:
            results["trees"] = Scores.of(last, weights.trees, tree_lists(example.candidates, [passed])[0])
        return {
            model: list(dict.fromkeys(example.passages[row] for row in scores.chunks.tolist()))
            for model, scores in results.items()
        }

    def _fit_trees(self, group: Sequence[TrainingExample], worth: Floats, linear: Weights) -> Trees:
        """Fit trees that reorder the best of the last pass."""
        if not self.boosting.rounds or not self.anchors:
            return Trees(TREE_FEATURES, ())
        seen = np.array([not self._left_out(name) for name in TREE_FEATURES])
        passed = (list(passes(one.candidates, linear, self.anchors, one.reached)) for one in group)
        return fit_lists(group, passed, worth, seen, self.boosting)

    def _list(
        self, group: Sequence[TrainingExample], ranked: Sequence[Ranked], edges: Sequence[Floats]
    ) -> list[Ranked]:
        """Follow paths from the best of each example, and list their targets with features."""
        listed = []
        for example, before in zip(group, ranked, strict=True):
            paths = follow(example.candidates, example.reached, before, edges, self.anchors)
            listed.append(Ranked(paths.chunks, with_paths(example.candidates, paths), np.zeros(0)))
        return listed

    def _fit_ranking(
        self, group: Sequence[TrainingExample], listed: Sequence[Ranked], worth: Floats
    ) -> tuple[Floats, list[Ranked]]:
        """Fit weights of the listed chunks' features, without paths over triples, and rank the lists by them."""
        size = min(listed[0].features.shape[1], len(SCORE_FEATURES) - len(OVER_TRIPLES))
        features = np.concatenate([ranked.features[:, :size] for ranked in listed])
        features[:, [self._left_out(name) for name in SCORE_FEATURES[:size]]] = 0.0
        weights = fit_ranking(RankedLists(features, _gold(group, listed), _starts(listed), worth))
        return weights, [Ranked(ranked.chunks, ranked.features[:, :size], weights) for ranked in listed]

    def _fit_triples(
        self, group: Sequence[TrainingExample], listed: Sequence[Ranked], weights: Floats
    ) -> tuple[Floats, list[Ranked]]:
        """Fit weights of paths over triples on top of a fixed score, and rank the lists by all."""
        size = len(OVER_TRIPLES)
        if not group or "triple" in self._without:
            more = np.zeros(size)
        else:
            features = np.concatenate([ranked.features for ranked in listed])
            given = features[:, :-size] @ weights
            start, gold = _starts(listed), _gold(group, listed)
            more = fit_ranking(RankedLists(features[:, -size:], gold, start, balance(group), given))
        both = np.concatenate([weights, more])
        return more, [Ranked(ranked.chunks, ranked.features, both) for ranked in listed]

    def _left_out(self, name: str) -> bool:
        bare = name.removeprefix("log_").removeprefix("path_")
        of_edge = name.removeprefix("best_") if name in BEST_EDGE else ""
        return not self._without.isdisjoint({name, bare, of_edge, EDGE if of_edge else ""})

    def _fit_edges(self, group: Sequence[TrainingExample], worth: Floats, kind: int) -> Floats:
        """Fit the model of one kind of edge on those that leave gold passages, to gold or not."""
        names = [*EDGE_FEATURES, *(TRIPLE_FEATURES if kind == TRIPLE else ())]
        features, labels, counts = [np.zeros((0, len(names)))], [np.zeros(0, bool)], [np.zeros(0)]
        for example, weight in zip(group, worth, strict=True):
            edges, values = example.reached.leaving(example.gold)
            chosen = edges.kind == kind
            features.append(values[chosen, : len(names)])
            labels.append(np.isin(edges.target[chosen], example.gold))
            counts.append(np.full(int(chosen.sum()), weight))
        to_gold = np.concatenate(labels)
        if to_gold.sum() < MIN_GOLD_EDGES or KINDS[kind] in self._without:
            return np.append(np.zeros(len(names)), NEVER)
        values = np.concatenate(features)
        values[:, [EDGE in self._without or name in self._without for name in names]] = 0.0
        return np.append(*fit_logistic(values, to_gold, np.concatenate(counts)))


def _starts(listed: Sequence[Ranked]) -> NDArray[np.int64]:
    return np.cumsum([0, *(len(ranked.chunks) for ranked in listed)])[:-1]


def _gold(group: Sequence[TrainingExample], listed: Sequence[Ranked]) -> NDArray[np.bool_]:
    return np.concatenate([np.isin(ranked.chunks, example.gold) for ranked, example in zip(listed, group, strict=True)])
