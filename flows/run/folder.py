"""Reads a finished run's folder."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.files import read_table
from hopbench.eval.report.data import RESULTS_SCHEMA
from hopbench.eval.report.folder import DETAILS_FILE
from hopbench.eval.types import Benchmark
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunFolder:
    """results.json of `folder`, and the settings of its run (empty where details.json.gz is missing)."""

    folder: Path
    results: dict[str, Any]
    settings: dict[str, Any]
    run_id: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, run_id: str = "") -> RunFolder:
        """Read a run's folder, MLflow's where `run_id` names one; InputError where it is none."""
        file = folder / "results.json"
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
        facts = details.get("run", {})
        return cls(folder, results, facts.get("settings") or {}, run_id, facts)

    @property
    def place(self) -> str:
        """The absolute path."""
        return str(self.folder.resolve())

    @property
    def short(self) -> str:
        """The folder's own name, or the beginning of the run id."""
        return self.run_id[:8] or self.folder.resolve().name

    @property
    def shown(self) -> str:
        """The folder as it was written, or the run."""
        return f"MLflow run {self.run_id}" if self.run_id else str(self.folder)

    @property
    def told(self) -> str:
        """Which run it is: the folder or MLflow's run, its command and when it was started."""
        command = " ".join(str(self.facts.get("command", "")).split()[:2])
        started = str(self.facts.get("started", ""))[:16].replace("T", " ")
        about = ", ".join(filter(None, (command, started and f"{started} UTC")))
        return f"{self.shown} ({about})" if about else self.shown

    @property
    def digest(self) -> str:
        """Digest of the benchmark that was run."""
        return str(self.results["benchmark"]["digest"])

    @property
    def labels(self) -> list[str]:
        """The labels that were run."""
        return list(self.results["strategies"])

    @cached_property
    def table(self) -> pd.DataFrame:
        """questions.parquet."""
        file = self.folder / "questions.parquet"
        if not file.is_file():
            raise InputError(f"{file} does not exist: run the benchmark again")
        try:
            return read_table(file)
        except (ValueError, OSError) as error:
            raise InputError(f"{file} is damaged ({error}): run the benchmark again") from error

    def rows(self, label: str) -> pd.DataFrame:
        """The rows of a label by question id, as `score` made them."""
        if label not in self.labels:
            raise UnknownNameError(f"label in {self.folder}", label, self.labels)
        table = self.table
        return table[table["strategy"] == label].set_index("question_id")

    def options(self, dataset: str | None = None) -> GraphOptions:
        """The benchmark and graph settings of the run; `dataset` says where the benchmark is now."""
        place = dataset or self.settings.get("dataset")
        if not place:
            raise InputError(f"{self.folder} does not say where its benchmark is: name it with --dataset")
        return GraphOptions.from_settings(self.settings, place)

    def benchmark(self, dataset: str | None = None) -> Benchmark:
        """The benchmark that was run, refused when it is another one by now."""
        options = self.options(dataset)
        try:
            benchmark = load_benchmark(options.dataset, limit=options.limit)
        except InputError as error:
            if dataset is not None:
                raise
            message = f"{error} ({self.folder} was run on it: say with --dataset where it is now)"
            raise InputError(message) from error
        if benchmark.digest != self.digest:
            run = self.results["benchmark"]
            raise InputError(
                f"{self.folder} was run on {run['name']} (digest {self.digest[:12]}, {run['questions']} questions), "
                f"and {options.dataset} has digest {benchmark.digest[:12]} ({len(benchmark.questions)} questions): "
                "name the benchmark that was run with --dataset, or run it again"
            )
        return benchmark
