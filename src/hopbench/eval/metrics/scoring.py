"""From rankings to rows, one per question, and from rows to means with their ceilings and coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from hopbench.eval.metrics.base import CONTEXT_PASSAGES, Batch, FloatArray, GoldFacts, Metric, gold_titles
from hopbench.eval.metrics.registry import all_metrics, catalogue, get_metric, metrics_among, requested_metrics
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
    failures = [rankings[q.id].failure if q.id in rankings else NO_RANKING for q in benchmark.questions]
    answered = [i for i, reason in enumerate(failures) if reason is None]
    questions = [benchmark.questions[i] for i in answered]
    batch = Batch(benchmark, questions, [rankings[q.id] for q in questions])
    columns = {}
    by_default = all_metrics()
    for name in (*all_metrics("ranking"), *(all_metrics("ragas") if ragas else ()), *requested_metrics(also)):
        try:
            values = _values(batch, get_metric(name))
        except InputError as error:
            if name not in by_default:
                raise
            notice(f"{error}: it is left out")
            continue
        columns[name] = np.full(len(failures), np.nan)
        columns[name][answered] = values
    index = pd.Index([q.id for q in benchmark.questions], name="question_id", dtype=object)
    rows = pd.DataFrame(columns, index=index, dtype=float)
    rows["failure"] = pd.Series(failures, index=index, dtype=object)
    return rows


def _values(batch: Batch, metric: Metric) -> FloatArray:
    """A metric's values. Raises InputError, which names the plug-in, for a fault of its or results of another form."""
    count = len(batch.questions)
    plugins = catalogue().code_of(metric.name)
    if metric.compute is None:
        return np.full(count, np.nan)
    if not plugins:
        return metric.compute(batch)
    named = f"metric {metric.name!r} of the plug-in {', '.join(code.name for code in plugins)}"
    try:
        values = np.asarray(metric.compute(batch), dtype=float)
    except Exception as error:  # a plug-in may raise anything
        raise InputError(f"{named} failed with {type(error).__name__}: {error}") from error
    if values.shape != (count,) or np.isinf(values).any():
        raise InputError(
            f"{named} returned the shape {values.shape} or infinite values where {count} finite ones or NaN belong"
        )
    return values


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


Mask: TypeAlias = npt.NDArray[np.bool_]
GroupMeans: TypeAlias = dict[str, Any]
"""Means of a group of questions: {metric: mean, "questions": n, "coverage": share, "ceiling": {metric: value}}."""


class Summary(TypedDict):
    """Means of a label, see `summarise`; part of its entry in results.json."""

    metrics: dict[str, float]
    answered: dict[str, float]
    measured: dict[str, float]
    coverage: float
    failures: int
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
    rows, metrics = _in_order(rows, benchmark), metrics_among(rows.columns)
    names, questions = [metric.name for metric in metrics], benchmark.questions
    values = rows[names].to_numpy(dtype=float)
    answered, known = rows["failure"].isna().to_numpy(dtype=bool), ~np.isnan(values)
    applies = np.array([[m.applies(q) for m in metrics] for q in questions], dtype=bool).reshape(values.shape)
    filled = np.where(known, values, [metric.worst for metric in metrics])
    ceilings = _ceilings(metrics, benchmark, applies, context_passages)

    def means(of: FloatArray, mask: Mask) -> dict[str, float]:
        mask = applies & mask
        # Sorted before summing, so that the last digit does not depend on the order of the questions.
        sums, n = np.sort(np.where(mask, of, 0.0), axis=0).sum(axis=0), mask.sum(axis=0)
        return {name: round(float(sums[j] / n[j]), DECIMALS) for j, name in enumerate(names) if n[j]}

    def groups(keys: Sequence[str]) -> dict[str, GroupMeans]:
        made: dict[str, GroupMeans] = {}
        for key in sorted(set(keys)):
            chosen = np.array([own == key for own in keys], dtype=bool)
            counts = {"questions": int(chosen.sum()), "coverage": round(float(answered[chosen].mean()), DECIMALS)}
            made[key] = {**means(filled, chosen[:, None]), **counts, "ceiling": means(ceilings, chosen[:, None])}
        return made

    everything = np.ones((len(questions), 1), dtype=bool)
    return {
        "metrics": means(filled, everything),
        "answered": means(filled, answered[:, None] & known),
        "measured": means(known.astype(float), everything),
        "coverage": round(float(answered.mean()), DECIMALS) if questions else 0.0,
        "failures": int((~answered).sum()),
        "ceilings": means(ceilings, everything),
        "by_type": groups([q.type or UNTYPED for q in questions]),
        "by_gold": groups([str(q.gold.size) for q in questions]),
    }


def _in_order(rows: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    ids = [q.id for q in benchmark.questions]
    if len(rows) != len(ids) or set(rows.index) != set(ids):
        raise InputError(
            f"{len(rows)} rows do not stand for the {len(ids)} questions of {benchmark.name!r} one to one; "
            "summarise the rows that score() returned for this benchmark"
        )
    if "failure" not in rows.columns:
        raise InputError("the rows have no column 'failure'; summarise the rows that score() returned")
    return rows.loc[ids]


def _ceilings(metrics: Sequence[Metric], benchmark: Benchmark, applies: Mask, context_passages: int) -> FloatArray:
    """The best value (questions, metrics) that any ranking can reach; 0 where the metric does not apply."""

    @cache  # most questions are alike
    def best(facts: Sequence[GoldFacts], applicable: Sequence[bool]) -> list[float]:
        return [max(map(m.ceiling, facts)) if a else 0.0 for m, a in zip(metrics, applicable, strict=True)]

    facts = [gold_facts(question, benchmark.titles, context_passages) for question in benchmark.questions]
    rows = [best(each, tuple(own)) for each, own in zip(facts, applies.tolist(), strict=True)]
    return np.array(rows, dtype=float).reshape(applies.shape)


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


def gold_facts(
    question: BenchmarkQuestion, titles: Mapping[str, str], context_passages: int = CONTEXT_PASSAGES
) -> tuple[GoldFacts, ...]:
    """What ceilings depend on, for each gold set of a question; one entry of nothing without gold."""
    facts = []
    for gold in question.gold.sets:
        missing = sum(passage not in titles for passage in gold)
        gains = question.gold.gains if question.gold.graded else dict.fromkeys(gold, 1)
        present, ideal = (  # nDCG@10 of a ranking that begins with the passages of the corpus, the highest gain first
            sum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(part, reverse=True)[:10], start=1))
            for part in ([gain for passage, gain in gains.items() if passage in titles], gains.values())
        )
        facts.append(GoldFacts(len(gold), len(gold_titles(gold, titles)), context_passages, missing, present / ideal))
    return tuple(facts) or (GoldFacts(0, 0, context_passages),)
