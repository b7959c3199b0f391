"""A folder in BEIR layout, or a user's own corpus and questions in the same layout without `qrels`.

Source: Thakur et al., BEIR (arXiv 2104.08663), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hopbench.eval.benchmarks.mapped import mapped_passages
from hopbench.eval.benchmarks.passages import read_passages
from hopbench.eval.benchmarks.qrels import find_qrels
from hopbench.eval.benchmarks.question_files import read_question_file
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular
from hopbench.retrieval.types import Passage

SUFFIXES = (".jsonl", ".parquet", ".csv", ".tsv")
Parsed = tuple[Sequence[Passage], tuple[BenchmarkQuestion, ...]]


def read_folder(folder: Path, *, need_questions: bool = True, mapped: Path | None = None) -> Parsed:
    """Passages and questions of `folder`: `corpus.*`, `queries.*` (JSONL, Parquet, CSV or TSV) and `qrels/*.tsv`.

    Where questions are not needed, a folder without `queries.*` has none. Gold is as `read_question_file` says. With
    `mapped` the passages are columns that are kept there.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field.
    """
    corpus, queries = find_table(folder, "corpus"), find_questions(folder, needed=need_questions)
    find_qrels(folder)  # what is wrong with it is said before a long corpus is read
    passages = mapped_passages(corpus, mapped) if mapped else read_passages(str(corpus), read_records(corpus))
    return passages, read_question_file(queries, passages) if queries else ()


def find_questions(folder: Path, *, needed: bool = True) -> Path | None:
    """The folder's `queries.*`; None where there is none and none is needed, else an error with the remedy."""
    if needed or has_table(folder, "queries"):
        return find_table(folder, "queries")
    return None


def has_table(folder: Path, stem: str) -> bool:
    """Whether something is called `stem` with one of `SUFFIXES`; it may be no readable file."""
    return any((folder / f"{stem}{suffix}").exists() for suffix in SUFFIXES)


def find_table(folder: Path, stem: str) -> Path:
    """`folder/stem` with the first suffix of `SUFFIXES` that exists."""
    for suffix in SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.exists():
            return regular(path)
    present = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    wanted = f"{stem}.jsonl (or {', '.join(SUFFIXES[1:])})"
    if stem == "queries":
        raise InputError(
            f"{folder}: no {wanted}; the folder holds {present}. It is a corpus without questions, which are needed "
            "here: write them into that file, or name another with --questions; `hopbench graph build` needs none"
        )
    raise InputError(
        f"{folder}: no {wanted} and no documents (.md, .html, .pdf, .txt); the folder holds {present}. "
        "A benchmark is a folder of corpus, queries and qrels/test.tsv, or of documents with queries.jsonl beside them"
    )


def is_folder_of_tables(folder: Path) -> bool:
    """Whether the folder holds a corpus that `read_folder` would read."""
    return any((folder / f"corpus{suffix}").is_file() for suffix in SUFFIXES)
