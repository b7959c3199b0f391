"""A benchmark as a folder in BEIR layout, as `read_folder` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.question_files import GOLD_FIELD
from hopbench.eval.files import write_atomically
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage


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
    asked = (
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
    write_atomically(folder / "queries.jsonl", _lines(asked))
    lines = "".join(_judgements(benchmark.questions))
    if lines and not sets:
        write_atomically(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{lines}".encode())


def _judgements(questions: Sequence[BenchmarkQuestion]) -> Iterator[str]:
    """The lines of qrels; those of passages that are not gold only where there are grades beside 0 and 1."""
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
