"""A benchmark as a folder in BEIR layout, as `read_folder` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hopbench.eval.files import write_atomically
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError


def write_benchmark(benchmark: Benchmark, folder: Path) -> None:
    """Write `corpus.jsonl`, and `queries.jsonl` and `qrels/test.tsv` where there are questions and gold.

    Raises
    ------
    InputError
        When the folder exists and holds something, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out {folder}: holds something already: name a folder that does not exist")
    corpus = (
        {"_id": one.id, "title": one.title, "text": one.text} | ({"metadata": one.source.facts()} if one.source else {})
        for one in benchmark.passages
    )
    write_atomically(folder / "corpus.jsonl", _lines(corpus))
    if not benchmark.questions:
        return
    asked = (
        {
            "_id": one.id,
            "text": one.text,
            "metadata": dict(one.metadata)
            | ({"type": one.type} if one.type else {})
            | ({"answer": one.answer, "answer_aliases": list(one.aliases)} if one.answer is not None else {}),
        }
        for one in benchmark.questions
    )
    write_atomically(folder / "queries.jsonl", _lines(asked))
    gold = "".join(f"{one.id}\t{passage}\t1\n" for one in benchmark.questions for passage in one.gold)
    if gold:
        write_atomically(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{gold}".encode())


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()
