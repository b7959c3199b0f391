"""The quality of learned weights on questions, and on families of data sets, that they were not learned from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hopbench.eval.compare import mean_ci
from hopbench.eval.training.examples import TrainingExample, parts_of
from hopbench.eval.training.hoprank import Trainer

SEED = 0


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
    """Each question ranked by weights learned from the other folds; a question is in one fold under every embedder.

    A second time, as `apart`, without learning from questions that share a gold passage with the fold, where there are
    some: sets made of the same facts again and again (MuSiQue's) reward weights that know the passages by heart.
    """
    splits = _splits(group, [str(part) for part in parts_of(group, folds, SEED)])
    figures = _tested("cross-validated", trainer, splits, tell)
    apart = [split.apart() for split in splits]
    if any(len(one.learned) < len(other.learned) for one, other in zip(apart, splits, strict=True)):
        figures += _tested("cross-validated apart", trainer, apart, tell)
    return figures


def left_out(trainer: Trainer, group: Sequence[TrainingExample], tell: Progress) -> list[Figures]:
    """Each family of data sets ranked by weights learned from the others; nothing where there is only one."""
    splits = _splits(group, [family(example.dataset) for example in group])
    return _tested("left out", trainer, splits if len(splits) > 1 else (), tell)


def family(dataset: str) -> str:
    """What comes before the first hyphen of a set's name: `musique-train100` and `musique-train940` are one family."""
    return dataset.partition("-")[0]


@dataclass(frozen=True, slots=True)
class _Split:
    """Examples that are learned from, and those that the weights are tested on."""

    name: str
    learned: Sequence[TrainingExample]
    tested: Sequence[TrainingExample]

    def apart(self) -> _Split:
        """The split without learned examples that share a gold passage with a tested one."""
        held = {passage for example in self.tested for passage in _gold(example)}
        return replace(self, learned=[example for example in self.learned if held.isdisjoint(_gold(example))])


def _splits(group: Sequence[TrainingExample], parts: Sequence[str]) -> list[_Split]:
    """A split for each part that examples are in, tested on it."""
    pairs = list(zip(group, parts, strict=True))
    return [
        _Split(part, [one for one, own in pairs if own != part], [one for one, own in pairs if own == part])
        for part in sorted(set(parts))
    ]


def _gold(example: TrainingExample) -> list[tuple[str, str]]:
    return [(example.dataset, passage) for passage in example.question.gold]


def _tested(setting: str, trainer: Trainer, splits: Sequence[_Split], tell: Progress) -> list[Figures]:
    ranked: dict[str, list[tuple[TrainingExample, list[str]]]] = {}
    for split in splits:
        tell(f"{setting}: {split.name}")
        weights = trainer.fit(split.learned)
        for example in split.tested:
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
