"""Rankings of earlier runs and of external systems: as labels of this run, and as scored rows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hopbench.eval.answering.answers import CLOSED_BOOK
from hopbench.eval.benchmarks.run_files import RunFile
from hopbench.eval.files import read_table
from hopbench.eval.metrics import score
from hopbench.eval.trials.trial import run_trial
from hopbench.eval.types import Benchmark
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.external import Answer, Recorded
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.graph.stores.base import GraphStore

EARLIER = "HopBench run"
_NEEDED = {"question_id", "strategy", "ranked_ids", "failure"}


def recorded(file: RunFile) -> Recorded:
    """Make a strategy that returns the rankings of a file."""
    return Recorded(rankings=file.rankings, form=file.form, digest=file.digest, ties=file.ties)


def folder_rankings(folder: Path) -> dict[str, RunFile]:
    """Read each label's rankings from the folder of an earlier run, without the closed-book row.

    Raises InputError where questions.parquet is missing, damaged, or of something else.
    """
    file = folder / "questions.parquet"
    if not file.is_file():
        raise InputError(f"{file} is not there: name a folder that `hopbench run --out` wrote, or a file of rankings")
    try:
        table = read_table(file)
    except (ValueError, OSError) as error:
        raise InputError(f"{file} is damaged ({error}): run the benchmark again") from error
    if missing := sorted(_NEEDED - set(table.columns)):
        raise InputError(f"{file}: no column {', '.join(missing)}: name a folder that `hopbench run --out` wrote")
    by_label = {str(label): stored_rankings(rows) for label, rows in table.groupby("strategy", sort=False)}
    return {label: found for label, found in by_label.items() if label != CLOSED_BOOK}


def stored_rankings(rows: pd.DataFrame) -> RunFile:
    """Convert a label's rows of questions.parquet to rankings; failed questions stay failed."""
    scores = rows["scores"] if "scores" in rows else [()] * len(rows)
    found = {}
    for question, ranked, scored, failure in zip(
        rows["question_id"], rows["ranked_ids"], scores, rows["failure"], strict=True
    ):
        if isinstance(failure, str):
            found[str(question)] = Answer(failure=failure)
            continue
        passages = [str(passage) for passage in ranked]
        values = [float(value) for value in scored] if len(scored) == len(passages) else ()
        found[str(question)] = Answer(passages, values)
    content = [[question, list(one.passages), one.failure] for question, one in sorted(found.items())]
    digest = hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
    return RunFile(found, EARLIER, digest)


def refuse_other_benchmark(label: str, strategy: Recorded, benchmark: Benchmark) -> None:
    """Raise InputError where none of a run's questions, or none of its passages, are the benchmark's."""
    common = [question.id for question in benchmark.questions if question.id in strategy.rankings]
    if not common:
        theirs = next(iter(strategy.rankings))
        raise InputError(
            f"--runs {label}: none of its {len(strategy.rankings):,} questions (such as {theirs!r}) is one of "
            f"{benchmark.name}'s {len(benchmark.questions):,} (such as {benchmark.questions[0].id!r}): name the run of "
            "this benchmark, or its ids"
        )
    passages = {passage for question in common for passage in strategy.rankings[question].passages}
    if passages and passages.isdisjoint(benchmark.titles):
        raise InputError(
            f"--runs {label}: none of its {len(passages):,} passages (such as {min(passages)!r}) is in the corpus of "
            f"{benchmark.name} (such as {benchmark.passages[0].id!r}): name the run of this corpus"
        )


def scored_rows(label: str, strategy: Recorded, benchmark: Benchmark) -> pd.DataFrame:
    """Score an external run's rankings as HopBench scores its own, by question id; reach is left out."""
    import numpy as np

    refuse_other_benchmark(label, strategy, benchmark)
    chunks = chunk_passages(benchmark.passages)
    # Rankings that are read need neither vectors nor a graph.
    index = Index(chunks, np.zeros((len(chunks), 1), np.float32), cast("GraphStore", None), cast("Embedder", None))
    batch = Batch(index, [question.question for question in benchmark.questions])
    outcome = run_trial(label, strategy, [batch], Budget())
    return score(benchmark, outcome.rankings, ragas=True)
