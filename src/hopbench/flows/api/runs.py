"""Runs for programs: start one, or open one that is finished, and get its tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.flows.run.folder import RunFolder
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.compare import Comparison
    from hopbench.eval.report.recommend import Recommendation

LEADING = ("recall@5", "nDCG@10", "MRR", "has_answer@10")
COSTS = ("latency_ms_p50", "latency_ms_p95", "context_tokens", "llm_calls", "failures")


class Run:
    """A finished run: its tables as pandas, its comparisons, its report. Shown as its leaderboard in a notebook."""

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

        from hopbench.eval.metrics import rank_key

        entries = self.results["strategies"]
        measured = self.metric_names
        for name in metrics or ():
            if name not in measured:
                raise UnknownNameError("metric of this run", name, measured)
        usual = [name for name in (self.metric, *LEADING) if name in measured]
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

    @cached_property
    def _title(self) -> str:
        benchmark = self.results["benchmark"]
        return f"{benchmark['name']}, {benchmark['questions']} questions, {benchmark['passages']:,} passages"

    def __repr__(self) -> str:
        return f"<hopbench.Run of {self._title}: {len(self.labels)} labels, {self.folder}>"

    def _repr_html_(self) -> str:
        """The leaderboard, as a notebook shows it."""
        warnings = "".join(f"<li>{html.escape(line)}</li>" for line in self.warnings)
        listed = f"<ul>{warnings}</ul>" if warnings else ""
        table = self.leaderboard().to_html(float_format=lambda value: f"{value:.3f}", na_rep="–")
        return f"<p>{html.escape(self._title)}</p>{table}{listed}"


def default_folder(runs: Path, benchmark: str) -> Path:
    """Where a run goes that was given no folder: `RUNS/BENCHMARK-TIME`."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in benchmark)
    return runs / f"{safe}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
