"""The results of a sweep: one per configuration, their order, and the table that other programs read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hopbench.eval.metrics import all_metrics, rank_key
from hopbench.eval.sweep.candidate import Candidate
from hopbench.eval.sweep.model import Objective
from hopbench.eval.trials.ledger import TrialRecord
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


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
        return [name for name, most in constraints.items() if (cost := self.cost(name)) is None or cost > most]

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
    """Those of `results` (best first) that could have been chosen: whole, and within the constraints if any is."""
    whole = [result for result in results if result.dropped_at is None]
    return [result for result in whole if not result.violated(constraints)] or whole


def trials_table(results: Sequence[Result], constraints: Mapping[str, float], reported: Result | None) -> pd.DataFrame:
    """trials.parquet (a contract, SPEC section 6): a row per trial, a column per metric and per cost.

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
    """A strategy's parameters as canonical JSON."""
    return json.dumps(strategy.spec(), sort_keys=True)
