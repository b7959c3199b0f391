"""How far a synthetic set can be trusted: whether it orders, separates and chooses labels as real questions do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from hopbench.eval.metrics.registry import PRIMARY, rank_key
from hopbench.eval.statistics import ALPHA, holm, sign_flip_p
from hopbench.eval.trials.trial import batches, rank_batch
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Counters

DEPTH = 10
Floats = npt.NDArray[np.float64]


def measured(
    index: Index,
    questions: Sequence[BenchmarkQuestion],
    strategies: Mapping[str, Strategy],
    begin: Callable[[str], None] = lambda label: None,
) -> dict[str, Floats]:
    """Measure all_gold@10 as label → (q,): 1 with all gold among the first ten, else 0, also for failures."""
    parts = batches(index, [question.question for question in questions])
    gold = {question.id: question.gold for question in questions}
    values = {}
    for label, strategy in strategies.items():
        begin(label)
        complete = []
        for ranking in (each for part in parts for each in rank_batch(strategy, part, Counters())):
            passages = dict.fromkeys(index.passage_of[hit.chunk_id] for hit in ranking.hits)
            complete.append(gold[ranking.question_id].complete_in(frozenset(islice(passages, DEPTH))))
        values[label] = np.array(complete, float)
    return values


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a synthetic set with real questions of the same corpus, over the same labels.

    `tau` is Kendall's tau-b of the labels' means; `verdicts` the share of the pairs of labels with the same verdict
    (better, worse or not distinguishable; Holm over all pairs of a set). `chosen` is the best label on the synthetic
    questions, `best` on the real ones; `regret` is how much worse `chosen` is than `best` on the real ones.
    """

    labels: int
    real: int
    synthetic: int
    tau: float
    verdicts: float
    regret: float
    chosen: str
    best: str


def agreement(real: Mapping[str, Floats], synthetic: Mapping[str, Floats]) -> Agreement:
    """Compare the all_gold@10 of the same labels, each (questions,), on real and on synthetic questions."""
    from scipy.stats import kendalltau

    if set(real) != set(synthetic) or len(real) < 2:
        raise InputError("two sets of questions are compared over the same labels, two or more: run both with the same")
    labels = sorted(real)
    means = {label: (float(real[label].mean()), float(synthetic[label].mean())) for label in labels}
    tau = float(kendalltau([means[label][0] for label in labels], [means[label][1] for label in labels]).statistic)
    ours, theirs = verdicts(real), verdicts(synthetic)
    chosen = min(labels, key=lambda label: rank_key(PRIMARY, means[label][1]))
    best = min(labels, key=lambda label: rank_key(PRIMARY, means[label][0]))
    return Agreement(
        labels=len(labels),
        real=len(real[best]),
        synthetic=len(synthetic[best]),
        tau=0.0 if np.isnan(tau) else tau,  # all labels alike: there is no order
        verdicts=float(np.mean([ours[pair] == theirs[pair] for pair in ours])),
        regret=means[best][0] - means[chosen][0],
        chosen=chosen,
        best=best,
    )


def verdicts(values: Mapping[str, Floats]) -> dict[tuple[str, str], int]:
    """Decide every pair of labels: 1 where the first is better, −1 where it is worse, 0 where neither is."""
    pairs = list(combinations(sorted(values), 2))
    differences = [values[first] - values[second] for first, second in pairs]
    adjusted = holm([sign_flip_p(difference) for difference in differences])
    return {
        pair: int(np.sign(difference.sum())) if p < ALPHA else 0
        for pair, difference, p in zip(pairs, differences, adjusted, strict=True)
    }


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, minimum and maximum over seeds."""
    return float(np.mean(values)), min(values), max(values)
