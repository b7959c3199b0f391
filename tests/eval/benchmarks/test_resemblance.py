"""Ids that look like existing ones: the message says how they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopbench.eval.benchmarks import load_benchmark, load_triples
from hopbench.eval.benchmarks.fields import looks_like
from hopbench.retrieval.support.errors import InputError


@pytest.mark.parametrize(
    ("value", "known", "expected"),
    [
        ("P1", "p1", "'p1' is there, which differs in case"),
        ("p1 ", "p1", "'p1' is there, which differs in white space"),
        ("p\u200b1", "p1", "'p1' is there, which differs in white space"),
        ("Bjo\u0308rk", "Bj\u00f6rk", r"'Bj\xf6rk' is there, which differs in Unicode form"),
        ("A &amp; B", "A & B", "'A & B' is there, which differs in HTML entities"),
        ("2.0", "2", "'2' is there, which differs in a final .0"),
        ("doc_007", "doc_7", "'doc_7' is there, which differs in leading zeros"),
        ("DOC_07.0", "doc_7", "'doc_7' is there, which differs in case and a final .0 and leading zeros"),
    ],
)
def test_it_says_how_they_differ(value: str, known: str, expected: str) -> None:
    assert {value: expected} == looks_like([value], ["other", known])


@pytest.mark.parametrize(("value", "known"), [("p1", "p2"), ("v1.10", "v1.1"), ("100", "1"), ("p1", "p1"), ("", "x")])
def test_what_differs_otherwise_or_not_at_all_is_not_named(value: str, known: str) -> None:
    assert {} == looks_like([value], [known])


def test_every_message_about_an_unknown_id_names_its_likeness(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "p1", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "Who?", "gold": "P1"}\n')
    with pytest.raises(InputError, match=r"'P1' \(line 1; 'p1' is there, which differs in case\)"):
        load_benchmark(tmp_path)
    (tmp_path / "triples.jsonl").write_text('{"passage_id": "p01", "subject": "a", "relation": "b", "object": "c"}\n')
    with pytest.raises(InputError, match=r"'p01' \(line 1; 'p1' is there, which differs in leading zeros\)"):
        load_triples(tmp_path / "triples.jsonl", ["p1"])
