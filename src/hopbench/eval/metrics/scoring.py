"""From rankings to rows, one per question, and from rows to means with their ceilings and coverage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import log2
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from hopbench.eval.metrics.base import CONTEXT_PASSAGES, Batch, FloatArray, GoldFacts, Metric, gold_titles
from hopbench.eval.metrics.registry import all_metrics, asked_metrics, catalogue, get_metric, metrics_among
from hopbench.eval.types import Benchmark, BenchmarkQuestion, PassageRanking
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    import pandas as pd


NO_RANKING = "no ranking: the strategy returned nothing for this question"


def score(
    benchmark: Benchmark, rankings: Mapping[str, PassageRanking], *, ragas: bool = False, also: Sequence[str] = ()
) -> pd.DataFrame:
    """Score rankings by question id.

    Returns one row per question in the benchmark's order (index `question_id`), a float column per metric of the
    group `ranking`, of `ragas` if asked, and for each name in `also`, and `failure`: the reason why the question has no
    ranking, else None. Failed questions are NaN in all metrics; so are metrics that do not apply to a question (no
    gold, a yes/no answer). Raises InputError for rankings of other questions, of passages outside the corpus, or with
    duplicates.
    """
    import pandas as pd  # takes 0.4 s, which listing the metrics does not need

    _check(benchmark, rankings)
    failures = [_failure(rankings.get(q.id)) for q in benchmark.questions]
    answered = [i for i, reason in enumerate(failures) if reason is None]
    questions = [benchmark.questions[i] for i in answered]
    batch = Batch(benchmark, questions, [rankings[q.id] for q in questions])
    columns = {}
    for name, values in _compute(batch, _names(ragas, also)).items():
        columns[name] = np.full(len(failures), np.nan)
        columns[name][answered] = values
    index = pd.Index([q.id for q in benchmark.questions], name="question_id", dtype=object)
    rows = pd.DataFrame(columns, index=index, dtype=float)
    rows["failure"] = pd.Series(failures, index=index, dtype=object)
    return rows


def _names(ragas: bool, also: Sequence[str]) -> tuple[str, ...]:
    return (*all_metrics("ranking"), *(all_metrics("ragas") if ragas else ()), *asked_metrics(also))


def _compute(batch: Batch, names: Sequence[str]) -> dict[str, FloatArray]:
    """Values by metric; one that runs by default and fails is left out, with a notice, and stops no other."""
    values: dict[str, FloatArray] = {}
    for name in names:
        try:
            values[name] = _values(batch, get_metric(name))
        except InputError as error:
            if name not in all_metrics():
                raise
            notice(f"{error}: it is left out")
    return values


def _values(batch: Batch, metric: Metric) -> FloatArray:
    """A metric's values. Raises InputError, which names the plug-in, for a fault of its or results of another form."""
    compute = metric.compute or (lambda each: np.full(len(each.questions), np.nan))
    if not catalogue().code_of(metric.name):
        return compute(batch)
    try:
        values = np.asarray(compute(batch), dtype=float)
    except Exception as error:  # a plug-in may raise anything
        raise InputError(f"{_named(metric)} failed with {type(error).__name__}: {error}") from error
    if values.shape != (len(batch.questions),) or np.isinf(values).any():
        raise InputError(
            f"{_named(metric)} returned the shape {values.shape} or infinite values where {len(batch.questions)} "
            "finite ones or NaN belong"
        )
    return values


def _named(metric: Metric) -> str:
    return f"metric {metric.name!r} of the plug-in {', '.join(code.name for code in catalogue().code_of(metric.name))}"


def _failure(ranking: PassageRanking | None) -> str | None:
    return NO_RANKING if ranking is None else ranking.failure


def _check(benchmark: Benchmark, rankings: Mapping[str, PassageRanking]) -> None:
    """Refuse what would otherwise be scored as something else."""
    extra = sorted(set(rankings) - {q.id for q in benchmark.questions})
    if extra:
        raise InputError(
            f"{len(extra)} rankings answer no question of {benchmark.name!r} (first: {extra[0]!r}); "
            "score them with the benchmark they were made on"
        )
    corpus = benchmark.titles
    for question_id, ranking in rankings.items():
        if ranking.question_id != question_id:
            raise InputError(f"the ranking filed under {question_id!r} says question_id {ranking.question_id!r}")
        for field, ids in (("ranked_ids", ranking.ranked_ids), ("context_ids", ranking.context_ids)):
            if len(set(ids)) != len(ids):
                twice = next(p for p in ids if ids.count(p) > 1)
                raise InputError(f"{field} of question {question_id!r} names passage {twice!r} twice; keep the first")
            if unknown := [p for p in ids if p not in corpus]:
                raise InputError(
                    f"{field} of question {question_id!r} names {unknown[0]!r}, which is not in the corpus of "
                    f"{benchmark.name!r}; map chunks to passages, and score with the benchmark that was searched"
                )


DECIMALS = 6
UNTYPED = "untyped"


GroupMeans: TypeAlias = dict[str, Any]
"""Means of a group of questions: {metric: mean, "questions": n, "coverage": share, "ceiling": {metric: value}}."""


class Summary(TypedDict):
    """Means of a label, see `summarise`; `questions` and `failures` are counts."""

    questions: int
    failures: int
    coverage: float
    metrics: dict[str, float]
    answered: dict[str, float]
    measured: dict[str, float]
    ceilings: dict[str, float]
    by_type: dict[str, GroupMeans]
    by_gold: dict[str, GroupMeans]


def summarise(rows: pd.DataFrame, benchmark: Benchmark, *, context_passages: int = CONTEXT_PASSAGES) -> Summary:
    """Means of a label's rows (from `score`, perhaps with columns of other registered metrics joined).

    `metrics` are zero-filled: a failed question counts 0 (the metric's `worst`), a question to which the metric does
    not apply is left out. `answered` leaves failed questions out too. `ceilings` are the best values any ranking could
    reach on the same questions. `coverage` is the share of questions answered, `measured` each metric's share of
    applicable questions with a value. `by_type` and `by_gold` (number of gold passages, of the smallest set, as text)
    hold {metric: mean, "questions": n, "coverage": share, "ceiling": {metric: value}}. A metric that applies to no
    question is absent. All values are plain JSON types; floats have 6 decimals.
    """
    table = _table(rows, benchmark, context_passages)
    everything = np.ones(len(benchmark.questions), dtype=bool)
    return {
        "questions": len(benchmark.questions),
        "failures": int((~table.answered).sum()),
        "coverage": table.coverage(everything),
        "metrics": table.means(everything),
        "answered": table.means(table.answered, zero_fill=False),
        "measured": table.measured(),
        "ceilings": table.ceilings(everything),
        "by_type": table.groups([q.type or UNTYPED for q in benchmark.questions]),
        "by_gold": table.groups([str(q.gold.size) for q in benchmark.questions]),
    }


def measured_shares(rows: pd.DataFrame, benchmark: Benchmark) -> dict[str, float]:
    """Each metric's share of the questions it applies to that have a value: `measured` of `summarise`, by itself."""
    shares = {}
    for metric in metrics_among(rows.columns):
        if count := sum(map(metric.applies, benchmark.questions)):
            shares[metric.name] = round(float(rows[metric.name].notna().sum()) / count, DECIMALS)
    return shares


def with_coverage(means: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """Return zero-filled means for a tracker, each with its `NAME.coverage`; metrics without any value are left out.

    A mean of which nothing was measured is 0 by the filling alone, and a chart would draw it as a result.
    """
    known = {name: mean for name, mean in means.items() if measured.get(name, 1.0) > 0.0}
    return {**known, **{f"{name}.coverage": measured[name] for name in means if name in measured}}


@dataclass(frozen=True)
class _Table:
    """Arrays of shape (questions, metrics) in the benchmark's order; `worst` (metrics,), `answered` (questions,)."""

    names: Sequence[str]
    values: FloatArray
    worst: FloatArray
    applies: npt.NDArray[np.bool_]
    ceiling: FloatArray
    answered: npt.NDArray[np.bool_]

    def means(self, chosen: npt.NDArray[np.bool_], *, zero_fill: bool = True) -> dict[str, float]:
        applies = self.applies & chosen[:, None]
        if not zero_fill:
            applies &= ~np.isnan(self.values)
        return self._mean(np.where(np.isnan(self.values), self.worst, self.values), applies)

    def ceilings(self, chosen: npt.NDArray[np.bool_]) -> dict[str, float]:
        return self._mean(self.ceiling, self.applies & chosen[:, None])

    def measured(self) -> dict[str, float]:
        return self._mean((~np.isnan(self.values)).astype(float), self.applies)

    def coverage(self, chosen: npt.NDArray[np.bool_]) -> float:
        return round(float(self.answered[chosen].mean()), DECIMALS) if chosen.any() else 0.0

    def groups(self, keys: Sequence[str]) -> dict[str, GroupMeans]:
        members: dict[str, list[int]] = defaultdict(list)
        for i, key in enumerate(keys):
            members[key].append(i)
        return {key: self._group(members[key]) for key in sorted(members)}

    def _group(self, members: list[int]) -> GroupMeans:
        chosen = np.zeros(len(self.answered), dtype=bool)
        chosen[members] = True
        counts = {"questions": len(members), "coverage": self.coverage(chosen)}
        return {**self.means(chosen), **counts, "ceiling": self.ceilings(chosen)}

    def _mean(self, values: FloatArray, mask: npt.NDArray[np.bool_]) -> dict[str, float]:
        # Sorted before summing, so that the last digit does not depend on the order of the questions.
        sums = np.sort(np.where(mask, values, 0.0), axis=0).sum(axis=0)
        n = mask.sum(axis=0)
        return {name: round(float(sums[j] / n[j]), DECIMALS) for j, name in enumerate(self.names) if n[j]}


def _table(rows: pd.DataFrame, benchmark: Benchmark, context_passages: int) -> _Table:
    """Rows in the benchmark's order as arrays, with each question's applicability and ceiling."""
    ids = [q.id for q in benchmark.questions]
    if len(rows) != len(ids) or set(rows.index) != set(ids):
        raise InputError(
            f"{len(rows)} rows do not stand for the {len(ids)} questions of {benchmark.name!r} one to one; "
            "summarise the rows that score() returned for this benchmark"
        )
    if "failure" not in rows.columns:
        raise InputError("the rows have no column 'failure'; summarise the rows that score() returned")
    rows = rows.loc[ids]
    metrics = metrics_among(rows.columns)
    values = rows[[m.name for m in metrics]].to_numpy(dtype=float)
    facts = [gold_facts(q, benchmark.titles, context_passages) for q in benchmark.questions]
    applies = np.array([[m.applies(q) for m in metrics] for q in benchmark.questions], dtype=bool)
    shape = (len(ids), len(metrics))
    ceilings = cache(partial(_ceilings, metrics))  # most questions are alike
    ceiling = np.array([ceilings(f, tuple(a)) for f, a in zip(facts, applies.tolist(), strict=True)], dtype=float)
    answered = rows["failure"].isna().to_numpy(dtype=bool)
    worst = np.array([m.worst for m in metrics], dtype=float)
    return _Table([m.name for m in metrics], values, worst, applies.reshape(shape), ceiling.reshape(shape), answered)


def gold_facts(
    question: BenchmarkQuestion, titles: Mapping[str, str], context_passages: int = CONTEXT_PASSAGES
) -> tuple[GoldFacts, ...]:
    """What ceilings depend on, for each gold set of a question; one entry of nothing without gold."""
    facts = []
    for gold in question.gold.sets:
        missing = sum(passage not in titles for passage in gold)
        gains = question.gold.gains if question.gold.graded else dict.fromkeys(gold, 1)
        ndcg = 1.0 if titles.keys() >= gains.keys() else _best_ndcg(gains, titles)
        facts.append(GoldFacts(len(gold), len(gold_titles(gold, titles)), context_passages, missing, ndcg))
    return tuple(facts) or (GoldFacts(0, 0, context_passages),)


def _best_ndcg(gains: Mapping[str, int], titles: Mapping[str, str]) -> float:
    """nDCG@10 of a ranking that begins with the passages of the corpus, those of the highest gain first."""
    found = [gain for passage, gain in gains.items() if passage in titles]
    present, ideal = (
        sum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(part, reverse=True)[:10], start=1))
        for part in (found, gains.values())
    )
    return present / ideal


def _ceilings(metrics: Sequence[Metric], facts: Sequence[GoldFacts], applies: Sequence[bool]) -> list[float]:
    return [max(map(m.ceiling, facts)) if a else 0.0 for m, a in zip(metrics, applies, strict=True)]
