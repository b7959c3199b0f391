"""A user's own corpus and questions as CSV, TSV and Parquet."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.retrieval.support.errors import InputError

CSV = '_id,title,text\n1,"Ada, Countess","She said ""write"".\n\nThen wrote."\n2,Babbage,\n'
QUERIES = 'id\tquestion\tanswer\tanswer_aliases\nq1\tWho wrote?\tAda\t["A."]\nq2\tWho built?\t\t\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.csv").write_text(CSV)
    (tmp_path / "queries.tsv").write_text(QUERIES)
    return tmp_path


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_benchmark(folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_csv_and_tsv_with_quotes_and_empty_cells(folder: Path) -> None:
    benchmark = load_benchmark(folder)
    first, second = benchmark.passages

    assert (first.id, first.title, first.text) == ("1", "Ada, Countess", 'She said "write".\n\nThen wrote.')
    assert (second.id, second.title, second.text) == ("2", "Babbage", "")
    assert [(q.id, q.answer, q.aliases) for q in benchmark.questions] == [("q1", "Ada", ("A.",)), ("q2", None, ())]
    assert benchmark.role == "user"


def test_qrels_work_beside_tables(folder: Path) -> None:
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q1\t1\t1\nq2\t2\t1\n")

    assert [question.gold for question in load_benchmark(folder).questions] == [("1",), ("2",)]


def test_parquet_written_by_pandas_is_the_same_benchmark(folder: Path) -> None:
    expected = load_benchmark(folder)
    corpus = pd.read_csv(folder / "corpus.csv", keep_default_na=False)  # the ids become integers
    corpus.to_parquet(folder / "corpus.parquet")
    pd.DataFrame(
        [
            {"_id": "q1", "text": "Who wrote?", "metadata": {"answer": "Ada", "answer_aliases": ["A."]}},
            {"_id": "q2", "text": "Who built?", "metadata": {"answer": None, "answer_aliases": None}},
        ]
    ).to_parquet(folder / "queries.parquet")
    (folder / "corpus.csv").unlink()
    (folder / "queries.tsv").unlink()

    assert expected.digest == load_benchmark(folder).digest


def test_rows_name_the_line_of_the_file_and_not_of_the_table(folder: Path) -> None:
    (folder / "corpus.csv").write_text(CSV + "\n1,Again,x\n")  # row 1 takes lines 2 to 4, line 6 is blank

    assert "corpus.csv, line 7: duplicate passage '_id' '1', first used in line 4" in refusal(folder)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_id,title,text\n1,A\n", "corpus.csv, line 2: has 2 columns where the header names 3 (_id, title, text)"),
        ("name,body\nA,x\n", "corpus.csv, line 2: field 'text' is missing (fields present: name, body)"),
        ('_id,text\n1,"a" b\n', "corpus.csv, line 2: not a readable table ("),
        ('_id,text\n1,"never closed\n', "corpus.csv, line 2: not a readable table (unexpected end of data)"),
        ("", "corpus.csv: is empty: the first line must name the columns"),
        ("_id,text\n", "corpus.csv: the corpus is empty"),
        ("_id,text\n1," + "x" * 2_000_000, "corpus.csv, line 2: field 'text' is 2,000,000 bytes long, over the limit"),
    ],
)
def test_refusals_name_line_and_field(folder: Path, text: str, expected: str) -> None:
    limit = csv.field_size_limit()
    (folder / "corpus.csv").write_text(text)

    assert expected == refusal(folder)[: len(expected)]
    assert limit == csv.field_size_limit()


def test_aliases_that_are_not_json_are_refused(folder: Path) -> None:
    (folder / "queries.tsv").write_text("_id\ttext\tanswer_aliases\nq1\tWho?\t[Ada\n")

    assert refusal(folder).startswith("queries.tsv, line 2: field 'answer_aliases' is not JSON (")


def test_not_parquet_and_rows_of_parquet(folder: Path) -> None:
    path = folder / "corpus.parquet"
    path.write_text("no table")
    assert refusal(folder).startswith("corpus.parquet: not a Parquet file (")

    pd.DataFrame({"_id": ["a", None], "text": ["x", "y"]}).to_parquet(path)
    assert refusal(folder) == "corpus.parquet, row 2: field '_id' must be a string, not null"
