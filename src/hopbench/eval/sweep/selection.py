"""How much of a winner's lead is luck: choosing the best of many on the questions that score it flatters it.

The choice is repeated on bootstrap resamples of the questions and scored on the questions each resample left out
(Efron and Tibshirani, 1997; Cawley and Talbot, JMLR 2010), so the estimate is of the whole procedure, choice included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hopbench.eval.metrics import sign_of, worst_of
from hopbench.eval.sweep.results import Result
from hopbench.retrieval.support.arithmetic import summable

RESAMPLES = 1_000
PRINTED = 3  # decimals of a metric, wherever it is shown
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """`shown` is the winner's mean on the questions that chose it; `honest` is what the choice gives on questions left
    out, with the 2.5 and 97.5 percentiles of the resamples. `chosen` is the share of the resamples that the winner
    wins, each shared by all that tie there.
    """

    shown: float
    honest: float
    low: float
    high: float
    chosen: float

    @property
    def optimism(self) -> float:
        """The selection bias: the difference of `shown` and `honest`, as both are printed."""
        return round(round(self.shown, PRINTED) - round(self.honest, PRINTED), PRINTED)


def selection(results: Sequence[Result], metric: str, seed: int, resamples: int = RESAMPLES) -> Selection | None:
    """The bias of the first of `results` (whole ones, best first); None where there is no choice or no question left.

    Each data set's questions are resampled by themselves, and its means count the same.
    """
    if len(results) < 2:
        return None
    rng = np.random.default_rng(seed)
    inside, outside = np.zeros((2, resamples, len(results)))
    datasets = list(results[0].by_dataset)
    for dataset in datasets:
        scores = question_scores(results, dataset, metric)
        if scores.shape[1] < 2:
            return None
        drawn = rng.multinomial(scores.shape[1], np.full(scores.shape[1], 1 / scores.shape[1]), size=resamples)
        left = (drawn == 0).astype(float)
        left[left.sum(axis=1) == 0] = 1.0  # nothing left out, as happens with very few questions
        by_question = summable(scores, scores.shape[1]).T  # products do not depend on the processor
        inside += drawn @ by_question / scores.shape[1] / len(datasets)
        outside += left @ by_question / left.sum(axis=1, keepdims=True) / len(datasets)
    gains = np.round(sign_of(metric) * inside, 9)
    best = (gains == gains.max(axis=1, keepdims=True)).astype(float)
    best /= best.sum(axis=1, keepdims=True)  # those that tie share what is won
    honest = (best * outside).sum(axis=1)
    low, high = np.quantile(honest, [0.025, 0.975])
    return Selection(results[0].mean(metric), float(honest.mean()), float(low), float(high), float(best[:, 0].mean()))


def question_scores(results: Sequence[Result], dataset: str, metric: str) -> Array:
    """(configurations, questions): a failed question counts as the worst; one that the metric is not for is left out.

    A question that several seeds drew has a column for each.
    """
    columns = []
    for place in range(len(results[0].by_dataset[dataset])):
        tables = [result.by_dataset[dataset][place].questions for result in results]
        values = np.array([table[metric].to_numpy(dtype=float) for table in tables])
        failed = np.array([table["failure"].notna().to_numpy(dtype=bool) for table in tables])
        columns.append(
            np.where(failed, worst_of(metric), values)[:, ~np.isnan(np.where(failed, np.nan, values)).all(axis=0)]
        )
    return np.asarray(np.nan_to_num(np.concatenate(columns, axis=1)))
