"""Rank questions, and families of data sets, by weights that were not learned from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hopbench.eval.statistics import mean_ci
from hopbench.eval.training.examples import TrainingExample, parts_of
from hopbench.eval.training.trainer import Trainer

if TYPE_CHECKING:
    import pandas as pd


SEED = 0
TEXTS = "setting model dataset embedder question type text passage title".split()
COLUMNS = {**dict.fromkeys(TEXTS, "object"), "triples": "bool", "rank": "int64", "linked": "bool"}


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A question's passages, best first, by a `model` that learned from others: `trees`, or the `linear` score alone.

    `setting` tells which others: `cross-validated`, `cross-validated apart` or `left out`.
    """

    setting: str
    model: str
    example: TrainingExample
    ranking: Sequence[str]

    def recall(self, size: int) -> float:
        """Compute the share of gold passages, of the best set, among the first `size`."""
        return self.example.question.gold.share(set(self.ranking[:size]))


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


def figures_of(held: Sequence[HeldOut]) -> Iterator[Figures]:
    """Yield the figures of each setting, model, set and embedder."""
    groups: dict[tuple[str, str, str, bool, str], list[HeldOut]] = {}
    for one in held:
        key = (one.setting, one.model, one.example.dataset, one.example.triples, one.example.embedder)
        groups.setdefault(key, []).append(one)
    for key, group in sorted(groups.items()):
        recall = np.array([one.recall(5) for one in group])
        complete = np.array([one.recall(10) == 1.0 for one in group], np.float64)
        means = float(recall.mean()), float(complete.mean())
        yield Figures(*key, len(group), means[0], _interval(recall), means[1], _interval(complete))


def table_of(held: Sequence[HeldOut]) -> pd.DataFrame:
    """Make a row per gold passage: its `rank` from 1, 0 for no candidate; whether other gold has an edge to it."""
    import pandas as pd

    rows = [
        {
            "setting": one.setting,
            "model": one.model,
            "dataset": one.example.dataset,
            "triples": one.example.triples,
            "embedder": one.example.embedder,
            "question": one.example.question.id,
            "type": one.example.question.type,
            "text": one.example.question.text,
            "passage": passage,
            "title": one.example.titles.get(passage, passage),
            "rank": one.ranking.index(passage) + 1 if passage in one.ranking else 0,
            "linked": passage in one.example.linked,
        }
        for one in held
        for passage in one.example.question.gold
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    interval = mean_ci(values, SEED)
    return (interval.low, interval.high) if interval else (float(values.mean()), float(values.mean()))


def cross_validated(
    trainer: Trainer, group: Sequence[TrainingExample], folds: int, tell: Callable[[str], None]
) -> list[HeldOut]:
    """Rank each question by weights learned from the other folds; a question is in one fold under every embedder.

    A second time, as `apart`, without learning from questions that share a gold passage with the fold, of whatever set,
    where there are some: sets made of the same facts again and again (MuSiQue's) reward weights that know the passages
    by heart. A fold is not tested where nothing would be left to learn from.
    """
    splits = _splits(group, [str(part) for part in parts_of(group, folds, SEED)])
    held = list(_tested("cross-validated", trainer, splits, tell))
    apart = []
    for name, learned, tested in splits:
        texts = {text for example in tested for text in example.evidence}
        apart.append((name, [one for one in learned if texts.isdisjoint(one.evidence)], tested))
    if any(len(one[1]) < len(other[1]) for one, other in zip(apart, splits, strict=True)):
        held += _tested("cross-validated apart", trainer, apart, tell)
    return held


def left_out(trainer: Trainer, group: Sequence[TrainingExample], tell: Callable[[str], None]) -> list[HeldOut]:
    """Rank each family of data sets by weights learned from the others; nothing where there is only one."""
    splits = _splits(group, [family(example.dataset) for example in group])
    return list(_tested("left out", trainer, splits if len(splits) > 1 else (), tell))


def family(dataset: str) -> str:
    """Return a set's name up to its first hyphen: `musique-train100` and `musique-train940` are one family."""
    return dataset.partition("-")[0]


_Split = tuple[str, Sequence[TrainingExample], Sequence[TrainingExample]]
"""The name of a split, the examples to learn from, and those to test the weights on."""


def _splits(group: Sequence[TrainingExample], parts: Sequence[str]) -> list[_Split]:
    """Make a split for each part, tested on it."""
    pairs = list(zip(group, parts, strict=True))
    return [
        (part, [one for one, own in pairs if own != part], [one for one, own in pairs if own == part])
        for part in sorted(set(parts))
    ]


def _tested(setting: str, trainer: Trainer, splits: Sequence[_Split], tell: Callable[[str], None]) -> Iterator[HeldOut]:
    for name, learned, tested in splits:
        if not learned:  # all other questions share a gold passage with these
            continue
        tell(f"{setting}: {name}")
        weights = trainer.fit(learned)
        for example in tested:
            for model, ranking in trainer.rankings(example, weights).items():
                yield HeldOut(setting, model, example, ranking)
