"""Questions that quote their evidence by file: gold sets, however passages are cut, and errors that name the quote."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.evidence import SETS_LIMIT, Evidence
from hopbench.eval.benchmarks.fields import Place
from hopbench.eval.data_check import check_data
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage, Source

GUIDE = """# Guide

Intro words, seen [here](web.html "Web").

## Setup

1. Install **Kestrel** with `pip install kestrel`.
2. Set `KESTREL_HOME` to a folder.

## Run

Start the <abbr>server</abbr> after setting the home folder.
"""
WEB = "<h1>Web</h1><p>Start the server from the web page, too.<h2>Stop</h2><p>Stop it there."
PLACE = Place("asked.jsonl", "line", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = tmp_path / "kestrel" / "documents"
    (documents / "docs").mkdir(parents=True)
    (documents / "docs" / "guide.md").write_text(GUIDE)
    (documents / "web.html").write_text(WEB)
    return tmp_path / "kestrel"


def asked(folder: Path, *evidence: Mapping[str, Any], name: str = "questions.jsonl", **fields: Any) -> Path:
    row = {"id": "k1", "question": "What is set before the start?", "answer": "KESTREL_HOME", "aliases": ["the home"]}
    path = folder / name
    path.write_text(json.dumps({**row, "type": "bridge", "evidence": evidence, **fields}) + "\n")
    return path


def place(file: str, quote: str, *alternatives: Mapping[str, Any], heading: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"file": file, "heading": heading, "quote": quote}
    return made | ({"alternatives": list(alternatives)} if alternatives else {})


SETUP = place("docs/guide.md", "1. Install **Kestrel** with `pip   install kestrel`.\n2. Set `KESTREL_HOME`")
RUN = place("guide.md", "Start the <abbr>server</abbr>", place("web.html", "Start the server from"))


def sets_of(benchmark: Benchmark) -> Sequence[tuple[str, ...]]:
    (question,) = benchmark.questions
    return question.gold.sets


def test_evidence_becomes_all_choices_of_one_passage_for_each_place(folder: Path) -> None:
    asked(folder, SETUP, RUN)
    benchmark = load_benchmark(folder)
    assert (("docs/guide.md#setup", "docs/guide.md#run"), ("docs/guide.md#setup", "web.html")) == sets_of(benchmark)
    (question,) = benchmark.questions
    assert ("k1", "bridge", "KESTREL_HOME", ("the home",)) == (
        question.id,
        question.type,
        question.answer,
        question.aliases,
    )
    assert ("kestrel", folder, 5) == (benchmark.name, benchmark.folder, len(benchmark.passages))
    assert () == benchmark.findings


def test_a_folder_of_documents_and_the_option_questions_give_the_same(folder: Path, tmp_path: Path) -> None:
    whole = load_benchmark(asked(folder, SETUP, RUN).parent)
    apart = load_benchmark(folder / "documents", questions=folder / "questions.jsonl")
    asked(folder / "documents", SETUP, RUN, name="queries.jsonl")
    beside = load_benchmark(folder / "documents")
    assert [whole.digest] * 2 == [apart.digest, beside.digest]


@pytest.mark.parametrize(
    "header", ["id,question,answer,file,quote,file2,quote2", "question;answer;file;quote;file2;quote2"]
)
def test_a_table_gives_its_places_in_columns(header: str, folder: Path) -> None:
    names = header.replace(";", ",").split(",")
    values = {
        "id": "k1",
        "question": "What is set?",
        "answer": "it",
        "file": "docs/guide.md",
        "quote": "Set `KESTREL_HOME`",
    }
    values |= {"file2": "web.html", "quote2": "Stop it there"}
    with (folder / "questions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, delimiter=header[len(names[0])], extrasaction="ignore")
        writer.writeheader()
        writer.writerow(values)
        writer.writerow({**values, "id": "k2", "question": "What stops?", "file2": "", "quote2": ""})
    benchmark = load_benchmark(folder)
    assert [("docs/guide.md#setup", "web.html#stop"), ("docs/guide.md#setup",)] == [
        tuple(q.gold) for q in benchmark.questions
    ]
    assert 2 == len({question.id for question in benchmark.questions})


def test_a_heading_decides_between_passages_that_hold_the_words(folder: Path) -> None:
    (folder / "documents" / "b.md").write_text("# B\n\n## One\n\nThe same words.\n\n## Two\n\nThe same words.\n")
    asked(folder, place("b.md", "The same words"))
    assert (("b.md#one",), ("b.md#two",)) == sets_of(load_benchmark(folder))
    asked(folder, place("b.md", "The same words", heading="Two"))
    assert (("b.md#two",),) == sets_of(load_benchmark(folder))
    asked(folder, place("b.md", "The same words", heading="Not there"))
    assert 2 == len(sets_of(load_benchmark(folder)))


def test_the_longest_common_part_counts_where_the_reader_cut_inside_a_quote(folder: Path) -> None:
    asked(folder, place("guide.md", "seen [here](web.html). ## Setup Install Kestrel with pip install kestrel"))
    benchmark = load_benchmark(folder)
    assert (("docs/guide.md#setup",),) == sets_of(benchmark)
    assert ["quotes are only partly in a passage, and count for those that hold most of them"] == [
        finding.what for finding in benchmark.findings
    ]


def test_choices_are_limited_and_said() -> None:
    passages = [
        Passage(f"{name}{n}", "T", f"common words {name}", Source(None, f"{name}.md", ""))
        for name in "abc"
        for n in range(5)
    ]
    evidence = Evidence(passages)
    made = evidence.resolved(
        {"question": "Q?", "evidence": [place(f"{name}.md", "common words") for name in "abc"]}, PLACE
    )
    assert 4 * 4 * 4 == SETS_LIMIT == len(made["gold"])
    assert all([*"abc"] == [one[0] for one in choice] for choice in made["gold"])


def test_one_passage_that_serves_two_places_is_one(folder: Path) -> None:
    asked(folder, place("guide.md", "Install Kestrel"), place("guide.md", "Set KESTREL_HOME"))
    assert (("docs/guide.md#setup",),) == sets_of(load_benchmark(folder))


WRONG = {
    "lost words": (place("guide.md", "words of nowhere"), 'guide.md: "words of nowhere"'),
    "lost file": (
        place("Docs/Guide.md", "Install"),
        "no such file, but 'docs/guide.md' is there, which differs in case",
    ),
    "other file": (place("guide.md", "Stop it there"), "which is in web.html#stop"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_quote_that_no_passage_holds_is_named(wrong: str, folder: Path) -> None:
    evidence, shown = WRONG[wrong]
    asked(folder, SETUP, evidence)
    with pytest.raises(InputError) as error:
        load_benchmark(folder)
    message = str(error.value)
    assert message.startswith(f"{folder / 'questions.jsonl'}: 1 quote is in no passage of the file named: ")
    assert shown in message
    assert "(line 1)" in message
    assert message.endswith("Quote words as they stand in the file, and name its path in the folder.")


def test_check_data_lists_all_of_them(folder: Path) -> None:
    lost = [place("guide.md", f"words of nowhere {number}") for number in range(5)]
    path = asked(folder, *lost)
    path.write_text(path.read_text() + path.read_text().replace("k1", "k2"))
    checked = check_data(str(folder))
    assert 10 == len(checked.faults)
    assert f'{path}, line 2: a quote of guide.md: "words of nowhere 4" is in no passage' in checked.faults[-1]


@pytest.mark.parametrize(
    ("evidence", "problem"),
    [
        ([{"quote": "Install"}], "field 'file' is empty or missing"),
        ([{"file": "guide.md", "quote": "Install"}, {"file": "guide.md"}], "field 'quote' is empty or missing"),
        ([{"file": "guide.md", "quote": "-->"}], "quote words, which can be found in a passage"),
        ([{"file": "guide.md", "quote": 5}], "field 'quote' must be a string, not the number 5"),
        ([{"file": "guide.md", "quote": "Install"}, "x"], "must be a list of objects with file and quote"),
        (
            [{"file": "guide.md", "quote": "Install", "alternatives": "x"}],
            "field 'evidence.alternatives' must be a list",
        ),
    ],
)
def test_evidence_of_another_form_is_refused(evidence: object, problem: str, folder: Path) -> None:
    path = asked(folder, evidence=evidence)
    with pytest.raises(InputError, match="line 1: field") as error:
        load_benchmark(folder)
    assert problem in str(error.value)
    assert str(error.value).startswith(f"{path}, line 1")


def test_stated_gold_wins_and_other_evidence_is_metadata(folder: Path) -> None:
    asked(folder, place("guide.md", "words of nowhere"), gold=["web.html"])
    assert (("web.html",),) == sets_of(load_benchmark(folder))
    asked(folder, evidence=["a sentence"], gold=None)
    (question,) = load_benchmark(folder).questions
    assert ((), ["a sentence"]) == (tuple(question.gold), question.metadata["evidence"])


@pytest.mark.benchmarks
@pytest.mark.parametrize(("name", "count"), [("docs-prefect", 50), ("docs-dvc", 40), ("docs-fastapi-de", 40)])
def test_all_questions_of_the_documentation_sets_resolve(name: str, count: int, benchmarks_dir: Path) -> None:
    benchmark = load_benchmark(benchmarks_dir / name)
    rows = [json.loads(line) for line in (benchmarks_dir / name / "questions.jsonl").read_text("utf-8").splitlines()]
    assert count == len(benchmark.questions) == len(rows)
    sources = benchmark.sources
    for question, row in zip(benchmark.questions, rows, strict=True):
        files = [{one["file"] for one in (hop, *hop.get("alternatives", ()))} for hop in row["evidence"]]
        chosen = [{sources[one].document_id for one in choice} for choice in question.gold.sets]
        assert 0 < len(chosen) <= SETS_LIMIT
        assert all(any(set(combination) == one for combination in product(*files)) for one in chosen)
