"""Data sets in the layouts in which HippoRAG and GFM-RAG publish them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.data_check import check_data
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError

PASSAGES = [
    {"title": "Kestrel", "text": "The Kestrel is a ferry of the Ardmore Yard. It sails daily.", "idx": 0},
    {"title": "Ardmore Yard", "text": "The yard lies in Norhaven.", "idx": 1},
    {"title": "Ardmore Yard", "text": "A yard of another age.", "idx": 2},
    {"title": "Heron", "text": "A tug.", "idx": 3},
]
KESTREL, YARD, OLD, TUG = (one["text"] for one in PASSAGES)


def paragraph(number: int, field: str = "paragraph_text", **more: Any) -> dict[str, Any]:
    one = PASSAGES[number]
    return {"idx": number, "title": one["title"], field: one["text"], **more}


MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Where was it built?",
    "answer": "Norhaven",
    "answer_aliases": ["North Haven"],
    "paragraphs": [
        paragraph(0, is_supporting=True),
        paragraph(1, is_supporting=True),
        paragraph(3, is_supporting=False),
    ],
}
SAMPLE = {
    "id": "sample/1",
    "question": "Where was it built?",
    "answer": ["Norhaven", "North Haven"],
    "paragraphs": [paragraph(0, "text"), paragraph(1, "text", is_supporting=True)],
}
CONTEXTS = {
    "question": "Where was it built?",
    "gold_ans": ["Norhaven", "North Haven"],
    "contexts": [paragraph(0, "text", is_supporting=True), paragraph(1, "text", is_supporting=True)],
}
HOTPOT = {
    "_id": "h1",
    "question": "Where was it built?",
    "answer": ["Norhaven", "North Haven"],
    "context": [
        ["Kestrel", ["The Kestrel is a ferry of the Ardmore Yard.", " It sails daily."]],
        ["Ardmore Yard", ["The yard lies in Norhaven."]],
        ["Not there", ["A distractor that the corpus lacks."]],
    ],
    "supporting_facts": [["Kestrel", 1], ["Ardmore Yard", 0]],
}
TWOWIKI = {**HOTPOT, "evidences": [["Kestrel", "built by", "Ardmore Yard"]]}


def pair(folder: Path, *records: dict[str, Any], name: str = "musique") -> Path:
    (folder / f"{name}_corpus.json").write_text(json.dumps(PASSAGES))
    (folder / f"{name}.json").write_text(json.dumps(records))
    return folder


def gold(benchmark: Benchmark) -> list[str]:
    return [benchmark.by_id[one].text for one in benchmark.questions[0].gold]


@pytest.mark.parametrize("record", [MUSIQUE, SAMPLE, CONTEXTS, HOTPOT, TWOWIKI])
@pytest.mark.parametrize("given", ["", "musique.json", "musique_corpus.json"])
def test_hipporags_pair_is_one_benchmark(tmp_path: Path, record: dict[str, Any], given: str) -> None:
    benchmark = load_benchmark(pair(tmp_path, record) / given)
    assert ("musique", "report") == (benchmark.name, benchmark.role)
    assert [KESTREL, YARD, OLD, TUG] == [one.text for one in benchmark.passages]
    assert [KESTREL, YARD] == gold(benchmark)
    assert ("Norhaven", "North Haven") == benchmark.questions[0].answers


def test_the_corpus_counts_and_not_what_the_contexts_hold(tmp_path: Path) -> None:
    pair(tmp_path, SAMPLE)
    assert (4, 2) == (
        len(load_benchmark(tmp_path / "musique.json").passages),
        len(load_benchmark(tmp_path / "musique.json", format="musique").passages),
    )


def test_packed_files_are_read_and_repeated_passages_count_once(tmp_path: Path) -> None:
    for name, rows in (("a_corpus.json.gz", [*PASSAGES, PASSAGES[0]]), ("a.json.gz", [MUSIQUE])):
        (tmp_path / name).write_bytes(gzip.compress(json.dumps(rows).encode()))
    benchmark = load_benchmark(tmp_path)
    assert ("a", 4) == (benchmark.name, len(benchmark.passages))
    assert [("passages repeat another's title and text", 1)] == [(one.what, one.count) for one in benchmark.findings]


def test_gold_that_the_corpus_lacks_and_several_sets_are_refused(tmp_path: Path) -> None:
    other = {**MUSIQUE, "paragraphs": [{"title": "kestrel", "paragraph_text": "Another.", "is_supporting": True}]}
    pair(tmp_path, other)
    with pytest.raises(
        InputError, match=r"musique.json: 1 supporting title is not in the corpus: 'kestrel' \(record 1; "
    ):
        load_benchmark(tmp_path)
    pair(tmp_path, MUSIQUE, name="b")
    with pytest.raises(
        InputError, match=r"holds several data sets \(b, musique\): name a file of one, such as .*b_corp"
    ):
        load_benchmark(tmp_path)
    assert "b" == load_benchmark(tmp_path / "b.json").name
    assert 1 == len(check_data(str(tmp_path)).faults)


def test_questions_without_passages_have_no_gold(tmp_path: Path) -> None:
    benchmark = load_benchmark(pair(tmp_path, {"id": 1, "question": "Who?", "answer": "Ada"}))
    assert ("user", ["1"]) == (benchmark.role, [one.id for one in benchmark.questions])


DOCUMENTS = {
    "France": "A country. Its capital is Paris.",
    "Tom & Jerry": "A film.",
    "Bj\u00f6rk": ["A singer.", " Icelandic."],
}
ASKED = {"id": "t1", "question": "Who?", "answer": "Macron", "answer_aliases": ["E. M."]}


def raw(folder: Path, corpus: str, questions: str, *records: dict[str, Any]) -> Path:
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    (folder / "raw" / corpus).write_text(json.dumps(DOCUMENTS))
    (folder / "raw" / questions).write_text(json.dumps(records))
    return folder


@pytest.mark.parametrize("corpus", ["documents.json", "dataset_corpus.json"])
@pytest.mark.parametrize("given", ["", "raw", "raw/test.json", "raw/CORPUS"])
@pytest.mark.parametrize(
    "named",
    [
        {"supporting_documents": ["France", "Bj\u00f6rk"]},
        {"supporting_facts": ["France", "Bj\u00f6rk"]},
        {"supporting_facts": [["France", 0], ["Bjo\u0308rk", 0]]},
    ],
)
def test_gfm_rags_raw_files_are_one_benchmark(tmp_path: Path, corpus: str, given: str, named: dict[str, Any]) -> None:
    folder = raw(tmp_path / "toy", corpus, "test.json", {**ASKED, **named})
    benchmark = load_benchmark(folder / given.replace("CORPUS", corpus))
    assert ("toy", "report") == (benchmark.name, benchmark.role)
    assert [("France", "France"), ("Tom & Jerry", "Tom & Jerry"), ("Bj\u00f6rk", "Bj\u00f6rk")] == [
        (one.id, one.title) for one in benchmark.passages
    ]
    assert "A singer. Icelandic." == benchmark.passages[2].text
    (question,) = benchmark.questions
    assert (("France", "Bj\u00f6rk"), ("Macron", "E. M.")) == (question.gold, question.answers)


def test_a_training_file_makes_a_set_for_tuning(tmp_path: Path) -> None:
    folder = raw(
        tmp_path / "toy", "documents.json", "train.json", {**ASKED, "supporting_documents": ["Tom &amp; Jerry"]}
    )
    benchmark = load_benchmark(folder)
    assert ("toy-train", "tune", ("Tom & Jerry",)) == (benchmark.name, benchmark.role, benchmark.questions[0].gold)


def test_documents_alone_are_a_corpus(tmp_path: Path) -> None:
    folder = raw(tmp_path / "toy", "documents.json", "notes.json")
    assert 3 == len(load_benchmark(folder, need_questions=False).passages)
    with pytest.raises(
        InputError, match=r"raw: no queries.jsonl .*the folder holds documents.json, notes.json. It is a"
    ):
        load_benchmark(folder)


@pytest.mark.parametrize(
    ("corpus", "questions", "expected"),
    [
        ('["a"]', "[]", 'documents.json: must be one object of texts by title, {"TITLE": "TEXT", …}, not a list'),
        ('{"a": "x", "a": "y"}', "[]", "documents.json, entry 2: duplicate passage '_id' 'a', first used in entry 1"),
        ('{"a": 5}', "[]", "documents.json, entry 1: field 'text' must be a string, not the number 5"),
        ("{}", "[]", "documents.json: the corpus is empty"),
        ('{"a": ' + "[" * 100_000, "[]", "documents.json: not JSON that can be read"),
        (
            '{"a": "x"}',
            '[{"id": 1, "question": "Who?", "supporting_documents": ["A"]}]',
            "test.json: 1 supporting document is not in documents.json: 'A' (record 1; 'a' is there, which differs in",
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, corpus: str, questions: str, expected: str) -> None:
    folder = raw(tmp_path / "toy", "documents.json", "test.json")
    (folder / "raw" / "documents.json").write_text(corpus)
    (folder / "raw" / "test.json").write_text(questions)
    with pytest.raises(InputError) as caught:
        load_benchmark(folder)
    assert expected == str(caught.value).removeprefix(f"{folder}/raw/")[: len(expected)]


def test_documents_with_a_stray_file_stay_documents(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nA text.\n")
    for name in ("speech_corpus.json", "documents.json"):
        (tmp_path / name).write_text("[]")
    assert ["notes.md"] == [one.id for one in load_benchmark(tmp_path, need_questions=False).passages]
