"""The files of a run: their names, every key and column in them, and reading a finished run back.

In results.json only values whose key contains `seconds` or `latency` differ between equal runs.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, Self, TypeAlias, TypedDict, cast

from hopbench.eval.answering.answers import ModelCosts, ModelEntries
from hopbench.eval.files import read_table
from hopbench.eval.metrics.scoring import Summary
from hopbench.retrieval.strategies.registry import InSample
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

RESULTS_SCHEMA = "hopbench.results/1"
DETAILS_SCHEMA = "hopbench.details/1"

RESULTS_FILE = "results.json"
QUESTIONS_FILE = "questions.parquet"
JUDGEMENTS_FILE = "judgements.parquet"
DETAILS_FILE = "details.json.gz"
REPORT_FILE = "report.html"
TRACES_FILE = "traces.parquet"

QUESTION_COLUMNS = ("question_id", "strategy", "ranked_ids", "scores", "latency_ms", "graph_context")
"""The first columns of questions.parquet, a row per question and label; metrics and `failure` follow."""

SOURCES_COLUMN = "sources"
"""File and page of each ranked passage, after these, where the corpus gives them."""


class StrategyEntry(Summary, ModelCosts):
    """A label's results: parameters, means with their ceilings, and costs.

    `once_seconds` is the time of what was done once for the corpus, not counted in `seconds`. `latency_pace` is the
    pace of single calls relative to the yardstick; `latency_without_model` tells that replies of a model came from the
    cache. `plugins` are version and digest of the plug-ins that a strategy comes from.
    """

    kind: str
    in_sample: InSample | None
    params: Mapping[str, object]
    seconds: float | None
    stage_seconds: Mapping[str, float]
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    round_trips: int
    rows: int
    edges_touched: int
    terminations: Mapping[str, int]
    observed: Mapping[str, int]
    counts: Mapping[str, float]
    llm_calls: int
    tokens: int
    context_tokens: float
    once_seconds: NotRequired[float | None]
    plugins: NotRequired[Mapping[str, str]]
    reach: NotRequired[Mapping[str, float]]
    latency_pace: NotRequired[Mapping[str, float]]
    latency_without_model: NotRequired[bool]


class RunResults(ModelEntries):
    """results.json.

    `benchmark` has the name, role, digest and primary metric of what was run, counts, `min_grade` where it is not 1,
    and `unfit` where its questions failed their check: why they measure nothing. `graph` has its fingerprint and counts
    of nodes and edges by type. `targets`, where some were set, are by condition and label: the value (None: not
    measured) and whether it passed.
    """

    schema: str
    benchmark: Mapping[str, Any]
    graph: Mapping[str, Any]
    embedder: str
    store: str
    search: str
    seed: int
    shared_seconds: float
    strategies: Mapping[str, StrategyEntry]
    targets: NotRequired[Mapping[str, Mapping[str, Any]]]


ComparisonEntry: TypeAlias = dict[str, Any]
"""A label against the baseline on one metric, as `hopbench.eval.compare.Comparison.entries` makes it."""

StepEntry: TypeAlias = dict[str, Any]
"""One edge of a path: its type (`edge`), `source` and `target`, its `weight`, and the path's `score` after it."""

HitEntry: TypeAlias = dict[str, Any]
"""One of a question's first hits: `passage_id`, `rank`, `score`, `origin`, `components`, the `path` that led to it (a
list of StepEntry), and `source`, its file and page, where the corpus gives them."""


class RunDetails(TypedDict, total=False):
    """details.json.gz: the report's content that results.json and questions.parquet lack.

    `run` holds the facts of the command, among them its `settings` and `warnings`; `stated` holds [entity id, entity
    id, lines] of pairs on paths; `paths` has for each `question_id` and `strategy` its `hits`.
    """

    schema: str
    run: Mapping[str, Any]
    comparisons: Sequence[ComparisonEntry]
    beside: Sequence[ComparisonEntry]
    intervals: Mapping[str, Mapping[str, Sequence[float]]]
    names: Mapping[str, str]
    stated: Sequence[tuple[str, str, Sequence[str]]]
    paths: Sequence[Mapping[str, Any]]


def figure(entry: StrategyEntry, name: str) -> float | None:
    """Look up a cost of a label by its key; None where it is missing or was not measured."""
    value = cast("Mapping[str, float | None]", entry).get(name)
    return None if value is None else float(value)


@dataclass(frozen=True)
class FinishedRun:
    """The files of a finished run; tables are read on first use.

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
        return str(self.results["benchmark"]["name"])

    @property
    def digest(self) -> str:
        """Digest of the benchmark that was run."""
        return str(self.results["benchmark"]["digest"])

    @property
    def labels(self) -> list[str]:
        """The labels that were run."""
        return list(self.results["strategies"])

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts about the run: its command, start, settings, warnings."""
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
        """Select the rows of a label by question id, as `score` made them."""
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
