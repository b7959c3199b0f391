"""The quality of learned weights on questions, and on data sets, that they were not learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from hopbench.eval.compare import mean_ci
from hopbench.eval.training.hoprank import Trainer
from hopbench.eval.training.lessons import Lesson
from hopbench.retrieval.strategies.hoprank.weights import Weights

SEED = 0
T = TypeVar("T")


class Progress(Protocol):
    """Called before each fit with what it is for."""

    def __call__(self, what: str, /) -> None:
        """Show it."""
        ...


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the questions of a data set with one embedder, each with its 95% bootstrap interval."""

    setting: str
    dataset: str
    triples: bool
    embedder: str
    questions: int
    recall_at_5: float
    recall_interval: tuple[float, float]
    all_gold_at_10: float
    all_gold_interval: tuple[float, float]


def cross_validated(trainer: Trainer, group: Sequence[Lesson], folds: int, tell: Progress) -> list[Figures]:
    """Each question ranked by weights learned from the other folds; a question is in one fold under every embedder."""
    keys = sorted({(lesson.dataset, lesson.question.id) for lesson in group})
    shuffled = np.random.default_rng(SEED).permutation(len(keys))
    fold_of = {key: int(place) % folds for key, place in zip(keys, shuffled, strict=True)}

    def fold(lesson: Lesson) -> int:
        return fold_of[lesson.dataset, lesson.question.id]

    return _tested("cross-validated", trainer, group, fold, range(folds), tell)


def left_out(trainer: Trainer, group: Sequence[Lesson], tell: Progress) -> list[Figures]:
    """Each data set ranked by weights learned from the others; nothing where there is only one."""
    names = sorted({lesson.dataset for lesson in group})
    return _tested("left out", trainer, group, lambda lesson: lesson.dataset, names if len(names) > 1 else (), tell)


def _tested(
    setting: str,
    trainer: Trainer,
    group: Sequence[Lesson],
    part_of: Callable[[Lesson], T],
    parts: Sequence[T],
    tell: Progress,
) -> list[Figures]:
    ranked: list[tuple[Lesson, list[str]]] = []
    for part in parts:
        tell(f"{setting}: {part}")
        weights = trainer.fit([lesson for lesson in group if part_of(lesson) != part])
        ranked += ranked_by(trainer, weights, [lesson for lesson in group if part_of(lesson) == part])
    return list(_figures(setting, ranked))


def ranked_by(trainer: Trainer, weights: Weights, group: Sequence[Lesson]) -> list[tuple[Lesson, list[str]]]:
    """Lessons with their rankings under some weights."""
    return [(lesson, trainer.ranking(lesson, weights)) for lesson in group]


def _figures(setting: str, ranked: Sequence[tuple[Lesson, list[str]]]) -> Iterator[Figures]:
    for key in sorted({_key(lesson) for lesson, _ in ranked}):
        chosen = [pair for pair in ranked if _key(pair[0]) == key]
        recall = np.array([_recall(lesson, ranking[:5]) for lesson, ranking in chosen])
        complete = np.array([_recall(lesson, ranking[:10]) == 1.0 for lesson, ranking in chosen], np.float64)
        means = float(recall.mean()), float(complete.mean())
        first, second = _interval(recall), _interval(complete)
        yield Figures(setting, *key, len(chosen), means[0], first, means[1], second)


def _key(lesson: Lesson) -> tuple[str, bool, str]:
    return lesson.dataset, lesson.triples, lesson.embedder


def _recall(lesson: Lesson, top: Sequence[str]) -> float:
    gold = set(lesson.question.gold)
    return len(gold & set(top)) / len(gold)


def _interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    if len(values) < 2:
        return float(values.mean()), float(values.mean())
    interval = mean_ci(values, SEED)
    return (interval.low, interval.high) if interval else (float(values.mean()), float(values.mean()))
