"""Detects from a record which official multi-hop set it belongs to, and returns that set's reader."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.fields import Record, Rows
from hopbench.eval.benchmarks.hotpotqa import read_2wiki, read_hotpotqa
from hopbench.eval.benchmarks.musique import read_musique
from hopbench.retrieval.support.errors import InputError

READERS: dict[str, Callable[[str, Rows], Parsed]] = {
    "hotpotqa": read_hotpotqa,
    "2wiki": read_2wiki,
    "musique": read_musique,
}


def detect(rows: Rows, source: str, format: str | None) -> tuple[Rows, Callable[[str, Rows], Parsed]]:
    """The reader for these records, chosen by the first one's fields, and an iterator over all of them."""
    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        raise InputError(f"{source}: is empty: it must hold at least one record")
    name = format or _format_of(first[1])
    if name is None:
        fields = ", ".join(map(str, first[1])) or "none"
        raise first[0].error(
            f"not a HotpotQA, 2WikiMultihopQA or MuSiQue record (fields: {fields}): "
            "for a corpus of your own give the folder that holds corpus.jsonl and queries.jsonl"
        )
    return itertools.chain([first], iterator), READERS[name]


def _format_of(record: Record) -> str | None:
    if "paragraphs" in record:
        return "musique"
    if "context" in record and "question" in record:
        return "2wiki" if "evidences" in record else "hotpotqa"
    return None
