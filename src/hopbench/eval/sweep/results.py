"""The results of a sweep: one per configuration, their order, table and winner, and how much of its lead is luck.

Choosing the best of many on the questions that score it flatters it. So the choice is repeated on bootstrap resamples
of the questions and scored on the questions that each resample left out (Efron and Tibshirani, 1997; Cawley and Talbot,
JMLR 2010): the estimate is of the whole procedure, choice included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

from hopbench.eval.answering.reading import Read, costs, judged_figures
from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import Summary, all_metrics, rank_key, sign_of, worst_of
from hopbench.eval.sweep.file import Objective
from hopbench.eval.sweep.plan import SweepPlan
from hopbench.eval.sweep.space import Candidate
from hopbench.eval.trials.key import code_version
from hopbench.eval.trials.ledger import TrialRecord
from hopbench.eval.types import MAX_FAILED, Benchmark, hashes_of, too_many_failed
from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.support.arithmetic import summable
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 1_000
PRINTED = 3  # decimals of a metric, wherever it is shown
Array = npt.NDArray[np.float64]
COVERAGE = "read_coverage"


class Cell(NamedTuple):
    """The data set, seed and repeat of a trial."""

    dataset: str
    seed: int = 0
    repeat: int = 0


@dataclass(frozen=True)
class Result:
    """A configuration with its trials. `dropped_at` is the questions of the round after which halving dropped it."""

    candidate: Candidate
    records: Mapping[Cell, TrialRecord]
    dropped_at: int | None = None

    @cached_property
    def by_dataset(self) -> dict[str, list[TrialRecord]]:
        """The trials on each data set."""
        records: dict[str, list[TrialRecord]] = {}
        for cell, record in self.records.items():
            records.setdefault(cell.dataset, []).append(record)
        return records

    def mean(self, metric: str) -> float:
        """The metric's mean over the data sets, each counting the same; on each over its seeds and repeats.

        Raises InputError for a data set on which nothing can be measured.
        """
        return round(float(np.mean([self.on(dataset, metric) for dataset in self.by_dataset])), 9)

    def on(self, dataset: str, metric: str) -> float:
        """The metric's mean over the trials on one data set."""
        records = self.by_dataset[dataset]
        if metric not in records[0].metrics:
            raise InputError(f"objective: {metric} cannot be measured on {dataset}: it has no gold for it")
        return float(np.mean([record.metrics[metric] for record in records]))

    def cost(self, name: str) -> float | None:
        """A cost on the data set where it is highest, its mean over the trials there; None where not measured."""
        means = []
        for records in self.by_dataset.values():
            values = [record.seconds if name == "seconds" else record.costs.get(name) for record in records]
            known = [value for value in values if value is not None]
            if known:
                means.append(float(np.mean(known)))
        return max(means, default=None)

    def violated(self, constraints: Mapping[str, float]) -> list[str]:
        """The constraints that it violates."""
        return [name for name, limit in constraints.items() if (cost := self.cost(name)) is None or cost > limit]

    @cached_property
    def ragas(self) -> dict[str, float]:
        """The means of RAGAS's metrics without a model that every trial has."""
        measured = set.intersection(*(set(record.metrics) for record in self.records.values()))
        return {name: self.mean(name) for name in all_metrics("ragas") if name in measured}

    @property
    def failures(self) -> int:
        """Questions without a ranking, over all trials."""
        return sum(record.failures for record in self.records.values())


def ranked(results: Sequence[Result], objective: Objective, constraints: Mapping[str, float]) -> list[Result]:
    """Best first: whole before dropped ones, those within the constraints before those that are not.

    Then by the objective, by its second metric, and by the smaller text of the parameters.
    """

    def place(result: Result) -> tuple[object, ...]:
        dropped = 0 if result.dropped_at is None else -result.dropped_at
        values = [rank_key(name, result.mean(name)) for name in (objective.metric, objective.also)]
        worse = result.dropped_at is not None, dropped, bool(result.violated(constraints))
        return (*worse, *values, text(result.candidate.strategy), str(result.candidate.build))

    return sorted(results, key=place)


def eligible(results: Sequence[Result], constraints: Mapping[str, float]) -> list[Result]:
    """Select the results (best first) that could have been chosen: whole, and within the constraints if any is."""
    whole = [result for result in results if result.dropped_at is None]
    return [result for result in whole if not result.violated(constraints)] or whole


def trials_table(results: Sequence[Result], constraints: Mapping[str, float], reported: Result | None) -> pd.DataFrame:
    """trials.parquet (a contract): a row per trial, a column per metric and per cost.

    An ablation names the edge types it is `without` and the trial it is an `ablation_of`. `dropped` marks what halving
    dropped: its metrics are those of `questions` questions. `within` is whether the configuration meets the
    constraints; `role` is "sweep", or "report" for the winner's score on the set it was not chosen on.
    """
    import pandas as pd

    ids: dict[tuple[Strategy | None, object, Cell], str] = {}
    for result in results:
        own = result.candidate.strategy, result.candidate.build
        ids |= {(*own, cell): record.trial_id for cell, record in result.records.items()}
    roles = [("sweep", result) for result in results] + ([("report", reported)] if reported else [])
    rows = [
        {
            "trial_id": record.trial_id,
            "strategy": result.candidate.strategy.name,
            "params": text(result.candidate.strategy),
            "build": str(result.candidate.build),
            "without": ",".join(result.candidate.without),
            "ablation_of": ids.get((result.candidate.of, result.candidate.build, cell), ""),
            "dataset": cell.dataset,
            "role": role,
            "seed": cell.seed,
            "repeat": cell.repeat,
            "questions": len(record.questions),
            "dropped": result.dropped_at is not None,
            "within": not result.violated(constraints),
            **record.metrics,
            **record.costs,
            "failures": record.failures,
            "seconds": round(record.seconds, 4),
        }
        for role, result in roles
        for cell, record in result.records.items()
    ]
    return pd.DataFrame(rows)


def text(strategy: Strategy) -> str:
    """Format a strategy's parameters as canonical JSON."""
    return json.dumps(strategy.spec(), sort_keys=True)


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


def with_readers(own: Mapping[str, float], answered: Read, label: str, summary: Summary) -> dict[str, float]:
    """Add the costs of answers and judgements to a trial's, and the share of the questions that they cover.

    `read_coverage` is that of the metric that covers least, of the questions with a ranking.
    """
    spent = costs(answered, label)
    answering = spent.get("answering", {})
    total = dict(own)
    total["llm_calls"] += answering.get("calls", 0)
    total["tokens"] += answering.get("tokens_in", 0) + answering.get("tokens_out", 0)
    total |= {name: float(spent[name]) for name in ("judge_calls", "judge_tokens") if name in spent}
    lowest = min((summary["measured"][name] for name in model_metrics() if name in summary["measured"]), default=1.0)
    share = min(1.0, lowest / summary["coverage"]) if summary["coverage"] else 1.0
    return {**total, **judged_figures(spent.get("judged", {})), COVERAGE: share}


def coverage_of(result: Result) -> float | None:
    """The smallest `read_coverage` of a configuration's trials; None without a reader or judge."""
    return min((r.costs[COVERAGE] for r in result.records.values() if COVERAGE in r.costs), default=None)


def model_metrics() -> list[str]:
    """Every metric of a reader's answers or a judge's scores."""
    return [*all_metrics("answer"), *all_metrics("judge")]


def shortcomings(record: TrialRecord) -> list[str]:
    """Explain why a trial is not stored: an outage of a server or model must not be its final result."""
    reasons, count = [], len(record.questions)
    if too_many_failed(record.failures, count):
        reasons.append(f"{record.failures} of {count} questions failed")
    if record.costs.get(COVERAGE, 1.0) < 1.0 - MAX_FAILED:
        reasons.append(f"answers or judgements cover {record.costs[COVERAGE]:.1%} of it")
    return reasons


def is_complete(record: TrialRecord) -> bool:
    """Whether enough of a trial's questions were ranked and read to store it; else the next run repeats it."""
    return not shortcomings(record)


@dataclass(frozen=True)
class ModelScore:
    """A metric's mean over a configuration's data sets; the smallest coverage and the largest spread of them."""

    mean: float
    coverage: float | None
    judge_sd: float | None


def model_scores(result: Result) -> dict[str, ModelScore]:
    """A configuration's answer and judge metrics; empty without a reader or judge."""
    records = list(result.records.values())
    known = [name for name in model_metrics() if all(name in record.metrics for record in records)]
    shares = {name: [r.costs[f"{name}.coverage"] for r in records if f"{name}.coverage" in r.costs] for name in known}
    return {
        name: ModelScore(result.mean(name), min(shares[name], default=None), result.cost(f"{name}.judge_sd"))
        for name in known
    }


def scored_columns(results: Sequence[Result]) -> list[str]:
    """The answer and judge metrics that any configuration has, in the registry's order."""
    scored = {name for result in results for name in model_scores(result)}
    return [name for name in model_metrics() if name in scored]


def readers_of(result: Result) -> tuple[str, str]:
    """The reader and the judge of a configuration, in words; empty where there is none."""
    settings = next(iter(result.records.values())).settings
    reader, judge = settings.get("reader"), settings.get("judge")
    judged_by = ""
    if judge:
        judged_by = f"{judge['model']}@{judge['url']}, profile {judge['profile']}, asked {judge['repeats']} ×"
    return reader["llm"] if reader else "", judged_by


def write_preset(path: Path, plan: SweepPlan, best: Result, benchmarks: Mapping[str, Benchmark]) -> None:
    """Write the winner's values of the fields that the sweep names; all others have their documented defaults."""
    objective, spec = plan.content.objective, best.candidate.strategy.spec()
    usual = {name: field.default for name, field in type(best.candidate.strategy).parameters().items()}
    parameters = {name: value for name, value in spec.items() if name in plan.named or value != usual[name]}
    content = {
        "parameters": parameters,
        "provenance": {
            "sweep": plan.file.name,
            "sweep_digest": hashlib.sha256(plan.file.read_bytes()).hexdigest(),
            "tuned_on": {
                name: {
                    "role": benchmark.role,
                    "questions": len(best.by_dataset[name][0].questions),
                    objective.metric: best.on(name, objective.metric),
                    "digest": benchmark.digest,
                    **hashes_of(benchmark),
                }
                for name, benchmark in benchmarks.items()
            },
            "seed": plan.content.seed,
            "embedder": next(iter(best.records.values())).settings["embedder"],
            "trials": plan.trials,
            "configurations": len(plan.candidates),
            "objective": f"mean of {objective.metric} over the data sets; ties by {objective.also}",
            "value": round(best.mean(objective.metric), 6),
            "code_version": code_version(),
        },
    }
    write_atomically(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120).encode())


def best_yaml(plan: SweepPlan, best: Result, tuned_on: Sequence[FittedOn] = ()) -> str:
    """Format the winner for `hopbench run --config`, with the sets that chose it unless its label names them."""
    build, content = best.candidate.build, plan.content
    flags: dict[str, object] = {
        "dataset": plan.report_on or plan.datasets[0],
        "strategies": best.candidate.label,
        "store": content.store,
        "embedder": build.embedder,
        "extractor": build.extractor,
        **build.settings(),
        **({"llm": content.llm} if content.llm else {}),
        **content.asked,
    }
    if content.judge:
        flags |= {
            "judge": content.judge,
            "judge_profile": content.judge_profile,
            "judge_metrics": ",".join(content.judge_metrics) or "all",
            "repeats": content.judge_repeats,
        }
    if tuned_on and Label.of_any(best.candidate.label).changes:
        flags["tuned_on"] = list(map(str, tuned_on))
    metric = content.objective.metric
    chosen_on = ", ".join(dataset.name for dataset in tuned_on) or ", ".join(best.by_dataset)
    comment = f"# The best configuration of {plan.file.name}: {metric} {best.mean(metric):.3f}, chosen on {chosen_on}\n"
    return f"{comment}# hopbench run --config best.yaml --out DIR\n{yaml.safe_dump(flags, sort_keys=False, width=120)}"
