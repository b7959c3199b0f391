"""Sweeps for programs: search a space of configurations, and get its table and its winner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import read_table
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import read_yaml

if TYPE_CHECKING:
    import pandas as pd

TABLE, BEST, REPORT = "trials.parquet", "best.yaml", "report.html"


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
        """The ten best configurations, as a notebook shows them."""
        table: str = self._table.head(10).to_html(index=False, float_format=lambda value: f"{value:.3f}", na_rep="–")
        return table
