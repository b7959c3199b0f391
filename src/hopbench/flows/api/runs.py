"""Runs and sweeps for programs: start one, or open one that is finished, and get its tables."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import read_table
from hopbench.flows.run.finished import RunFolder
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import read_yaml

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.compare import Comparison
    from hopbench.eval.report.recommend import Recommendation

COSTS = ("latency_ms_p50", "latency_ms_p95", "context_tokens", "llm_calls", "failures")


class Run:
    """A finished run: its tables as pandas, its comparisons, its report. Shown as its leaderboard in a notebook.

    Made by `hopbench.run` and `hopbench.load_run`.

    Example:
        >>> run = hopbench.load_run("out")                                                         # doctest: +SKIP
        >>> run.compare("bm25", "hoprank").to_frame()                                              # doctest: +SKIP
    """

    def __init__(self, folder: Path, warnings: Sequence[str] = ()) -> None:
        self._read = RunFolder.read(folder)
        self.warnings = tuple(warnings) or tuple(self._read.facts.get("warnings", ()))

    @property
    def folder(self) -> Path:
        """The run's --out folder: results.json, questions.parquet, report.html and others."""
        return self._read.folder

    @property
    def results(self) -> Mapping[str, Any]:
        """results.json."""
        return self._read.results

    @property
    def labels(self) -> list[str]:
        """The labels that were run, in the order of the run."""
        return self._read.labels

    @property
    def benchmark(self) -> str:
        """The name of the benchmark that was run."""
        return str(self.results["benchmark"]["name"])

    @property
    def metric(self) -> str | None:
        """The primary metric; None where the benchmark has neither gold passages nor answers."""
        from hopbench.eval.metrics import primary_of

        return primary_of(self.results)

    @property
    def metric_names(self) -> list[str]:
        """Every metric that at least one label has, sorted."""
        return sorted({name for entry in self.results["strategies"].values() for name in entry["metrics"]})

    def leaderboard(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """A row per label, best first: kind, metrics (default: the primary one and the usual others), costs.

        Index: label. Means are over all questions, a failed one counting as 0 where higher is better. Raises
        UnknownNameError for a metric that the run does not have.
        """
        import pandas as pd

        from hopbench.eval.metrics import rank_key, shown_in

        entries = self.results["strategies"]
        measured = self.metric_names
        for name in metrics or ():
            if name not in measured:
                raise UnknownNameError("metric of this run", name, measured)
        usual = [name for name in (self.metric, *shown_in("notebook")) if name in measured]
        columns = list(metrics) if metrics is not None else list(dict.fromkeys(usual))
        rows = {
            label: {
                "kind": entry.get("kind", ""),
                **{name: entry["metrics"].get(name) for name in columns},
                **{name: entry.get(name) for name in COSTS},
            }
            for label, entry in entries.items()
        }
        table = pd.DataFrame.from_dict(rows, orient="index")
        table.index.name = "label"
        primary = columns[0] if columns else None
        if primary is None:
            return table
        order = sorted(table.index, key=lambda label: (rank_key(primary, rows[label][primary]), label))
        return table.loc[order]

    def questions(self, label: str | None = None) -> pd.DataFrame:
        """A row per question and label, or per question of one label (then indexed by question id).

        Columns: ranked_ids, scores, every metric, latency_ms, failure and what else questions.parquet holds.
        """
        return self._read.table.copy() if label is None else self._read.rows(label).copy()

    def compare(
        self, *labels: str, metric: str | None = None, baseline: str | None = None, seed: int = 0
    ) -> Comparison:
        """Compare labels of this run question by question, as `hopbench compare` does.

        Without labels, all are compared; with a `baseline`, each with it, else every two. Returns a `Comparison`
        (`.pairs`, `.to_frame()`).
        """
        from hopbench.eval.compare import compare
        from hopbench.eval.metrics import lacking

        chosen = metric or self.metric
        if chosen is None:
            raise InputError(f"nothing to compare on: {lacking(None)}; or name a metric")
        rows = {label: self.questions(label) for label in labels or self.labels}
        return compare(rows, baseline, chosen, seed=seed)

    def recommend(
        self, *, latency_ms: float | None = None, context_tokens: float | None = None, llm: bool = True
    ) -> Recommendation:
        """The best label within limits, and what is statistically as good and cheaper."""
        from hopbench.eval.report.recommend import Limits, recommend

        limits = Limits(latency_ms=latency_ms, context_tokens=context_tokens, llm=llm)
        return recommend(self.results, {label: self.questions(label) for label in self.labels}, limits)

    def report(self) -> Path:
        """The run's report, one self-contained HTML page."""
        file = self.folder / "report.html"
        if not file.is_file():
            raise InputError(f"{file} does not exist: make it again with hopbench report {self.folder}")
        return file

    def __repr__(self) -> str:
        return f"<hopbench.Run of {self._title()}: {len(self.labels)} labels, {self.folder}>"

    def _title(self) -> str:
        benchmark = self.results["benchmark"]
        return f"{benchmark['name']}, {benchmark['questions']} questions, {benchmark['passages']:,} passages"

    def _repr_html_(self) -> str:
        """The leaderboard, as a notebook shows it."""
        warnings = "".join(f"<li>{html.escape(line)}</li>" for line in self.warnings)
        listed = f"<ul>{warnings}</ul>" if warnings else ""
        table = self.leaderboard().to_html(float_format=lambda value: f"{value:.3f}", na_rep="–")
        return f"<p>{html.escape(self._title())}</p>{table}{listed}"


def default_folder(runs: Path, benchmark: str) -> Path:
    """Where a run goes that was given no folder: `RUNS/BENCHMARK-TIME`."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in benchmark)
    return runs / f"{safe}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"


SWEEP_COSTS = ("context_tokens", "llm_calls", "failures", "seconds")
WHERE_VARIED = ("build", "without", "dataset", "repeat")
"""Columns that a notebook shows only where their values differ."""

TABLE, BEST, REPORT, IDENTITY = "trials.parquet", "best.yaml", "report.html", "sweep.json"


class Sweep:
    """A finished sweep, by its --out folder. Shown as its best configurations in a notebook.

    Made by `hopbench.sweep`.

    Attributes:
        folder: The sweep's --out folder.
        warnings: What a reader should know, such as trials that are incomplete.

    Example:
        >>> swept = hopbench.sweep("sweep.yaml", "tuning")                                         # doctest: +SKIP
        >>> swept.best["strategies"]                                                               # doctest: +SKIP
    """

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
        """The ten best configurations with the parameters that vary, as a notebook shows them."""
        from hopbench.eval.metrics import shown_in

        table = self._table
        varied = [name for name in WHERE_VARIED if table[name].nunique(dropna=False) > 1]
        objective = str(json.loads((self.folder / IDENTITY).read_bytes())["objective"]["metric"])
        usual = ["questions", objective, *shown_in("sweep"), *SWEEP_COSTS]
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
