"""Sweeps for programs: search a space of configurations, and get its table and its winner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import read_table
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import read_yaml

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("all_gold@10", "recall@5", "nDCG@10", "MRR", "has_answer@10")
COSTS = ("context_tokens", "llm_calls", "failures", "seconds")
WHERE_VARIED = ("build", "without", "dataset", "repeat")
"""Columns that a notebook shows only where their values differ."""

TABLE, BEST, REPORT, IDENTITY = "trials.parquet", "best.yaml", "report.html", "sweep.json"


class Sweep:
    """A finished sweep, by its --out folder. Shown as its best configurations in a notebook."""

    def __init__(self, folder: Path, warnings: Sequence[str] = ()) -> None:
        if not (folder / TABLE).is_file():
            raise InputError(f"{folder / TABLE} does not exist: name the --out folder of a finished sweep")
        self.folder = folder
        self.warnings = tuple(warnings)

    @cached_property
    def _table(self) -> pd.DataFrame:
        return read_table(self.folder / TABLE)

    @property
    def _objective(self) -> str:
        """The metric that chose the winner."""
        return str(json.loads((self.folder / IDENTITY).read_bytes())["objective"]["metric"])

    def trials(self) -> pd.DataFrame:
        """A row per configuration, best first: its parameters, the objective and all metrics, what it cost."""
        return self._table.copy()

    @property
    def best(self) -> Mapping[str, Any]:
        """The winner as `hopbench run --config` takes it: `strategies` is its label, the rest the graph's settings."""
        content: Mapping[str, Any] = read_yaml(self.best_file)
        return content

    @property
    def best_file(self) -> Path:
        """best.yaml, which `hopbench run --config` and `hopbench export` take."""
        return self.folder / BEST

    def report(self) -> Path:
        """The sweep's report, one self-contained HTML page."""
        return self.folder / REPORT

    def __repr__(self) -> str:
        return f"<hopbench.Sweep of {len(self._table)} configurations, best {self.best['strategies']}, {self.folder}>"

    def _repr_html_(self) -> str:
        """The ten best configurations with the parameters that vary, as a notebook shows them."""
        table = self._table
        varied = [name for name in WHERE_VARIED if table[name].nunique(dropna=False) > 1]
        usual = ["questions", self._objective, *METRICS, *COSTS]
        columns = [*varied, *dict.fromkeys(name for name in usual if name in table)]
        shown = table.head(10)[columns]
        shown.insert(0, "configuration", _configurations(table)[: len(shown)])
        made: str = shown.to_html(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
        return made


def _configurations(table: pd.DataFrame) -> list[str]:
    """Each row's strategy with those of its parameters that differ between the strategy's rows."""
    rows = [(str(name), json.loads(params)) for name, params in zip(table["strategy"], table["params"], strict=True)]
    values: dict[tuple[str, str], set[str]] = {}
    for strategy, params in rows:
        for name, value in params.items():
            values.setdefault((strategy, name), set()).add(str(value))
    varied = [
        (strategy, {name: str(value) for name, value in params.items() if len(values[strategy, name]) > 1})
        for strategy, params in rows
    ]
    return [str(Label(strategy, None, changes)) for strategy, changes in varied]
