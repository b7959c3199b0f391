"""The rankings of an earlier run's folder: what stands there, and what is no such folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hopbench.eval.answering.answers import CLOSED_BOOK
from hopbench.eval.runs.external import folder_rankings
from hopbench.eval.runs.files import QUESTIONS_FILE
from hopbench.retrieval.external import Answer
from hopbench.retrieval.support.errors import InputError


def row(question: str, label: str, ranked: list[str], failure: str | None = None) -> dict[str, Any]:
    return {"question_id": question, "strategy": label, "ranked_ids": ranked, "failure": failure}


def test_each_label_has_its_rankings_and_its_failures(tmp_path: Path) -> None:
    rows = [row("q1", "bm25", ["p1", "p2"]), row("q2", "bm25", [], "ended"), row("q1", CLOSED_BOOK, [])]
    pd.DataFrame(rows).to_parquet(tmp_path / QUESTIONS_FILE)

    found = folder_rankings(tmp_path)

    assert ["bm25"] == list(found)  # what ranks nothing is no label
    assert {"q1": Answer(["p1", "p2"]), "q2": Answer(failure="ended")} == found["bm25"].rankings

    scored = pd.DataFrame(rows[:1]).assign(scores=[[2.0, 1.0]])
    scored.to_parquet(tmp_path / QUESTIONS_FILE)
    assert {"q1": Answer(["p1", "p2"], [2.0, 1.0])} == folder_rankings(tmp_path)["bm25"].rankings


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"questions\.parquet is not there: name a folder that `hopbench run --out` wrote"),
        (b"PAR1 cut", r"questions\.parquet is damaged .*: run the benchmark again"),
        (pd.DataFrame({"question_id": ["q1"], "ranked_ids": [["p1"]]}), "no column failure, strategy: name a folder"),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    if isinstance(content, bytes):
        (tmp_path / QUESTIONS_FILE).write_bytes(content)
    elif content is not None:
        content.to_parquet(tmp_path / QUESTIONS_FILE)
    with pytest.raises(InputError, match=message):
        folder_rankings(tmp_path)
