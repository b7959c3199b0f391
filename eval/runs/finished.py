"""A finished run as its folder tells it: what tables in the documentation are written from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import read_table
from hopbench.eval.metrics import PRIMARY
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FinishedRun:
    """`results` is its results.json, `rows` each label's rows of questions.parquet by question id."""

    results: Mapping[str, Any]
    rows: Mapping[str, pd.DataFrame]

    @classmethod
    def read(cls, folder: Path) -> FinishedRun:
        """The run that `hopbench run --out FOLDER` wrote; InputError where there is none."""
        file = folder / "results.json"
        if not file.is_file():
            raise InputError(f"{file} is not there: name folders that `hopbench run --out` wrote")
        table = read_table(folder / "questions.parquet").set_index("question_id")
        rows = {str(label): part for label, part in table.groupby("strategy")}
        return cls(json.loads(file.read_text(encoding="utf-8")), rows)

    @property
    def name(self) -> str:
        """The benchmark's name."""
        return str(self.results["benchmark"]["name"])

    @property
    def title(self) -> str:
        """The benchmark with its size, for above a table."""
        benchmark = self.results["benchmark"]
        return f"**{self.name}**, {benchmark['questions']} questions, {benchmark['passages']:,} passages"

    def scores(self, label: str) -> str:
        """recall@5 / all_gold@10, a dash for a label that was not run."""
        if label not in self.rows:
            return "–"
        metrics = self.results["strategies"][label]["metrics"]
        return f"{metrics['recall@5']:.3f} / {metrics[PRIMARY]:.3f}"

    def milliseconds(self, label: str) -> str:
        """A question's share of the batch."""
        seconds = self.results["strategies"][label]["seconds"]
        return "–" if seconds is None else f"{1000 * seconds / self.results['benchmark']['questions']:.1f}"


def as_markdown(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *lines)) + "\n"
