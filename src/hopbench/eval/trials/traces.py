"""traces.parquet: the strategies' notes on each question, and the context that a reader gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hopbench.eval.files import write_table
from hopbench.eval.trials.trial import TrialOutcome
from hopbench.retrieval.text.model_tokens import count_tokens

if TYPE_CHECKING:
    import pandas as pd

TRACES_FILE = "traces.parquet"


def mean_counts(trial: TrialOutcome) -> dict[str, float]:
    """Average every number that the strategy noted, over the questions with that number."""
    values: dict[str, list[float]] = {}
    for notes in trial.notes.values():
        for name, value in notes.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(name, []).append(value)
    return {name: round(float(np.mean(numbers)), 4) for name, numbers in sorted(values.items())}


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
