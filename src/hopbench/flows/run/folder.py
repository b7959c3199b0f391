"""Reads a finished run's folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hopbench.eval.runs.files import FinishedRun
from hopbench.eval.types import Benchmark
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError


@dataclass(frozen=True)
class RunFolder(FinishedRun):
    """A finished run in a folder; `run_id` is its MLflow run, where it was fetched from there."""

    run_id: str = ""

    @classmethod
    def read(cls, folder: Path, run_id: str = "") -> RunFolder:
        """Read a run's folder, MLflow's where `run_id` names one; InputError where it is none."""
        return replace(super().read(folder), run_id=run_id)

    @property
    def place(self) -> str:
        """The absolute path."""
        return str(self.folder.resolve())

    @property
    def short(self) -> str:
        """The folder's own name, or the beginning of the run id."""
        return self.run_id[:8] or self.folder.resolve().name

    @property
    def display_name(self) -> str:
        """The folder as the user wrote it, or the MLflow run."""
        return f"MLflow run {self.run_id}" if self.run_id else str(self.folder)

    @property
    def description(self) -> str:
        """The folder or MLflow run, with its command and start time."""
        command = " ".join(str(self.facts.get("command", "")).split()[:2])
        started = str(self.facts.get("started", ""))[:16].replace("T", " ")
        about = ", ".join(filter(None, (command, started and f"{started} UTC")))
        return f"{self.display_name} ({about})" if about else self.display_name

    def options(self, dataset: str | None = None) -> GraphOptions:
        """The benchmark and graph settings of the run; `dataset` says where the benchmark is now."""
        place = dataset or self.settings.get("dataset")
        if not place:
            raise InputError(f"{self.folder} does not say where its benchmark is: name it with --dataset")
        return GraphOptions.from_settings(self.settings, place)

    def benchmark(self, dataset: str | None = None, home: Home | None = None) -> Benchmark:
        """The benchmark that was run, from the `home`'s mapped passages. Raises InputError where it has changed."""
        options = self.options(dataset)
        try:
            benchmark = options.benchmark(home)
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
