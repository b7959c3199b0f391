"""Questions ranked by weights that were not learned from them: each with the ranks of its gold passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hopbench.eval.compare import mean_ci
from hopbench.eval.training.examples import TrainingExample

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
        """The share of gold passages, of the best set, among the first ones."""
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
    """The figures of each setting, model, set and embedder."""
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
    """A row per gold passage: its `rank` from 1, 0 for no candidate; whether other gold has an edge to it."""
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
    if len(values) < 2:
        return float(values.mean()), float(values.mean())
    interval = mean_ci(values, SEED)
    return (interval.low, interval.high) if interval else (float(values.mean()), float(values.mean()))
