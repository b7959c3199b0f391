"""What cells of CSV, Parquet and Arrow files mean: lists, numbers beside gaps, JSON text, dates, delimiters."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError

CORPUS = '{"_id": "1", "text": "a"}\n{"_id": "2", "text": "b"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(CORPUS)
    return tmp_path


def asked(folder: Path) -> tuple[BenchmarkQuestion, ...]:
    return load_benchmark(folder).questions


def csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["Norhaven", "North Haven"]', ("Norhaven", "North Haven")),
        ("['Norhaven', \"O'Hara\"]", ("Norhaven", "O'Hara")),  # as pandas writes a column of lists
        ("[1931, true]", ("1931", "true")),
        ("[]", ()),
        ("[sic] no list", ("[sic] no list",)),
        ('["Heroes"] by Bowie', ('["Heroes"] by Bowie',)),
        ("{braces}", ("{braces}",)),
        ("1931", ("1931",)),
        ("", ()),
    ],
)
def test_an_answer_cell_is_a_list_where_it_is_written_as_one(
    folder: Path, cell: str, expected: tuple[str, ...]
) -> None:
    (folder / "queries.csv").write_text(f"_id,text,answer,gold\nq1,Who?,{csv_cell(cell)},1\n")
    assert expected == asked(folder)[0].answers


@pytest.mark.parametrize("cell", ["['a' 'b']", '["a" "b"]', "['a', 'b'", '["a"'])
def test_what_only_looks_like_a_list_is_refused_where_a_list_is_needed(folder: Path, cell: str) -> None:
    (folder / "queries.csv").write_text(f"_id,text,answer_aliases,gold\nq1,Who?,{csv_cell(cell)},1\n")
    with pytest.raises(InputError, match=r"queries.csv, line 2: field 'answer_aliases' is not JSON \("):
        load_benchmark(folder)


def test_a_list_of_numpys_is_no_answer(folder: Path) -> None:
    (folder / "queries.csv").write_text("_id,text,answer,gold\nq1,Who?,\"['a' 'b']\",1\n")
    with pytest.raises(InputError, match=r"field 'answer' is not JSON .*: write a list as \[\"a\", \"b\"\]"):
        load_benchmark(folder)


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_the_header_tells_the_delimiter(folder: Path, ending: str, mark: str, bom: str) -> None:
    header = mark.join(["_id", '"text"', " answer", "gold"])
    row = mark.join(["q1", '"Who;, and\twhat?\n\nYes?"', '"[""a"", ""b""]"', "2"])
    (folder / f"queries{ending}").write_text(f"{bom}{header}\n{row}\n")
    (question,) = asked(folder)
    assert ("Who;, and\twhat?\n\nYes?", ("a", "b"), ("2",)) == (question.text, question.answers, question.gold)


def test_a_column_that_stands_twice_is_refused(folder: Path) -> None:
    (folder / "queries.csv").write_text("_id,text,gold,gold\nq1,Who?,1,2\n")
    with pytest.raises(InputError, match=r"queries.csv: has the column 'gold' 2 times: remove or rename all but one"):
        load_benchmark(folder)


def test_whole_numbers_beside_gaps_are_whole_numbers_in_csv(tmp_path: Path) -> None:
    pd.DataFrame({"_id": [1, 2], "text": ["a", "b"], "page_number": [2, None]}).to_csv(tmp_path / "corpus.csv")
    pd.DataFrame({"_id": [1, 2], "text": ["A?", "B?"], "gold": [2, None]}).to_csv(tmp_path / "queries.csv")
    assert "2.0" in (tmp_path / "corpus.csv").read_text()
    assert "2.0" in (tmp_path / "queries.csv").read_text()
    benchmark = load_benchmark(tmp_path)
    assert {"1": 2} == {one: source.page_number for one, source in benchmark.sources.items()}
    assert [("2",)] == [question.gold for question in benchmark.questions]


def test_an_id_that_is_written_with_a_fraction_stays(tmp_path: Path) -> None:
    (tmp_path / "corpus.csv").write_text("_id,text\n2,a\n2.0,b\n")
    (tmp_path / "queries.csv").write_text('_id,text,gold\nq1,Who?,2.0\nq2,What?,"[2.0, 2]"\n')
    assert [("2.0",), ("2",)] == [question.gold for question in asked(tmp_path)]


def test_whole_numbers_beside_gaps_are_whole_numbers_in_parquet(tmp_path: Path) -> None:
    pd.DataFrame({"_id": [1, 2], "text": ["a", "b"], "page_number": [None, 7]}).to_parquet(tmp_path / "corpus.parquet")
    pd.DataFrame(
        {"_id": [1.0, 2.0], "text": ["A?", "B?"], "gold": [2, None], "answer": [1931, None], "level": [3, None]}
    ).to_parquet(tmp_path / "queries.parquet")
    benchmark = load_benchmark(tmp_path)
    assert {"2": 7} == {one: source.page_number for one, source in benchmark.sources.items()}
    (question,) = benchmark.questions
    assert ("1", ("2",), ("1931",), {"level": 3.0}) == (
        question.id,
        question.gold,
        question.answers,
        question.metadata,
    )


def test_lists_of_floats_with_gaps_are_gold(folder: Path) -> None:
    column = pa.array([[2.0, None], [float("nan"), 1.0]])
    pq.write_table(pa.table({"_id": ["a", "b"], "text": ["A?", "B?"], "gold": column}), folder / "queries.parquet")
    assert [("2",), ("1",)] == [question.gold for question in asked(folder)]


def test_what_json_has_no_value_for_is_text(folder: Path) -> None:
    columns = {
        "_id": [b"q1"],
        "text": pa.array(["Who?"]).dictionary_encode(),
        "answer": [date(1931, 5, 4)],
        "gold": [Decimal(2)],
        "asked": [pd.Timestamp("2026-11-29 18:00")],
        "share": [Decimal("0.50")],
        "facts": [{"when": date(1931, 5, 4), "none": None}],
    }
    pq.write_table(pa.table(columns), folder / "queries.parquet")
    (question,) = asked(folder)
    assert ("q1", "Who?", ("1931-05-04",), ("2",)) == (question.id, question.text, question.answers, question.gold)
    json.dumps(dict(question.metadata))
    assert {"when": "1931-05-04", "none": None} == question.metadata["facts"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(pa.array([b"\xff"]), r"corpus.parquet, row 1: holds bytes that are not UTF-8"), (pa.array([5]), "the number 5")],
)
def test_bytes_and_numbers_as_texts_are_refused(tmp_path: Path, text: pa.Array, expected: str) -> None:
    pq.write_table(pa.table({"_id": ["a"], "text": text}), tmp_path / "corpus.parquet")
    with pytest.raises(InputError, match=expected):
        load_benchmark(tmp_path, need_questions=False)


def test_damaged_tables_and_pointers_are_one_message(tmp_path: Path) -> None:
    file = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"_id": list(map(str, range(999))), "text": ["abc " * n for n in range(999)]}), file)
    whole = file.read_bytes()
    for content, expected in (
        (whole[:2000] + bytes(200) + whole[2200:], r"not a Parquet file \("),
        (whole[:3000], r"not a Parquet file \("),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer, not the file itself"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"corpus.parquet: {expected}"):
            load_benchmark(tmp_path, need_questions=False)


RECORD: dict[str, Any] = {
    "_id": "h1",
    "question": "Who?",
    "answer": "Ada",
    "supporting_facts": [["Ada", 1], ["1984", 0]],
    "context": [["Ada", ["She was.", "She wrote."]], ["1984", ["A year."]], ["[x]", ["No.", "List."]]],
    "evidences": [["Ada", "wrote", "notes"]],
}


def nested_text(path: Path) -> None:
    """As `datasets` writes mixed lists: JSON text at their leaves, in columns that say so."""
    given = path.with_name("given.json")
    given.write_text(json.dumps([RECORD]))
    loaded = datasets.load_dataset("json", data_files=str(given), split="train", cache_dir=str(path.parent / "cache"))
    loaded.to_parquet(str(path))
    assert '"Ada"' == pq.read_table(path)["context"].to_pylist()[0][0][0]


def plain_nested_text(path: Path) -> None:
    """The same, written by a library that does not keep the columns' kind."""
    changed = {
        name: [[list(map(json.dumps, pair)) for pair in RECORD[name]]] for name in ("context", "supporting_facts")
    }
    rest = {name: [RECORD[name]] for name in RECORD if name not in changed}
    pq.write_table(pa.table({**rest, **changed}), path)


def whole_text(path: Path) -> None:
    """Each nested column as one JSON text."""
    pd.DataFrame([{k: v if isinstance(v, str) else json.dumps(v) for k, v in RECORD.items()}]).to_parquet(path)


def csv_text(path: Path) -> None:
    pd.DataFrame([{k: v if isinstance(v, str) else json.dumps(v) for k, v in RECORD.items()}]).to_csv(path)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (nested_text, "dev.parquet"),
        (plain_nested_text, "dev.parquet"),
        (whole_text, "dev.parquet"),
        (csv_text, "dev.csv"),
    ],
)
def test_json_text_in_nested_columns_is_parsed(tmp_path: Path, write: Any, name: str) -> None:
    (tmp_path / "plain.json").write_text(json.dumps([RECORD]))
    write(tmp_path / name)
    expected, benchmark = load_benchmark(tmp_path / "plain.json"), load_benchmark(tmp_path / name)
    assert expected.digest == benchmark.digest
    assert 2 == len(expected.questions[0].gold)
    assert [["Ada", "wrote", "notes"]] == benchmark.questions[0].metadata["evidences"]


def test_bad_json_text_in_a_column_names_the_row(tmp_path: Path) -> None:
    column = pa.array(['[["A", ["x."]'], pa.json_())
    pq.write_table(pa.table({"_id": ["1"], "question": ["Who?"], "context": column}), tmp_path / "dev.parquet")
    with pytest.raises(InputError, match=r"dev.parquet, row 1: not JSON \("):
        load_benchmark(tmp_path / "dev.parquet")
