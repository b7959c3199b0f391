"""Read and write folders in BEIR layout, and a user's own corpus and questions in that layout without `qrels`.

Source: Thakur et al., BEIR (arXiv 2104.08663), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.files import GZIP
from hopbench.eval.benchmarks.passages import mapped_passages, read_passages
from hopbench.eval.benchmarks.questions import GOLD_FIELD, judgement_files, read_question_file
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.files import write_atomically
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular
from hopbench.retrieval.types import Passage

SUFFIXES = (".jsonl", ".parquet", ".csv", ".tsv")
ENDINGS = (*SUFFIXES, ".json", *(f"{text}{GZIP}" for text in (".jsonl", ".csv", ".tsv", ".json")))
_WANTED = f".jsonl (or {', '.join(SUFFIXES[1:])})"
MAX_LISTED_FILES = 8
LAYOUTS = (
    "A benchmark is a folder of corpus, queries and qrels/test.tsv (text files may end in .gz), or of documents with "
    "queries.jsonl beside them; a folder with tables in corpus/, queries/ and qrels/ (MTEB); one that "
    "Dataset.save_to_disk wrote; NAME_corpus.json with NAME.json (HippoRAG); raw/documents.json with raw/test.json "
    "(GFM-RAG)"
)
Parsed = tuple[Sequence[Passage], tuple[BenchmarkQuestion, ...]]


def read_folder(folder: Path, *, need_questions: bool = True, mapped: Path | None = None) -> Parsed:
    """Read passages and questions of a folder: `corpus.*`, `queries.*` (one of `ENDINGS`) and `qrels/*.tsv`.

    Where questions are not needed, a folder without `queries.*` has none. Gold is as `read_question_file` says. With
    `mapped` the passages are memory-mapped columns cached there. Raises InputError for the first thing that is wrong,
    with file, line and field.
    """
    corpus, queries = find_table(folder, "corpus"), find_table(folder, "queries")
    if corpus is None:
        raise no_data_set(folder)
    if queries is None and need_questions:
        raise missing_questions(folder)
    judgement_files(folder)  # fail on bad judgements before reading a long corpus
    if mapped is not None:
        passages: Sequence[Passage] = mapped_passages([corpus], mapped)
    else:
        passages = tuple(read_passages(str(corpus), read_records(corpus)))
    return passages, read_question_file(queries, passages) if queries else ()


def find_table(folder: Path, stem: str) -> Path | None:
    """Find `folder/stem` with the first ending of `ENDINGS` that exists; refuse what is no ordinary file."""
    path = next((path for ending in ENDINGS if (path := folder / f"{stem}{ending}").exists()), None)
    return path and regular(path)


def no_data_set(folder: Path) -> InputError:
    """Make the error for a folder in no known layout."""
    return InputError(
        f"{folder}: no corpus{_WANTED} and no documents (.md, .html, .pdf, .txt); {contents(folder)}. {LAYOUTS}"
    )


def missing_questions(folder: Path) -> InputError:
    """Make the error for a folder without the questions that are needed."""
    return InputError(
        f"{folder}: no queries{_WANTED}; {contents(folder)}. It is a corpus without questions, which are needed "
        "here: write them into that file, or name another with --questions; `hopbench graph build` needs none"
        + ("" if find_table(folder, "corpus") else f". If it is another kind of data set: {LAYOUTS}")
    )


def contents(folder: Path) -> str:
    """Describe a folder's content for a message."""
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - MAX_LISTED_FILES:,} more" if len(names) > MAX_LISTED_FILES else ""
    return f"the folder holds {', '.join(names[:MAX_LISTED_FILES]) or 'nothing'}{more}"


def write_benchmark(benchmark: Benchmark, folder: Path) -> None:
    """Write `corpus.jsonl`, and `queries.jsonl` and `qrels/test.tsv` where there are questions and gold.

    Where some question has alternative sets, which judgements cannot express, all gold stands in `queries.jsonl`.
    Passages that are not gold are written only if there are grades other than 0 and 1. Raises InputError when the
    folder holds something, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out {folder}: holds something already: name a folder that does not exist")
    rows = (
        {"_id": one.id, "title": one.title, "text": one.text}
        | ({"metadata": one.source.facts()} if one.source else {})
        | ({"links": [asdict(link) for link in one.links]} if one.links else {})
        for one in benchmark.passages
    )
    write_atomically(folder / "corpus.jsonl", json_lines(rows))
    if not benchmark.questions:
        return
    sets = any(len(one.gold.sets) > 1 for one in benchmark.questions)
    queries = (
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
    write_atomically(folder / "queries.jsonl", json_lines(queries))
    graded = any(one.gold.graded for one in benchmark.questions)
    lines = "".join(
        f"{one.id}\t{passage}\t{grade}\n"
        for one in benchmark.questions
        for passage, grade in ((graded and one.gold.grades) or dict.fromkeys(one.gold, 1)).items()
    )
    if lines and not sets:
        write_atomically(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{lines}".encode())


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Write rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()
