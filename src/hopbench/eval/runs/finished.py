"""A finished run, read back from its --out folder."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from hopbench.eval.files import read_table
from hopbench.eval.runs.schema import (
    DETAILS_FILE,
    QUESTIONS_FILE,
    RESULTS_FILE,
    RESULTS_SCHEMA,
    RunDetails,
    RunResults,
)
from hopbench.eval.trials.traces import TRACES_FILE
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FinishedRun:
    """The files of a finished run; tables are read when they are first asked for.

    `details` are empty where details.json.gz is missing.
    """

    folder: Path
    results: RunResults
    details: RunDetails

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read results.json and details.json.gz. Raises InputError where one is damaged or the first is missing."""
        file = folder / RESULTS_FILE
        if not file.is_file():
            raise InputError(f"{file} does not exist: name the --out folder of a finished run")
        try:
            results = json.loads(file.read_text(encoding="utf-8"))
            packed = folder / DETAILS_FILE
            details = json.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else {}
        except (ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
            raise InputError(f"{folder}: a file of the run is damaged ({error}): run the benchmark again") from error
        if not isinstance(details, dict):
            raise InputError(f"{folder / DETAILS_FILE}: is damaged (it holds no object): run the benchmark again")
        if not isinstance(results, dict) or results.get("schema") != RESULTS_SCHEMA:
            raise InputError(f"{file}: not of schema {RESULTS_SCHEMA!r}: name the --out folder of a finished run")
        return cls(folder, cast("RunResults", results), cast("RunDetails", details))

    @property
    def name(self) -> str:
        """The benchmark's name."""
        return self.results["benchmark"]["name"]

    @property
    def digest(self) -> str:
        """Digest of the benchmark that was run."""
        return self.results["benchmark"]["digest"]

    @property
    def labels(self) -> list[str]:
        """The labels that were run."""
        return list(self.results["strategies"])

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the run recorded of itself: its command, start, settings, warnings."""
        return self.details.get("run", {})

    @property
    def settings(self) -> Mapping[str, Any]:
        """The run's benchmark and graph settings by option; empty where details.json.gz is missing."""
        return self.facts.get("settings") or {}

    @cached_property
    def table(self) -> pd.DataFrame:
        """questions.parquet. Raises InputError where it is missing or damaged."""
        table = self._table(QUESTIONS_FILE)
        if table is None:
            raise InputError(f"{self.folder / QUESTIONS_FILE} does not exist: run the benchmark again")
        return table

    @cached_property
    def traces(self) -> pd.DataFrame | None:
        """traces.parquet, if there is one. Raises InputError where it is damaged."""
        return self._table(TRACES_FILE)

    def rows(self, label: str) -> pd.DataFrame:
        """The rows of a label by question id, as `score` made them."""
        if label not in self.labels:
            raise UnknownNameError(f"label in {self.folder}", label, self.labels)
        return self.table[self.table["strategy"] == label].set_index("question_id")

    def _table(self, name: str) -> pd.DataFrame | None:
        file = self.folder / name
        if not file.is_file():
            return None
        try:
            return read_table(file)
        except (ValueError, OSError) as error:
            raise InputError(f"{file} is damaged ({error}): run the benchmark again") from error
