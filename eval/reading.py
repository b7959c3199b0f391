"""What language models make of a run: the reader's answers, the closed-book row, the judge's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eval.answers import CLOSED_BOOK, Answer, answer_all, answer_columns, closed_book
from eval.judge.sample import INPUTS, make_sample
from eval.metrics import PRIMARY, summarise
from eval.trial import TrialOutcome
from eval.types import Benchmark
from retrieval.graph.build import Steps

if TYPE_CHECKING:
    import pandas as pd

    from eval.judge.outcome import Judged
    from eval.judge.schedule import Judging
    from retrieval.llm import LLM

FALLBACKS = ("all_gold@10", "recall@5", "has_answer", "answer_f1")  # what ranks finalists, the first that was measured


@dataclass(frozen=True)
class Reading:
    """Who reads and who judges: `finalists` judges only so many labels, the best by the free metrics (None: all)."""

    reader: LLM | None = None
    judging: Judging | None = None
    metrics: Sequence[str] = tuple(INPUTS)
    repeats: int = 1
    finalists: int | None = None


@dataclass(frozen=True)
class Read:
    """What was answered, by label and question id, and judged."""

    reader: str | None = None
    answers: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)
    judged: Judged | None = None


def read(
    reading: Reading,
    benchmark: Benchmark,
    trials: dict[str, TrialOutcome],
    rows: dict[str, pd.DataFrame],
    steps: Steps,
) -> Read:
    """Answer and judge; adds the closed-book row to `trials` and `rows`, and the new columns to all rows."""
    answers: dict[str, Mapping[str, Answer]] = {}
    if reading.reader is not None:
        reader = reading.reader
        trials[CLOSED_BOOK] = TrialOutcome(CLOSED_BOOK, CLOSED_BOOK, {}, closed_book(benchmark))
        for label, trial in trials.items():
            found = steps(f"answer {label}", lambda: answer_all(reader, benchmark, trial.rankings))  # noqa: B023
            columns = answer_columns(benchmark, found)
            rows[label] = rows[label].join(columns) if label in rows else columns.assign(failure=None)
            answers[label] = found
    name = None if reading.reader is None else reading.reader.endpoint.name
    if reading.judging is None:
        return Read(name, answers)
    labels = finalists(reading.finalists, benchmark, rows)
    judged = steps("judge", lambda: _judged(reading, benchmark, {label: trials[label] for label in labels}, answers))
    for label in judged.labels:
        rows[label] = rows[label].join(judged.columns(label)).join(judged.failures(label).rename("judge_failure"))
    return Read(name, answers, judged)


def _judged(
    reading: Reading,
    benchmark: Benchmark,
    trials: Mapping[str, TrialOutcome],
    answers: Mapping[str, Mapping[str, Answer]],
) -> Judged:
    from eval.judge.outcome import judge_labels

    samples = {
        label: [
            make_sample(question, trial.rankings[question.id], answers.get(label, {}).get(question.id))
            for question in benchmark.questions
            if trial.rankings[question.id].failure is None
        ]
        for label, trial in trials.items()
    }
    metrics = {label: applicable(reading.metrics, label, reading.reader is not None) for label in samples}
    assert reading.judging is not None
    return judge_labels(reading.judging, samples, metrics, reading.repeats)


def applicable(metrics: Sequence[str], label: str, answered: bool) -> list[str]:
    """The metrics that make sense for a label: none of answers without a reader, none of contexts closed-book."""
    absent = {"contexts"} if label == CLOSED_BOOK else set()
    absent |= set() if answered else {"response"}
    return [metric for metric in metrics if not absent & set(INPUTS[metric])]


def finalists(most: int | None, benchmark: Benchmark, rows: Mapping[str, pd.DataFrame]) -> list[str]:
    """The labels to judge: all, or the best by the free metrics (the closed-book row is no trial of a strategy)."""
    if most is None:
        return list(rows)
    ranked = {label: summarise(table, benchmark)["metrics"] for label, table in rows.items() if label != CLOSED_BOOK}
    metric = next((name for name in FALLBACKS if any(name in means for means in ranked.values())), PRIMARY)
    best = sorted(ranked, key=lambda label: (-ranked[label].get(metric, 0.0), label))[:most]
    return [label for label in rows if label in best]


def costs(read: Read, label: str) -> dict[str, Any]:
    """What a label's answers and judgements took, for results.json; empty without a model."""
    answers = read.answers.get(label)
    found: dict[str, Any] = {}
    if answers is not None:
        found["answering"] = {
            "failures": sum(one.failure is not None for one in answers.values()),
            **{
                name: sum(getattr(one, name) for one in answers.values())
                for name in ("calls", "tokens_in", "tokens_out")
            },
        }
    if read.judged is not None and label in read.judged.labels:
        judged = read.judged.summary(label)
        found["judged"] = judged
        found["judge_calls"] = sum(one["calls"] for one in judged.values())
        found["judge_tokens"] = sum(one["tokens_in"] + one["tokens_out"] for one in judged.values())
    return found
