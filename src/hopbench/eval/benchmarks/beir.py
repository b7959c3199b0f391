"""A folder in BEIR layout, or a user's own corpus and questions in the same layout without `qrels`: read and written.

Source: Thakur et al., BEIR (arXiv 2104.08663), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.files import GZIP
from hopbench.eval.benchmarks.passages import mapped_passages, read_passages
from hopbench.eval.benchmarks.questions import GOLD_FIELD, find_qrels, judgement_tables, read_question_file
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.files import write_atomically
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular
from hopbench.retrieval.types import Passage

SUFFIXES = (".jsonl", ".parquet", ".csv", ".tsv")
ENDINGS = (*SUFFIXES, ".json", *(f"{text}{GZIP}" for text in (".jsonl", ".csv", ".tsv", ".json")))
MAX_LISTED_FILES = 8
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
    `mapped` the passages are memory-mapped columns cached there.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field.
    """
    corpus, queries = find_table(folder, "corpus"), find_questions(folder, needed=need_questions)
    _ = judgement_tables(folder) or find_qrels(folder)  # fail on bad judgements before reading a long corpus
    passages = mapped_passages([corpus], mapped) if mapped else read_passages(str(corpus), read_records(corpus))
    return passages, read_question_file(queries, passages) if queries else ()


def find_questions(folder: Path, *, needed: bool = True) -> Path | None:
    """Find the folder's `queries.*`; if missing, return None, or raise with the remedy if questions are needed."""
    if needed or has_table(folder, "queries"):
        return find_table(folder, "queries")
    return None


def has_table(folder: Path, stem: str) -> bool:
    """Whether something is named `stem` with one of `ENDINGS`, even if it is not a readable file."""
    return any((folder / f"{stem}{ending}").exists() for ending in ENDINGS)


def find_table(folder: Path, stem: str) -> Path:
    """Find `folder/stem` with the first ending of `ENDINGS` that exists."""
    for ending in ENDINGS:
        path = folder / f"{stem}{ending}"
        if path.exists():
            return regular(path)
    if stem == "queries":
        raise missing_questions(folder)
    raise no_data_set(folder)


def no_data_set(folder: Path) -> InputError:
    """Make the error for a folder in no known layout."""
    return InputError(
        f"{folder}: no {_wanted('corpus')} and no documents (.md, .html, .pdf, .txt); {contents(folder)}. {LAYOUTS}"
    )


def missing_questions(folder: Path) -> InputError:
    """Make the error for a folder without the questions that are needed."""
    return InputError(
        f"{folder}: no {_wanted('queries')}; {contents(folder)}. It is a corpus without questions, which are needed "
        "here: write them into that file, or name another with --questions; `hopbench graph build` needs none"
        + ("" if has_table(folder, "corpus") else f". If it is another kind of data set: {LAYOUTS}")
    )


def _wanted(stem: str) -> str:
    return f"{stem}.jsonl (or {', '.join(SUFFIXES[1:])})"


def contents(folder: Path) -> str:
    """Describe a folder's content for a message."""
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - MAX_LISTED_FILES:,} more" if len(names) > MAX_LISTED_FILES else ""
    return f"the folder holds {', '.join(names[:MAX_LISTED_FILES]) or 'nothing'}{more}"


def is_folder_of_tables(folder: Path) -> bool:
    """Whether the folder holds a corpus that `read_folder` would read."""
    return any((folder / f"corpus{ending}").is_file() for ending in ENDINGS)


def write_benchmark(benchmark: Benchmark, folder: Path) -> None:
    """Write `corpus.jsonl`, and `queries.jsonl` and `qrels/test.tsv` where there are questions and gold.

    Where some question has alternative sets, which judgements cannot express, all gold stands in `queries.jsonl`.

    Raises
    ------
    InputError
        When the folder exists and holds something, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out {folder}: holds something already: name a folder that does not exist")
    write_atomically(folder / "corpus.jsonl", _lines(map(_passage_row, benchmark.passages)))
    if not benchmark.questions:
        return
    sets = any(len(one.gold.sets) > 1 for one in benchmark.questions)
    rows = (
        {
            "_id": one.id,
            "text": one.text,
            "metadata": dict(one.metadata)
            | ({"type": one.type} if one.type else {})
            | ({"answer": one.answer, "answer_aliases": list(one.aliases)} if one.answer is not None else {}),
        }
        | ({GOLD_FIELD: one.gold.sets if len(one.gold.sets) > 1 else one.gold} if sets else {})
        for one in benchmark.questions
    )
    write_atomically(folder / "queries.jsonl", _lines(rows))
    lines = "".join(_judgements(benchmark.questions))
    if lines and not sets:
        write_atomically(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{lines}".encode())


def _judgements(questions: Sequence[BenchmarkQuestion]) -> Iterator[str]:
    """Yield the lines of qrels; passages that are not gold only if there are grades other than 0 and 1."""
    graded = any(question.gold.graded for question in questions)
    for question in questions:
        grades = question.gold.grades if graded and question.gold.grades else dict.fromkeys(question.gold, 1)
        yield from (f"{question.id}\t{passage}\t{grade}\n" for passage, grade in grades.items())


def _passage_row(passage: Passage) -> dict[str, Any]:
    row: dict[str, Any] = {"_id": passage.id, "title": passage.title, "text": passage.text}
    if passage.source:
        row["metadata"] = passage.source.facts()
    if passage.links:
        row["links"] = [asdict(link) for link in passage.links]
    return row


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()
