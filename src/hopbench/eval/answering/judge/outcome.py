"""The judge's scores of all labels: a row per judgement, a column per metric, means beside their coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from hopbench.eval.answering.entries import JudgedMetric, JudgeEntry
from hopbench.eval.answering.judge.sample import INPUTS, Sample
from hopbench.eval.answering.judge.schedule import Judging, jobs_of
from hopbench.eval.answering.judge.store import Judgement
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
    return Judged(judge, _frame(rows))


def _frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    import pandas as pd

    names = ("strategy", *Judgement.__dataclass_fields__)
    return pd.DataFrame(rows, columns=list(names)).astype({"value": float, "failure": object})


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
