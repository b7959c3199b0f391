"""The evaluation as the contract files of a run state it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hopbench.eval.answering.answers import ModelEntries
from hopbench.eval.answering.reading import costs
from hopbench.eval.files import write_table
from hopbench.eval.runs.evaluate import Evaluation
from hopbench.eval.runs.files import (
    QUESTION_COLUMNS,
    RESULTS_SCHEMA,
    SOURCES_COLUMN,
    TRACES_FILE,
    ComparisonEntry,
    RunResults,
    StrategyEntry,
)
from hopbench.eval.runs.targets import check_targets, targets_entry
from hopbench.eval.synthesize.write import unfit
from hopbench.eval.trials.key import plugin_settings
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.retrieval.text.model_tokens import count_tokens

if TYPE_CHECKING:
    import pandas as pd


def results(evaluation: Evaluation) -> RunResults:
    """Make the content of results.json."""
    plan = evaluation.plan
    benchmark, record = plan.benchmark, plan.record
    strategies = {label: _strategy(evaluation, label) for label in evaluation.trials}
    about: dict[str, Any] = {
        "name": benchmark.name,
        "role": benchmark.role,
        "questions": len(benchmark.questions),
        "passages": len(benchmark.passages),
        "digest": benchmark.digest,
        "primary_metric": plan.primary,
    }
    if why := unfit(benchmark.folder):
        about["unfit"] = why
    if benchmark.min_grade != 1:
        about["min_grade"] = benchmark.min_grade
    models: ModelEntries = {}
    if evaluation.read.reader is not None:
        models["reader"] = evaluation.read.reader
    if evaluation.read.judged is not None:
        models["judge"] = evaluation.read.judged.judge
    made = {
        "schema": RESULTS_SCHEMA,
        "benchmark": about,
        "graph": {key: record[key] for key in ("fingerprint", "build_key", "nodes", "edges", "build_seconds")},
        "embedder": plan.index.embedder.name,
        "store": plan.index.store.engine,
        "search": plan.index.search,
        "seed": plan.seed,
        "shared_seconds": round(evaluation.shared_seconds, 3),
        **models,
        "strategies": strategies,
    }
    if plan.targets:
        made["targets"] = targets_entry(check_targets(plan.targets, strategies))
    return cast("RunResults", made)


def _strategy(evaluation: Evaluation, label: str) -> StrategyEntry:
    trial, summary = evaluation.trials[label], evaluation.summaries[label]
    latencies, counters = list(trial.latency_ms.values()), trial.counters
    strategy = evaluation.plan.strategies.get(label)  # the closed-book row has none
    untimed = strategy is not None and strategy.timing == "unknown"
    plugins = plugin_settings(strategy).get("plugins") if strategy is not None else None
    models = costs(evaluation.read, label)
    answering = models.get("answering") or {"calls": 0, "tokens_in": 0, "tokens_out": 0, "failures": 0}
    # Single calls are measured after the trial, when the model's replies come from the cache.
    without_model = bool(counters.llm_calls and trial.latency_ms)
    entry = {
        "kind": evaluation.plan.kind(label),
        "in_sample": evaluation.plan.in_sample(label),
        "params": dict(trial.parameters),
        **({"plugins": plugins} if plugins else {}),
        **summary,
        "seconds": None if untimed else round(trial.seconds, 4),
        "once_seconds": None if untimed else round(trial.once_seconds, 4),
        "stage_seconds": {stage: round(spent, 4) for stage, spent in sorted(counters.stage_seconds.items())},
        "latency_ms_p50": round(float(np.percentile(latencies, 50)), 3) if latencies else None,
        "latency_ms_p95": round(float(np.percentile(latencies, 95)), 3) if latencies else None,
        **({"latency_pace": dict(trial.pace)} if trial.pace else {}),
        **({"latency_without_model": True} if without_model else {}),
        "round_trips": counters.round_trips,
        "rows": counters.rows,
        "edges_touched": counters.edges_touched,
        "terminations": dict(sorted(counters.terminations.items())),
        "observed": dict(sorted(counters.observed.items())),
        "counts": {name: round(float(np.mean(noted)), 4) for name, noted in sorted(_numbers_noted(trial).items())},
        "llm_calls": counters.llm_calls + answering["calls"],
        "tokens": counters.tokens + answering["tokens_in"] + answering["tokens_out"],
        "context_tokens": trial.context_tokens,
        **models,
    }
    return cast("StrategyEntry", entry)


def _numbers_noted(trial: TrialOutcome) -> dict[str, list[float]]:
    """Every number that the strategy noted of questions."""
    values: dict[str, list[float]] = {}
    for notes in trial.notes.values():
        for name, value in notes.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(name, []).append(value)
    return values


def questions_table(evaluation: Evaluation) -> pd.DataFrame:
    """Make questions.parquet: a row per question and label with ranking, every metric, failure, and latency.

    The column `sources`, where the corpus gives file and page of its passages, has those of each ranked passage.
    """
    import pandas as pd

    ids, sources = [question.id for question in evaluation.plan.benchmark.questions], evaluation.plan.benchmark.sources
    tables = []
    for label, trial in evaluation.trials.items():
        rankings = [trial.rankings[question] for question in ids]
        columns: tuple[object, ...] = (
            ids,
            label,
            [list(ranking.ranked_ids) for ranking in rankings],
            [list(ranking.scores) for ranking in rankings],
            [trial.latency_ms.get(question, np.nan) for question in ids],
            [ranking.graph_context for ranking in rankings],
        )
        table = pd.DataFrame(dict(zip(QUESTION_COLUMNS, columns, strict=True)))
        if sources:
            table[SOURCES_COLUMN] = [[str(sources.get(passage, "")) for passage in one.ranked_ids] for one in rankings]
        tables.append(table.join(evaluation.rows[label], on="question_id"))
    return pd.concat(tables, ignore_index=True)


def comparisons(evaluation: Evaluation) -> list[ComparisonEntry]:
    """List each label's comparison with the best baseline on the primary metric; empty where nothing was compared."""
    return [] if evaluation.comparison is None else evaluation.comparison.entries()


def ragas_comparisons(evaluation: Evaluation) -> list[ComparisonEntry]:
    """List each label's comparisons with that baseline on RAGAS's metrics; each metric is a family of its own."""
    return [entry for family in evaluation.ragas for entry in family.entries()]


def traces_table(trials: Mapping[str, TrialOutcome]) -> pd.DataFrame:
    """Make a row per question × label, in the order of questions.parquet's labels.

    `trace` is the notes as JSON; tokens are counted as in the reading budget. `context_ids` are the passages that the
    reader gets, in reading order; `context_tokens` the whole context's tokens, among them the `block_tokens` of the
    block that a strategy puts before the passages.
    """
    import pandas as pd

    rows = [
        {
            "question_id": ranking.question_id,
            "strategy": label,
            "trace": json.dumps(trial.notes.get(question, {}), ensure_ascii=False, default=plain),
            "block_tokens": count_tokens(ranking.graph_context),
            "context_ids": list(ranking.context_ids),
            "context_tokens": count_tokens(ranking.context),
        }
        for label, trial in trials.items()
        for question, ranking in trial.rankings.items()
    ]
    return pd.DataFrame(rows)


def write_traces(table: pd.DataFrame, out: Path) -> Path:
    """Write traces.parquet atomically."""
    write_table(out / TRACES_FILE, table, "zstd")
    return out / TRACES_FILE


def plain(value: object) -> object:
    """Convert NumPy scalars and arrays, mappings and tuples to JSON's types."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else list(value)  # type: ignore[call-overload]
