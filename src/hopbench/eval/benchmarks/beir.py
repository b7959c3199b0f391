"""A folder in BEIR layout, or a user's own corpus and questions in the same layout without `qrels`.

Source: Thakur et al., BEIR (arXiv 2104.08663), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hopbench.eval.benchmarks.gzip_file import ENDING as GZIP
from hopbench.eval.benchmarks.mapped import mapped_passages
from hopbench.eval.benchmarks.passages import read_passages
from hopbench.eval.benchmarks.qrels import find_qrels
from hopbench.eval.benchmarks.question_files import judgement_tables, read_question_file
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular
from hopbench.retrieval.types import Passage

SUFFIXES = (".jsonl", ".parquet", ".csv", ".tsv")
ENDINGS = (*SUFFIXES, ".json", *(f"{text}{GZIP}" for text in (".jsonl", ".csv", ".tsv", ".json")))
SHOWN = 8
LAYOUTS = (
    "A benchmark is a folder of corpus, queries and qrels/test.tsv (text files may end in .gz), or of documents with "
    "queries.jsonl beside them; a folder with tables in corpus/, queries/ and qrels/ (MTEB); one that "
    "Dataset.save_to_disk wrote; NAME_corpus.json with NAME.json (HippoRAG); raw/documents.json with raw/test.json "
    "(GFM-RAG)"
)
Parsed = tuple[Sequence[Passage], tuple[BenchmarkQuestion, ...]]


def read_folder(folder: Path, *, need_questions: bool = True, mapped: Path | None = None) -> Parsed:
    """Passages and questions of `folder`: `corpus.*`, `queries.*` (one of `ENDINGS`) and `qrels/*.tsv`.

    Where questions are not needed, a folder without `queries.*` has none. Gold is as `read_question_file` says. With
    `mapped` the passages are columns that are kept there.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field.
    """
    corpus, queries = find_table(folder, "corpus"), find_questions(folder, needed=need_questions)
    _ = judgement_tables(folder) or find_qrels(folder)  # what is wrong with it is said before a long corpus is read
    passages = mapped_passages([corpus], mapped) if mapped else read_passages(str(corpus), read_records(corpus))
    return passages, read_question_file(queries, passages) if queries else ()


def find_questions(folder: Path, *, needed: bool = True) -> Path | None:
    """The folder's `queries.*`; None where there is none and none is needed, else an error with the remedy."""
    if needed or has_table(folder, "queries"):
        return find_table(folder, "queries")
    return None


def has_table(folder: Path, stem: str) -> bool:
    """Whether something is called `stem` with one of `ENDINGS`; it may be no readable file."""
    return any((folder / f"{stem}{ending}").exists() for ending in ENDINGS)


def find_table(folder: Path, stem: str) -> Path:
    """`folder/stem` with the first ending of `ENDINGS` that exists."""
    for ending in ENDINGS:
        path = folder / f"{stem}{ending}"
        if path.exists():
            return regular(path)
    if stem == "queries":
        raise missing_questions(folder)
    raise no_data_set(folder)


def no_data_set(folder: Path) -> InputError:
    """The error for a folder in no layout that is read."""
    return InputError(
        f"{folder}: no {_wanted('corpus')} and no documents (.md, .html, .pdf, .txt); {contents(folder)}. {LAYOUTS}"
    )


def missing_questions(folder: Path) -> InputError:
    """The error for a folder that has no questions where they are needed."""
    return InputError(
        f"{folder}: no {_wanted('queries')}; {contents(folder)}. It is a corpus without questions, which are needed "
        "here: write them into that file, or name another with --questions; `hopbench graph build` needs none"
        + ("" if has_table(folder, "corpus") else f". If it is another kind of data set: {LAYOUTS}")
    )


def _wanted(stem: str) -> str:
    return f"{stem}.jsonl (or {', '.join(SUFFIXES[1:])})"


def contents(folder: Path) -> str:
    """What the folder holds, in the words of a message."""
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"the folder holds {', '.join(names[:SHOWN]) or 'nothing'}{more}"


def is_folder_of_tables(folder: Path) -> bool:
    """Whether the folder holds a corpus that `read_folder` would read."""
    return any((folder / f"corpus{ending}").is_file() for ending in ENDINGS)
