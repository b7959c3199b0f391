"""A folder in BEIR layout, or a user's own corpus and questions in the same layout without `qrels`.

Source: Thakur et al., BEIR (arXiv 2104.08663), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

from pathlib import Path

from hopbench.eval.benchmarks.fields import Rows
from hopbench.eval.benchmarks.passages import read_passages
from hopbench.eval.benchmarks.qrels import find_qrels, read_qrels
from hopbench.eval.benchmarks.questions import attach_gold, read_question, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular
from hopbench.retrieval.types import Passage

SUFFIXES = (".jsonl", ".parquet", ".csv", ".tsv")
Parsed = tuple[tuple[Passage, ...], tuple[BenchmarkQuestion, ...]]


def read_folder(folder: Path) -> Parsed:
    """Passages and questions of `folder`: `corpus.*`, `queries.*` (JSONL, Parquet, CSV or TSV) and `qrels/*.tsv`.

    With judgements the questions that have no gold are left out, as in BEIR; without, no question has gold.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field.
    """
    corpus, queries, qrels = find_table(folder, "corpus"), find_table(folder, "queries"), find_qrels(folder)
    passages = read_passages(str(corpus), read_records(corpus))
    questions = read_query_rows(str(queries), read_records(queries))
    if qrels is None:
        return passages, questions
    known = (passage.id for passage in passages)
    return passages, attach_gold(str(qrels), questions, read_qrels(qrels), known)


def read_query_rows(source: str, rows: Rows) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a `queries` file, none with gold yet."""
    return read_questions(source, ((place, read_question(record, place)) for place, record in rows))


def find_table(folder: Path, stem: str) -> Path:
    """`folder/stem` with the first suffix of `SUFFIXES` that exists."""
    for suffix in SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.exists():
            return regular(path)
    present = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    wanted = f"{stem}.jsonl (or {', '.join(SUFFIXES[1:])})"
    raise InputError(
        f"{folder}: no {wanted}; the folder holds {present}. "
        "A benchmark is a folder of corpus, queries and qrels/test.tsv"
    )


def is_folder_of_tables(folder: Path) -> bool:
    """Whether the folder holds a corpus that `read_folder` would read."""
    return any((folder / f"corpus{suffix}").is_file() for suffix in SUFFIXES)
