"""The quality of learned weights on questions, and on families of data sets, that they were not learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from hopbench.eval.compare import mean_ci
from hopbench.eval.training.examples import TrainingExample
from hopbench.eval.training.hoprank import Trainer

SEED = 0
T = TypeVar("T")


class Progress(Protocol):
    """Called before each fit with what it is for."""

    def __call__(self, what: str, /) -> None:
        """Show it."""
        ...


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the questions of a data set with one embedder, each with its 95% bootstrap interval.

    `model` is `trees` or `linear`: both from one fit, the linear score being what trees add to.
    """

    setting: str
    model: str
    dataset: str
    triples: bool
    embedder: str
    questions: int
    recall_at_5: float
    recall_interval: tuple[float, float]
    all_gold_at_10: float
    all_gold_interval: tuple[float, float]


def cross_validated(trainer: Trainer, group: Sequence[TrainingExample], folds: int, tell: Progress) -> list[Figures]:
    """Each question ranked by weights learned from the other folds; a question is in one fold under every embedder."""
    keys = sorted({(example.dataset, example.question.id) for example in group})
    shuffled = np.random.default_rng(SEED).permutation(len(keys))
    fold_of = {key: int(place) % folds for key, place in zip(keys, shuffled, strict=True)}

    def fold(example: TrainingExample) -> int:
        return fold_of[example.dataset, example.question.id]

    return _tested("cross-validated", trainer, group, fold, range(folds), tell)


def left_out(trainer: Trainer, group: Sequence[TrainingExample], tell: Progress) -> list[Figures]:
    """Each family of data sets ranked by weights learned from the others; nothing where there is only one."""
    names = sorted({family(example.dataset) for example in group})
    parts = names if len(names) > 1 else ()
    return _tested("left out", trainer, group, lambda example: family(example.dataset), parts, tell)


def family(dataset: str) -> str:
    """What comes before the first hyphen of a set's name: `musique-train100` and `musique-train940` are one family."""
    return dataset.partition("-")[0]


def _tested(
    setting: str,
    trainer: Trainer,
    group: Sequence[TrainingExample],
    part_of: Callable[[TrainingExample], T],
    parts: Sequence[T],
    tell: Progress,
) -> list[Figures]:
    ranked: dict[str, list[tuple[TrainingExample, list[str]]]] = {}
    for part in parts:
        tell(f"{setting}: {part}")
        weights = trainer.fit([example for example in group if part_of(example) != part])
        tested = [example for example in group if part_of(example) == part]
        for example in tested:
            for model, ranking in trainer.rankings(example, weights).items():
                ranked.setdefault(model, []).append((example, ranking))
    return [figure for model, of_model in ranked.items() for figure in figures_of(setting, model, of_model)]


def figures_of(setting: str, model: str, ranked: Sequence[tuple[TrainingExample, list[str]]]) -> Iterator[Figures]:
    """The figures of rankings, a set and embedder each."""
    for key in sorted({_key(example) for example, _ in ranked}):
        chosen = [pair for pair in ranked if _key(pair[0]) == key]
        recall = np.array([_recall(example, ranking[:5]) for example, ranking in chosen])
        complete = np.array([_recall(example, ranking[:10]) == 1.0 for example, ranking in chosen], np.float64)
        means = float(recall.mean()), float(complete.mean())
        first, second = _interval(recall), _interval(complete)
        yield Figures(setting, model, *key, len(chosen), means[0], first, means[1], second)


def _key(example: TrainingExample) -> tuple[str, bool, str]:
    return example.dataset, example.triples, example.embedder


def _recall(example: TrainingExample, top: Sequence[str]) -> float:
    gold = set(example.question.gold)
    return len(gold & set(top)) / len(gold)


def _interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    if len(values) < 2:
        return float(values.mean()), float(values.mean())
    interval = mean_ci(values, SEED)
    return (interval.low, interval.high) if interval else (float(values.mean()), float(values.mean()))
