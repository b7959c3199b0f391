"""The judge's scores of all labels, means with their coverage; and how well the two profiles agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hopbench.eval.answering.answers import JudgedMetric, JudgeEntry
from hopbench.eval.answering.judge.sample import INPUTS, Sample
from hopbench.eval.answering.judge.schedule import Judgement, Judging, jobs_of
from hopbench.eval.metrics.registry import get_metric

if TYPE_CHECKING:
    import pandas as pd


DECIMALS = 6
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Judged:
    """The judgements of all labels by one `judge`; `table` has a row per label, question, metric and repeat."""

    judge: JudgeEntry
    table: pd.DataFrame

    @property
    def labels(self) -> list[str]:
        """The labels that were judged."""
        return list(dict.fromkeys(self.table["strategy"]))

    def columns(self, label: str) -> pd.DataFrame:
        """A column per metric by question id: the mean over the repeats that gave a score, NaN without any."""
        own = self.table[self.table["strategy"] == label]
        wide = own.pivot_table("value", "question_id", "metric", aggfunc="mean", dropna=False)
        order = [metric for metric in INPUTS if metric in set(own["metric"])]
        return wide.reindex(columns=order).astype(float).rename_axis(columns=None)

    def failures(self, label: str) -> pd.Series:
        """Why a question has no score, by question id and in words: `faithfulness: timeout: …`."""
        own = self.table[(self.table["strategy"] == label) & self.table["failure"].notna()]
        reasons_by_metric = own["metric"] + ": " + own["failure"]
        return reasons_by_metric.groupby(own["question_id"]).agg(lambda reasons: "; ".join(dict.fromkeys(reasons)))

    def summary(self, label: str) -> dict[str, JudgedMetric]:
        """Metric → mean of the scores there are, coverage, the judge's own spread, failures by reason, cost."""
        own = self.table[self.table["strategy"] == label]
        return {metric: _summary(own[own["metric"] == metric]) for metric in INPUTS if metric in set(own["metric"])}


def judge_labels(
    judging: Judging, samples: Mapping[str, Sequence[Sample]], metrics: Mapping[str, Sequence[str]], repeats: int
) -> Judged:
    """Judge every label's samples on its metrics. Raises BudgetReached; what is finished is stored."""
    import pandas as pd

    jobs = [job for label, own in samples.items() for job in jobs_of(own, metrics[label], repeats)]
    judgements = judging.judge(jobs)
    rows = [
        row for label, own in samples.items() for row in _rows(judging, label, own, metrics[label], repeats, judgements)
    ]
    judge: JudgeEntry = {
        "llm": judging.llm.endpoint.name,
        "profile": judging.scorer.profile,
        "versions": {name: judging.scorer.version(name) for name in INPUTS if any(name in m for m in metrics.values())},
        "repeats": repeats,
        "labels": list(samples),
        **judging.llm.endpoint.asked,
        **judging.llm.adapted(),
    }
    columns = ["strategy", *Judgement.__dataclass_fields__]
    return Judged(judge, pd.DataFrame(rows, columns=columns).astype({"value": float, "failure": object}))


def _rows(
    judging: Judging,
    label: str,
    samples: Sequence[Sample],
    metrics: Sequence[str],
    repeats: int,
    judgements: Mapping[str, Judgement],
) -> Iterator[dict[str, object]]:
    made = {
        (job.sample.question_id, job.metric, job.repeat): judgements[judging.key_of(job)]
        for job in jobs_of(samples, metrics, repeats)
    }
    for sample in samples:
        for metric in metrics:
            for repeat in range(repeats):
                own = made.get((sample.question_id, metric, repeat)) or _unjudged(sample, metric, repeat)
                if own is not None:
                    yield {"strategy": label, **asdict(own), "question_id": sample.question_id}


def _unjudged(sample: Sample, metric: str, repeat: int) -> Judgement | None:
    """The judgement of a question that cannot be judged: None without gold, the worst score without any context."""
    missing = sample.missing(metric)
    if missing == "reference":
        return None
    if missing == "contexts":
        return Judgement(metric, sample.question_id, repeat, value=get_metric(metric).worst)
    return Judgement(metric, sample.question_id, repeat, failure=NO_ANSWER)


def _summary(own: pd.DataFrame) -> JudgedMetric:
    """`coverage` is the share of questions with a score; `judge_sd` the spread of one question's repeats, pooled."""
    values = own.groupby("question_id", sort=True)["value"].mean()
    scored = np.sort(values.dropna().to_numpy(dtype=float))
    spread = own.groupby("question_id")["value"].var(ddof=1).dropna()
    return {
        "mean": round(float(scored.mean()), DECIMALS) if len(scored) else None,
        "questions": len(values),
        "coverage": round(len(scored) / len(values), DECIMALS),
        "judge_sd": round(float(np.sqrt(spread.mean())), DECIMALS) if len(spread) else None,
        "failures": dict(sorted(Counter(own["failure"].dropna()).items())),
        "calls": int(own["calls"].sum()),
        "tokens_in": int(own["tokens_in"].sum()),
        "tokens_out": int(own["tokens_out"].sum()),
        "judge_seconds": round(float(own["seconds"].sum()), 3),
    }


RESAMPLES = 2_000
MIN_SAMPLES = 5  # samples for a rank correlation: chance ranks five alike in 1 of 120 cases, three in 1 of 6
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimated:
    """A value with its 95% bootstrap interval over samples; None for too few samples."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a profile cost for a metric on all samples; `failures` are the samples without a score."""

    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    failures: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """A metric in both profiles over the `samples` that both scored.

    `spearman` is None where a profile gave one score to all; of several metrics it is the mean of the `ranked` ones
    that have it. `difference` is the mean absolute one, 0..1.
    """

    metric: str
    samples: int
    ranked: int
    spearman: Estimated
    difference: Estimated
    full: Cost
    compact: Cost

    def plain(self) -> dict[str, object]:
        """The agreement as plain values, with the ratios full : compact."""
        ratios = {
            "prompt_tokens_ratio": _ratio(self.full.tokens_in, self.compact.tokens_in),
            "calls_ratio": _ratio(self.full.calls, self.compact.calls),
            "seconds_ratio": _ratio(self.full.seconds, self.compact.seconds),
        }
        return {**asdict(self), **ratios}


def check(
    full: Judging, compact: Judging, samples: Sequence[Sample], metrics: Sequence[str], seed: int = 0
) -> list[Agreement]:
    """Judge the samples in both profiles and compare; the last entry is of all metrics together."""
    scores: dict[str, tuple[FloatArray, FloatArray]] = {}
    costs: dict[str, tuple[Cost, Cost]] = {}
    for metric in metrics:
        (first, one), (second, other) = (_judged(judging, samples, metric) for judging in (full, compact))
        scores[metric], costs[metric] = (first, second), (one, other)
    agreements = [_agreement(metric, {metric: scores[metric]}, costs[metric], seed) for metric in metrics]
    whole, short = (
        Cost(*map(sum, zip(*map(astuple, side), strict=True))) for side in zip(*costs.values(), strict=True)
    )
    return [*agreements, _agreement("all", scores, (whole, short), seed)]


def _judged(judging: Judging, samples: Sequence[Sample], metric: str) -> tuple[FloatArray, Cost]:
    """A score per sample, NaN where there is none, and what they cost."""
    jobs = jobs_of(samples, [metric], repeats=1)
    known = judging.judge(jobs)
    judgements = [known[judging.key_of(job)] for job in jobs]
    scored = {judgement.question_id: judgement.value for judgement in judgements if judgement.value is not None}
    cost = Cost(
        calls=sum(judgement.calls for judgement in judgements),
        tokens_in=sum(judgement.tokens_in for judgement in judgements),
        tokens_out=sum(judgement.tokens_out for judgement in judgements),
        seconds=round(sum(judgement.seconds for judgement in judgements), 3),
        failures=sum(judgement.failure is not None for judgement in judgements),
    )
    return np.array([scored.get(sample.question_id, np.nan) for sample in samples], dtype=float), cost


def _agreement(
    metric: str, scores: Mapping[str, tuple[FloatArray, FloatArray]], costs: tuple[Cost, Cost], seed: int
) -> Agreement:
    """Over several metrics: the mean of their values, samples drawn together."""

    def mean_of(
        statistic: Callable[[FloatArray, FloatArray], float | None], rows: npt.NDArray[np.int_]
    ) -> float | None:
        values = [statistic(first[rows], second[rows]) for first, second in scores.values()]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    most = max(len(first) for first, _ in scores.values())
    both = [int((~np.isnan(first + second)).sum()) for first, second in scores.values()]
    return Agreement(
        metric,
        sum(both),
        sum(spearman(first, second) is not None for first, second in scores.values()),
        _bootstrapped(lambda rows: mean_of(spearman, rows), most, seed),
        _bootstrapped(lambda rows: mean_of(difference, rows), most, seed),
        *costs,
    )


def _bootstrapped(statistic: Callable[[npt.NDArray[np.int_]], float | None], count: int, seed: int) -> Estimated:
    value = statistic(np.arange(count)) if count else None
    if value is None:
        return Estimated(None)
    rng = np.random.default_rng(seed)
    drawn = [statistic(rng.integers(0, count, count)) for _ in range(RESAMPLES)]
    low, high = np.percentile([sample for sample in drawn if sample is not None], [2.5, 97.5])
    return Estimated(*(round(float(bound), 6) for bound in (value, low, high)))


def spearman(first_scores: FloatArray, second_scores: FloatArray) -> float | None:
    """Spearman's rank correlation of the pairs without NaN; None for few pairs, or where one side does not vary."""
    from scipy.stats import rankdata

    used = ~np.isnan(first_scores + second_scores)
    first, second = rankdata(first_scores[used]), rankdata(second_scores[used])
    if used.sum() < MIN_SAMPLES or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def difference(first: FloatArray, second: FloatArray) -> float | None:
    """The mean absolute difference of the pairs without NaN."""
    used = ~np.isnan(first + second)
    return float(np.abs(first[used] - second[used]).mean()) if used.any() else None


def _ratio(full: float, compact: float) -> float | None:
    return round(full / compact, 3) if compact else None
