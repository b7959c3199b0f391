"""Which of several paragraphs a supporting fact means, and titles that are written in another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import load_benchmark, shown_warnings
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError

PLANET, METAL = ["Mercury", ["A planet."]], ["Mercury", ["A metal.", "Norhaven sold it.", "It melts."]]
GOD = ["Mercury", ["A god.", "He runs."]]
YARD = ["Yard", ["It lies in Norhaven."]]


def load(tmp_path: Path, *records: dict[str, Any]) -> Benchmark:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([{"_id": f"h{n}", "question": "Who?", **one} for n, one in enumerate(records)]))
    return load_benchmark(path)


def gold(benchmark: Benchmark, question: int = 0) -> list[str]:
    return [benchmark.by_id[one].text for one in benchmark.questions[question].gold]


def record(context: list[Any], *facts: tuple[str, int]) -> dict[str, Any]:
    return {"context": context, "supporting_facts": [list(fact) for fact in facts]}


@pytest.mark.parametrize(
    ("context", "facts", "expected"),
    [
        ([PLANET, METAL], [("Mercury", 1)], ["A metal. Norhaven sold it. It melts."]),
        ([METAL, PLANET], [("Mercury", 1)], ["A metal. Norhaven sold it. It melts."]),
        # the metal alone has both sentences, so the first fact means it too
        ([PLANET, METAL], [("Mercury", 0), ("Mercury", 2)], ["A metal. Norhaven sold it. It melts."]),
        ([PLANET, METAL], [("Mercury", 0)], ["A planet."]),
        ([GOD, PLANET, YARD], [("Yard", 0), ("Mercury", 1)], ["It lies in Norhaven.", "A god. He runs."]),
    ],
)
def test_gold_is_the_paragraph_that_has_the_sentences(
    tmp_path: Path, context: list[Any], facts: list[tuple[str, int]], expected: list[str]
) -> None:
    assert expected == gold(load(tmp_path, record(context, *facts)))


def test_several_paragraphs_with_the_sentence_are_a_finding_and_equal_ones_are_none(tmp_path: Path) -> None:
    (finding,) = load(tmp_path, record([METAL, GOD], ("Mercury", 1))).findings
    assert (finding.count, finding.examples) == (1, ("'Mercury' (record 1)",))
    assert finding.what.startswith("supporting titles stand for several paragraphs")
    assert () == load(tmp_path, record([METAL, METAL], ("Mercury", 1))).findings


@pytest.mark.parametrize("sentence", [9, 1, -1])
def test_a_sentence_beyond_its_paragraph_is_a_finding_and_the_paragraph_stays_gold(
    tmp_path: Path, sentence: int
) -> None:
    benchmark = load(tmp_path, record([YARD], ("Yard", sentence)), record([YARD], ("Yard", 0)))
    (finding,) = benchmark.findings
    assert ["It lies in Norhaven."] == gold(benchmark)
    assert (finding.what, finding.count) == ("supporting facts name a sentence beyond their paragraph", 1)
    assert finding.examples == (f"'Yard' (record 1), sentence {sentence} of 1",)
    assert shown_warnings(benchmark)[0].startswith(f"dev: {finding.what}: 1 (such as 'Yard' (record 1), sentence")


def test_where_no_paragraph_has_the_sentence_the_first_stays_gold(tmp_path: Path) -> None:
    benchmark = load(tmp_path, record([PLANET, GOD], ("Mercury", 5)))
    assert ["A planet."] == gold(benchmark)
    assert 1 == len(benchmark.findings)


@pytest.mark.parametrize(
    ("title", "named"),
    [
        ("Ardmore &amp; Sons", "Ardmore & Sons"),
        ("Ardmore & Sons", "Ardmore &amp; Sons"),
        ("A &amp;amp; B", "A & B"),
        ("Bjo\u0308rk", "Bj\u00f6rk"),
        ("Bj\u00f6rk", "Bjo\u0308rk"),
        ("Caf&eacute; Rouge", "Cafe\u0301 Rouge"),
        ("Tom\u00a0Thumb", "Tom Thumb"),
        ("&#39;Til", "'Til"),
    ],
)
def test_titles_match_whatever_form_they_are_written_in(tmp_path: Path, title: str, named: str) -> None:
    assert ["One."] == gold(load(tmp_path, record([YARD, [title, ["One."]]], (named, 0))))
    other = load(tmp_path, record([YARD, [title, ["One."]]]), record([YARD], (named, 0)))
    assert ["One."] == gold(other)  # also in another question's context; the first question has no gold


def test_a_title_written_just_so_wins(tmp_path: Path) -> None:
    context = [["A &amp; B", ["Escaped."]], ["A & B", ["Plain."]]]
    assert ["Plain."] == gold(load(tmp_path, record(context, ("A & B", 0))))
    assert ["Escaped."] == gold(load(tmp_path, record(context, ("A &amp; B", 0))))


def test_a_paragraph_of_a_later_context_is_found(tmp_path: Path) -> None:
    benchmark = load(tmp_path, record([YARD], ("Mercury", 1)), record([PLANET], ("Mercury", 0)), record([METAL]))
    assert ["A metal. Norhaven sold it. It melts."] == gold(benchmark)


def test_case_is_no_other_form_and_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'yard' \(record 1; 'Yard' is there, which differs in case\)"):
        load(tmp_path, record([YARD], ("yard", 0)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1931, ("1931",)),
        (2.5, ("2.5",)),
        (True, ("true",)),
        (False, ("false",)),
        (0, ("0",)),
        ([1931, "MCMXXXI"], ("1931", "MCMXXXI")),
        ("yes", ("yes",)),
    ],
)
def test_numbers_and_truth_values_are_answers_as_json_writes_them(
    tmp_path: Path, given: object, expected: tuple[str, ...]
) -> None:
    (question,) = load(tmp_path, {**record([YARD], ("Yard", 0)), "answer": given}).questions
    assert expected == question.answers


def test_an_object_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"record 1: field 'metadata.answer' must be a string, not an object"):
        load(tmp_path, {**record([YARD], ("Yard", 0)), "answer": {"year": 1931}})
