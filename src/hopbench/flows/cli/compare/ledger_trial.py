"""A trial of the ledger as one side of a comparison, beside `run_folder`: a sweep's, or the champion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.trials.ledger import TrialRecord


@dataclass(frozen=True)
class LedgerTrial:
    """A trial of the ledger: a sweep's, or the champion."""

    trial: TrialRecord
    label: str
    name: str

    @property
    def place(self) -> str:
        """The trial's own name."""
        return f"trial {self.trial.trial_id}"

    @property
    def short(self) -> str:
        """How it was asked for."""
        return self.name

    @property
    def display_name(self) -> str:
        """Its unique name."""
        return self.place

    @property
    def description(self) -> str:
        """Which trial it is, and when it ended."""
        ended = datetime.fromtimestamp(self.trial.ended, UTC)
        return f"{self.place} of the ledger ({self.label}, {ended:%Y-%m-%d %H:%M} UTC)"

    @property
    def digest(self) -> str:
        """Digest of its benchmark."""
        return str(self.trial.settings["dataset"])

    @property
    def results(self) -> Mapping[str, Any]:
        """The entry of results.json on its benchmark, as far as the ledger has it."""
        questions = len(self.trial.settings["questions"])
        return {"benchmark": {"name": "(ledger)", "questions": questions, "digest": self.digest}}

    @property
    def labels(self) -> list[str]:
        """Its one label."""
        return [self.label]

    def rows(self, label: str) -> pd.DataFrame:
        """Its rows by question id."""
        return self.trial.questions

    def benchmark(self, dataset: str | None = None) -> Benchmark:
        """The benchmark at `dataset`. Raises InputError where it is not given or another one."""
        if dataset is None:
            raise InputError(f"{self.place} does not say where its benchmark is: name it with --dataset")
        result = load_benchmark(dataset)
        if result.digest != self.digest:
            raise InputError(f"{dataset} is not the benchmark of {self.place} (digest {self.digest[:12]})")
        return result
