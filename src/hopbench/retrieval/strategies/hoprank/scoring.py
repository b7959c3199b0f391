"""From a question to scored candidates: the pool first, then passes over paths, each from the best of the last.

Trees then put the best of the last pass in order: what they say is added to the linear score. Second trees judge the
best of these once more, by the order that the first ones found: what stands above a candidate, and what leads to it, is
known better by then (a cascade of rankers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.list_features import tree_features
from hopbench.retrieval.strategies.hoprank.listing import list_facts
from hopbench.retrieval.strategies.hoprank.paths import EdgeTable, Passed, Paths, Ranked, follow
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.weights import Weights
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers

GAP = 1e-6
READ_AGAIN = 25  # of those that first trees read the best ones, which the second trees do


def pool_ranking(candidates: Candidates, weights: Floats) -> Ranked:
    """The pool by its base features alone."""
    chunks = candidates.pool.chunks
    return Ranked(chunks, candidates.features(chunks), weights)


def with_paths(candidates: Candidates, paths: Paths) -> Floats:
    """Base and path features of the chunks that paths list, (c, 24), (c, 26) with triples."""
    return np.concatenate([candidates.features(paths.chunks), paths.features], axis=1)


def passes(
    candidates: Candidates, weights: Weights, anchors: int, reached: EdgeTable | None = None
) -> Iterator[tuple[Ranked, Paths | None]]:
    """The pool's ranking, then the ranking after each pass with its paths; none is made without anchors.

    Of several questions their chunks are keys (`questions`).
    """
    reached = reached or EdgeTable(candidates)
    ranked = pool_ranking(candidates, weights.first)
    yield ranked, None
    for learned in weights.passes if anchors else ():
        paths = follow(candidates, reached, ranked, weights.edges, anchors)
        features = with_paths(candidates, paths)
        ranked = Ranked(paths.chunks, features, learned[: features.shape[1]])
        yield ranked, paths


def of_each(candidates: Candidates, passed: Passed) -> list[Passed]:
    """The passes of each question by itself, over chunks in place of keys."""
    size = candidates.corpus.chunks, len(candidates.questions)
    by_pass = [
        zip(ranked.of_each(*size), [None] * size[1] if paths is None else paths.of_each(*size), strict=True)
        for ranked, paths in passed
    ]
    return list(zip(*by_pass, strict=True))


@dataclass(frozen=True, eq=False)
class Judged:
    """Chunks (k,), best first by the score they had, with their `features` (k, f) for the `trees` that judge them."""

    chunks: Numbers
    features: Floats
    trees: Trees

    @cached_property
    def value(self) -> Floats:
        """What the trees add to the scores, (k,)."""
        return self.trees.value(self.features)


def judged(candidates: Candidates, asked: Sequence[Passed], weights: Weights) -> list[list[Judged]]:
    """What trees say of the best of each question's last pass, then second trees of the best of these.

    Nothing without trees, and where no path was followed.
    """
    found: list[list[Judged]] = [[] for _ in asked]
    if not weights.trees.trees or not all(passed[-1][1] for passed in asked):
        return found
    for facts in list_facts(candidates, asked):
        first = _judged_by(facts, weights.trees)
        more = [first]
        if weights.second_trees.trees:
            again = in_their_order(facts, np.stack([one.value for one in first]))
            more.append(_judged_by(again, weights.second_trees))
        for number, *both in zip(facts.of.tolist(), *more, strict=True):
            found[number] = both
    return found


def _judged_by(facts: ListFacts, trees: Trees) -> list[Judged]:
    """Those of each list that are read."""
    return [
        Judged(chunks, features, trees)
        for chunks, features in zip(facts.chunks[:, : facts.read], tree_features(facts), strict=True)
    ]


def in_their_order(facts: ListFacts, value: Floats) -> ListFacts:
    """The facts in the order that trees found, which added a `value` (n, r) to the scores of those they read."""
    rows = np.arange(facts.read)
    lists = facts.score.reshape(-1, facts.score.shape[-1]), value.reshape(-1, facts.read)
    score = np.stack([judged_scores(scores, rows, added)[0] for scores, added in zip(*lists, strict=True)])
    return facts.reordered(score.reshape(facts.score.shape), READ_AGAIN)


def judged_scores(scores: Floats, rows: Numbers, value: Floats) -> tuple[Floats, float]:
    """Scores with what trees add to some rows, and what is added to the others, so that none passes a judged one."""
    scores = scores.copy()
    scores[rows] += value
    others = np.ones(len(scores), bool)
    others[rows] = False
    least, best = float(scores[rows].min()), float(scores[others].max(initial=-np.inf))
    lowered = min(0.0, least - best - GAP)
    scores[others] += lowered
    return scores, lowered
