"""The part of language models in a run: the reader's answers, the closed-book row, the judge's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hopbench.eval.answering.answers import (
    CLOSED_BOOK,
    Answer,
    JudgedMetric,
    ModelCosts,
    ReaderEntry,
    answer_all,
    answer_columns,
    closed_book,
)
from hopbench.eval.answering.answers import VERSION as READER_VERSION
from hopbench.eval.answering.judge.sample import INPUTS, make_sample
from hopbench.eval.metrics import primary_metric, rank_key, summarise
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.eval.types import Benchmark
from hopbench.retrieval.graph.construction.builder import Steps
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.answering.judge.outcome import Judged
    from hopbench.eval.answering.judge.schedule import Judging
    from hopbench.eval.trials.key import ReadingSettings
    from hopbench.retrieval.llm import LLM

FINALISTS = 3


@dataclass(frozen=True)
class Reading:
    """Who reads and who judges: `finalists` judges only so many labels, the best by the free metrics (None: all).

    `closed_book` adds the row of answers without any context.
    """

    reader: LLM | None = None
    judging: Judging | None = None
    metrics: Sequence[str] = tuple(INPUTS)
    repeats: int = 1
    finalists: int | None = None
    closed_book: bool = True

    def settings(self) -> ReadingSettings:
        """The part of a trial's key that names the models which read it; empty without any."""
        settings: ReadingSettings = {}
        if self.reader is not None:
            endpoint = self.reader.endpoint
            settings["reader"] = {"llm": endpoint.name, "prompt": READER_VERSION, **endpoint.asked}
        if self.judging is not None:
            metrics = applicable(self.metrics, "", self.reader is not None)
            settings["judge"] = {**self.judging.settings(metrics), "repeats": self.repeats}
        return settings


@dataclass(frozen=True)
class Read:
    """The answers, by label and question id, and the judge's scores; `reader` is who answered."""

    reader: ReaderEntry | None = None
    answers: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)
    judged: Judged | None = None


def read(
    reading: Reading,
    benchmark: Benchmark,
    trials: dict[str, TrialOutcome],
    rows: dict[str, pd.DataFrame],
    steps: Steps,
) -> Read:
    """Answer and judge; adds the new columns to all rows, and the closed-book row to `trials` and `rows`."""
    answers: dict[str, Mapping[str, Answer]] = {}
    if reading.reader is not None:
        reader = reading.reader
        if reading.closed_book:
            trials[CLOSED_BOOK] = TrialOutcome(CLOSED_BOOK, CLOSED_BOOK, {}, closed_book(benchmark))
        for label, trial in trials.items():
            own = steps(f"answer {label}", lambda: answer_all(reader, benchmark, trial.rankings))  # noqa: B023
            columns = answer_columns(benchmark, own)
            rows[label] = rows[label].join(columns) if label in rows else columns.assign(failure=None)
            answers[label] = own
    entry = None if reading.reader is None else _entry(reading.reader)
    if reading.judging is None:
        return Read(entry, answers)
    labels = finalists(reading.finalists, benchmark, rows)
    judged = steps("judge", lambda: _judged(reading, benchmark, {label: trials[label] for label in labels}, answers))
    for label in judged.labels:
        rows[label] = rows[label].join(judged.columns(label)).join(judged.failures(label).rename("judge_failure"))
    return Read(entry, answers, judged)


def _entry(reader: LLM) -> ReaderEntry:
    endpoint = reader.endpoint
    return {"llm": endpoint.name, "prompt": READER_VERSION, **endpoint.asked, **reader.adapted()}


def _judged(
    reading: Reading,
    benchmark: Benchmark,
    trials: Mapping[str, TrialOutcome],
    answers: Mapping[str, Mapping[str, Answer]],
) -> Judged:
    from hopbench.eval.answering.judge.outcome import judge_labels

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


def finalists_named(text: str) -> int | None:
    """How many labels or configurations `all`, `finalists` or `finalists:N` stands for; None for all of them."""
    name, _, count = text.partition(":")
    if text == "all":
        return None
    if name != "finalists" or (count and not (count.isdecimal() and int(count) > 0)):
        raise InputError(f"{text!r}: all, finalists or finalists:N is wanted, as in finalists:3")
    return int(count) if count else FINALISTS


def finalists(most: int | None, benchmark: Benchmark, rows: Mapping[str, pd.DataFrame]) -> list[str]:
    """The labels to judge: all, or the best by the free metrics (the closed-book row is no trial of a strategy)."""
    if most is None:
        return list(rows)
    ranked = {label: summarise(table, benchmark)["metrics"] for label, table in rows.items() if label != CLOSED_BOOK}
    metric = primary_metric(benchmark) or "answer_f1"  # a yes or no is an answer that no text can show
    best = sorted(ranked, key=lambda label: (rank_key(metric, ranked[label].get(metric)), label))[:most]
    return [label for label in rows if label in best]


def judged_figures(judged: Mapping[str, JudgedMetric]) -> dict[str, float]:
    """Beside each judged mean of `Judged.summary`: its coverage, the mean of the scores there are, the spread."""
    figures: dict[str, float] = {}
    for metric, scores in judged.items():
        values = {"coverage": scores["coverage"], "scored_mean": scores["mean"], "judge_sd": scores["judge_sd"]}
        figures |= {f"{metric}.{name}": float(value) for name, value in values.items() if value is not None}
    return figures


def costs(read: Read, label: str) -> ModelCosts:
    """The cost of a label's answers and judgements, for results.json; empty without a model."""
    answers = read.answers.get(label)
    entry: ModelCosts = {}
    if answers is not None:
        entry["answering"] = {
            "failures": sum(answer.failure is not None for answer in answers.values()),
            "calls": sum(answer.calls for answer in answers.values()),
            "tokens_in": sum(answer.tokens_in for answer in answers.values()),
            "tokens_out": sum(answer.tokens_out for answer in answers.values()),
        }
    if read.judged is not None and label in read.judged.labels:
        judged = read.judged.summary(label)
        entry["judged"] = judged
        entry["judge_calls"] = sum(scores["calls"] for scores in judged.values())
        entry["judge_tokens"] = sum(scores["tokens_in"] + scores["tokens_out"] for scores in judged.values())
    return entry
