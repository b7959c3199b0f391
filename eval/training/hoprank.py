"""Learning hoprank's numbers from questions with gold passages: pool, edge models and passes, one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from eval.training.losses import Floats, RankedLists, fit_logistic, fit_ranking
from eval.types import Benchmark
from retrieval.index import Batch, Index
from retrieval.strategies.hoprank.candidates import Candidates
from retrieval.strategies.hoprank.edges import KINDS
from retrieval.strategies.hoprank.paths import Paths, Ranked, Reached, follow
from retrieval.strategies.hoprank.scoring import passes, pool_ranking, with_paths
from retrieval.strategies.hoprank.strategy import HopRank
from retrieval.strategies.hoprank.weights import EdgeModel, Weights, feature_names, score_names
from retrieval.types import Counters

PASSES = 2
NEVER = -9.0  # the bias of a kind of edge that led to gold too rarely to learn from
LEAST_GOLD = 3


@dataclass(frozen=True, eq=False)
class Lesson:
    """A question to learn from: its candidates, the chunks of its gold passages, and the data set it belongs to."""

    dataset: str
    candidates: Candidates
    gold: np.ndarray[tuple[int], np.dtype[np.int64]]
    passages: int
    type: str
    reached: Reached = field(init=False)

    def __post_init__(self) -> None:
        """Edges and their features are kept: every fold asks for them again."""
        object.__setattr__(self, "reached", Reached(self.candidates))


def lessons(benchmark: Benchmark, index: Index) -> Iterator[Lesson]:
    """The questions of a benchmark as they stand before anything is learned."""
    rows_of: dict[str, list[int]] = {}
    for row, chunk in enumerate(index.chunks):
        rows_of.setdefault(chunk.passage_id, []).append(row)
    batch = Batch(index, [question.question for question in benchmark.questions])
    every = HopRank().candidates(batch, Counters())
    for question, candidates in zip(benchmark.questions, every, strict=True):
        gold = sorted(row for passage in question.gold for row in rows_of[passage])
        yield Lesson(benchmark.name, candidates, np.array(gold, np.int64), len(question.gold), question.type)


def balance(group: Sequence[Lesson]) -> Floats:
    """What each lesson counts: data sets weigh the same, whatever their size."""
    sizes = Counter(lesson.dataset for lesson in group)
    return np.array([1.0 / sizes[lesson.dataset] for lesson in group])


@dataclass(frozen=True)
class Trainer:
    """How to learn. `without` are names of features or kinds of edges to leave out, for ablations."""

    anchors: int = 8
    passes: int = PASSES
    without: frozenset[str] = frozenset()

    def fit(self, group: Sequence[Lesson]) -> Weights:
        """Learn all numbers from a group of lessons."""
        weight = balance(group)
        names = feature_names()
        ranked = [pool_ranking(lesson.candidates, np.zeros(len(names["base"]))) for lesson in group]
        first = self._fit_ranking(group, ranked, weight)
        ranked = [Ranked(one.chunks, one.features, first) for one in ranked]
        edges = tuple(self._fit_edges(group, weight, kind) for kind in range(len(KINDS)))
        learned = []
        for _ in range(self.passes):
            followed = [self._follow(*pair, edges) for pair in zip(group, ranked, strict=True)]
            features = [with_paths(lesson.candidates, paths) for lesson, paths in zip(group, followed, strict=True)]
            blank = np.zeros(features[0].shape[1])
            ranked = [Ranked(p.chunks, x, blank) for p, x in zip(followed, features, strict=True)]
            learned.append(self._fit_ranking(group, ranked, weight))
            ranked = [Ranked(one.chunks, one.features, learned[-1]) for one in ranked]
        return Weights(first, edges, tuple(learned))

    def _follow(self, lesson: Lesson, ranked: Ranked, edges: tuple[EdgeModel, ...]) -> Paths:
        return follow(lesson.candidates, lesson.reached, ranked, edges, self.anchors)

    def _fit_ranking(self, group: Sequence[Lesson], ranked: Sequence[Ranked], weight: Floats) -> Floats:
        names = score_names()
        features = np.concatenate([one.features for one in ranked])
        features[:, [name in self.without for name in names[: features.shape[1]]]] = 0.0
        sizes = np.cumsum([0] + [len(one.chunks) for one in ranked])
        gold = np.concatenate([np.isin(r.chunks, lesson.gold) for r, lesson in zip(ranked, group, strict=True)])
        return fit_ranking(RankedLists(features, gold, sizes[:-1], weight))

    def _fit_edges(self, group: Sequence[Lesson], weight: Floats, kind: int) -> EdgeModel:
        """The model of one kind, from the edges that leave gold passages; they lead to gold or not."""
        names = feature_names()["edge"]
        features, labels, counts = [], [], []
        for lesson, worth in zip(group, weight, strict=True):
            edges, values = lesson.reached.leaving(lesson.gold)
            chosen = edges.kind == kind
            features.append(values[chosen])
            labels.append(np.isin(edges.target[chosen], lesson.gold))
            counts.append(np.full(int(chosen.sum()), worth))
        y = np.concatenate(labels)
        if y.sum() < LEAST_GOLD or KINDS[kind] in self.without:
            return EdgeModel(np.zeros(len(names)), NEVER if KINDS[kind] not in self.without else -30.0)
        x = np.concatenate(features)
        x[:, [name in self.without for name in names]] = 0.0
        return EdgeModel(*fit_logistic(x, y, np.concatenate(counts)))

    def ranking(self, lesson: Lesson, weights: Weights) -> list[int]:
        """Chunks of a lesson, best first, under some weights."""
        *_, (last, _) = passes(lesson.candidates, weights, self.anchors, lesson.reached)
        order = np.argsort(-last.scores, kind="stable")
        return last.chunks[order].tolist()
