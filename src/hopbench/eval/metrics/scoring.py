"""From rankings to rows: one row per question, one column per metric, and the reason where there is no ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hopbench.eval.metrics.base import Batch, FloatArray, Metric
from hopbench.eval.metrics.catalogue import catalogue
from hopbench.eval.metrics.registry import all_metrics, asked_metrics, get_metric
from hopbench.eval.types import Benchmark, PassageRanking
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
    import pandas as pd  # .4 s that listing the metrics need not pay

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
    foreign = sorted(set(rankings) - {q.id for q in benchmark.questions})
    if foreign:
        raise InputError(
            f"{len(foreign)} rankings answer no question of {benchmark.name!r} (first: {foreign[0]!r}); "
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
