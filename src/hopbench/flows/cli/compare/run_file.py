"""`--runs NAME=FILE` of a comparison: rankings made elsewhere, scored on the benchmark of the other sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.retrieval.external import Recorded


@dataclass(frozen=True)
class RunFileSource:
    """One label of a file or folder of rankings: a source of one label, beside `RunFolder`."""

    label: str
    strategy: Recorded
    scored_on: Benchmark

    @property
    def place(self) -> str:
        """The flag: no two share a name."""
        return f"--runs {self.label}"

    @property
    def short(self) -> str:
        """Its name."""
        return self.label

    @property
    def display_name(self) -> str:
        """Its name."""
        return self.label

    @property
    def description(self) -> str:
        """What kind of file it is, and the beginning of its digest."""
        return f"{self.label} ({self.strategy.form}, sha256 {self.strategy.digest[:12]})"

    @property
    def digest(self) -> str:
        """Digest of the benchmark on which it is scored."""
        return self.scored_on.digest

    @property
    def results(self) -> Mapping[str, Any]:
        """Its results.json, as a run would have written it."""
        from hopbench.eval.metrics import primary_metric

        benchmark = self.scored_on
        about = {
            "name": benchmark.name,
            "digest": benchmark.digest,
            "questions": len(benchmark.questions),
            "passages": len(benchmark.passages),
            "primary_metric": primary_metric(benchmark),
        }
        entry = {"kind": self.strategy.kind, "in_sample": None, "params": self.strategy.spec()}
        return {"benchmark": about, "strategies": {self.label: entry}}

    @property
    def labels(self) -> Sequence[str]:
        """Its one label."""
        return [self.label]

    @cached_property
    def _rows(self) -> pd.DataFrame:
        from hopbench.eval.runs.external import scored_rows

        return scored_rows(self.label, self.strategy, self.scored_on)

    def rows(self, label: str) -> pd.DataFrame:
        """Its rows by question id."""
        return self._rows

    def benchmark(self, dataset: str | None = None) -> Benchmark:
        """The benchmark on which it is scored."""
        return self.scored_on


def run_file_sources(runs: Sequence[str], beside: Benchmark | None, dataset: str | None) -> list[RunFileSource]:
    """The sources of --runs, scored on the benchmark of the runs `beside` them, or else on --dataset."""
    from hopbench.flows.settings.foreign import foreign_labels, tie_notes
    from hopbench.retrieval.external import Recorded

    if not runs:
        return []
    if beside is None and dataset is None:
        raise InputError("--runs: scored on which benchmark? Name a run beside it, or --dataset")
    benchmark = beside or load_benchmark(str(dataset))
    found = foreign_labels(runs, (), {}, ())
    for note in tie_notes(found):
        notice(note)
    return [RunFileSource(label, one, benchmark) for label, one in found.items() if isinstance(one, Recorded)]
