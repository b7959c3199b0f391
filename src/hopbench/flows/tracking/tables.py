"""A row per question, as MLflow's evaluation view reads tables: the questions of several runs side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.files import write_atomically
from hopbench.flows.tracking.names import Tag

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.types import BenchmarkQuestion

TABLE = "questions.json"
TABLE_TAG: Mapping[str, str] = {Tag.TABLES: json.dumps([{"path": TABLE, "type": "table"}])}
"""Names the table to MLflow, which shows no other file in that view."""


def write_table(folder: Path, rows: pd.DataFrame, questions: Sequence[BenchmarkQuestion]) -> Path:
    """Write the scores of a label, indexed by question id, into `folder` as a table of MLflow; returns the file."""
    scores = rows.drop(columns="ranked_ids", errors="ignore")
    texts = {question.id: (question.text, question.type, question.answer) for question in questions}
    plain = scores.astype(object).where(scores.notna(), None).values.tolist()
    # MLflow groups by the first column, and compares the second one until told otherwise.
    columns = ["question", *scores.columns, "question_id", "type", "answer"]
    data = []
    for name, values in zip(scores.index, plain, strict=True):
        text, kind, answer = texts[name]
        data.append([text, *values, name, kind, answer])
    table = {"columns": columns, "data": data}
    write_atomically(folder / TABLE, json.dumps(table, ensure_ascii=False).encode())
    return folder / TABLE
