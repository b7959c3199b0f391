"""What a data set holds and lacks, and what of HopBench works on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.data_check.content import Fact, contents
from hopbench.eval.data_check.faults import faults_of
from hopbench.eval.data_check.findings import findings
from hopbench.eval.data_check.needs import CommandUse, MetricUse, command_uses, metric_uses
from hopbench.eval.types import Benchmark, Finding
from hopbench.retrieval.support.errors import InputError

ROLES = {
    "tune": "for tuning: sweep and train may choose numbers by it; what they choose must not be reported on it",
    "report": "for reporting: figures on it count, so nothing is tuned on it or learned from it",
    "user": "questions without gold passages: neither for tuning nor for reporting",
}


@dataclass(frozen=True)
class Checked:
    """The outcome. `faults` are messages that stop every command; then there is no benchmark and nothing else."""

    dataset: str
    benchmark: Benchmark | None
    facts: Sequence[Fact] = ()
    findings: Sequence[Finding] = ()
    metrics: Sequence[MetricUse] = ()
    commands: Sequence[CommandUse] = ()
    faults: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        known = self.benchmark
        about = {} if known is None else {"name": known.name, "role": known.role, "digest": known.digest}
        return {
            "dataset": self.dataset,
            **about,
            "faults": list(self.faults),
            "content": {fact.name: {"count": fact.count, "note": fact.note} for fact in self.facts},
            "findings": [asdict(finding) for finding in self.findings],
            "metrics": {use.name: {"needs": list(use.needs), "questions": use.questions} for use in self.metrics},
            "commands": {
                use.command: {"needs": use.needs, "works": use.works, "note": use.note} for use in self.commands
            },
        }


def check_data(dataset: str, questions: Path | None = None) -> Checked:
    """Check a data set, with or without questions; of one that cannot be loaded, all that stops it.

    Raises
    ------
    InputError
        When there is nothing to look at: an unknown name, or a path where nothing is.
    """
    try:
        benchmark = load_benchmark(dataset, questions=questions, need_questions=False)
    except InputError as error:
        folder = Path(os.path.expanduser(dataset))
        if not folder.exists():
            raise
        faults = faults_of(folder, questions) if folder.is_dir() else []
        return Checked(dataset, None, faults=faults or [str(error)])
    return Checked(
        dataset,
        benchmark,
        contents(benchmark, questions),
        findings(benchmark, questions),
        metric_uses(benchmark),
        command_uses(benchmark),
    )
