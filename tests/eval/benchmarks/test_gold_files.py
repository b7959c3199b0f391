"""Gold in files: alternative sets, grades, and passages that the corpus lacks; read, refused and written."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pandas as pd
import pytest

from hopbench.eval.benchmarks import load_benchmark, shown_warnings
from hopbench.eval.benchmarks.beir import write_benchmark
from hopbench.retrieval.support.errors import InputError

SETS = [["p1", "p2"], ["p3"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    (path / "corpus.jsonl").write_text("".join(f'{{"_id": "p{n}", "text": "text {n}"}}\n' for n in range(1, 6)))
    return path


def ask(folder: Path, *gold: object) -> Path:
    rows = ({"_id": f"q{n}", "text": "Who?", "gold": one} for n, one in enumerate(gold, start=1))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def judge(folder: Path, text: str) -> Path:
    first = (line.split("\t")[0] for line in text.splitlines() if line)
    ids = dict.fromkeys(one for one in first if one not in ("query-id", "query_id"))
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "{one}", "text": "Who {one}?"}}\n' for one in ids))
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / "test.tsv").write_text(text)
    return folder


def test_sets_in_json_lines_tables_and_metadata(folder: Path) -> None:
    expected = load_benchmark(ask(folder, SETS, ["p4"], "p5"))
    assert [(("p1", "p2"), ("p3",)), (("p4",),), (("p5",),)] == [q.gold.sets for q in expected.questions]
    (folder / "queries.jsonl").unlink()
    for suffix, text in (("csv", '_id,text,gold\nq1,Who?,"[[""p1"",""p2""],[""p3""]]"\n'), ("tsv", "")):
        if text:
            (folder / f"queries.{suffix}").write_text(text)
            assert expected.questions[0] == load_benchmark(folder).questions[0]
            (folder / f"queries.{suffix}").unlink()
    pd.DataFrame([{"_id": "q1", "text": "Who?", "gold": SETS}]).to_parquet(folder / "queries.parquet")
    assert expected.questions[0] == load_benchmark(folder).questions[0]
    (folder / "queries.parquet").unlink()
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "Who?", "metadata": {"gold": SETS}}) + "\n")
    assert expected.questions[0] == load_benchmark(folder).questions[0]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ([["p1"], []], "line 1: field 'gold' holds an empty set: name its passages"),
        ([["p1", "p2"], ["p2", "p1"]], "line 1: field 'gold' holds the set ['p2', 'p1'] twice"),
        ([["p1"], "p2"], "line 1: field 'gold' mixes ids and lists of ids: write each alternative set as a list"),
        ([["p1"], [["p2"]]], "line 1: field 'gold' must be a string, not a list"),
        ([["p1"], ["p9"]], "1 gold id is not in the corpus: 'p9' (line 1)"),
    ],
)
def test_sets_that_cannot_be_used_are_refused(folder: Path, gold: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_benchmark(ask(folder, gold))
    assert message in str(caught.value)


def test_sets_that_judgements_overrule_are_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    judge(folder, "q1\tp4\t1\n")
    ask(folder, SETS)
    with caplog.at_level(logging.WARNING):
        assert [("p4",)] == [q.gold for q in load_benchmark(folder).questions]
    assert "field 'gold' of 1 questions holds sets, which" in caplog.text


def test_written_sets_and_grades_are_read_again_alike(folder: Path, tmp_path: Path) -> None:
    sets = load_benchmark(ask(folder, SETS, ["p4"]))
    write_benchmark(sets, tmp_path / "sets")
    assert not (tmp_path / "sets" / "qrels").exists()
    assert sets.questions == load_benchmark(tmp_path / "sets").questions
    grades = load_benchmark(judge(folder, "q1\tp1\t3\nq1\tp2\t0\nq1\tp4\t-1\nq2\tp9\t2\nq2\tp1\t1\n"), min_grade=2)
    write_benchmark(grades, tmp_path / "grades")
    assert grades.questions == load_benchmark(tmp_path / "grades", min_grade=2).questions
    assert (folder / "qrels" / "test.tsv").read_text() in (tmp_path / "grades" / "qrels" / "test.tsv").read_text()


def test_binary_judgements_are_written_as_before(folder: Path, tmp_path: Path) -> None:
    write_benchmark(load_benchmark(judge(folder, "q1\tp1\t1\nq1\tp2\t0\n")), tmp_path / "out")
    assert "query-id\tcorpus-id\tscore\nq1\tp1\t1\n" == (tmp_path / "out" / "qrels" / "test.tsv").read_text()


def test_whole_numbers_with_a_point_and_headings_by_other_names_are_read(folder: Path) -> None:
    loaded = load_benchmark(judge(folder, "\nquery_id\tdoc_id\trelevance\nq1\tp1\t2.0\nq1\tp2\t1e0\nq1\tp3\t-1.0\n"))
    assert {"p1": 2, "p2": 1, "p3": -1} == loaded.questions[0].gold.grades
    assert ("p1", "p2") == loaded.questions[0].gold
    judged = judge(folder, "query\tp1\t1\n")  # a question whose id is a heading's word
    assert [("p1",)] == [q.gold for q in load_benchmark(judged).questions]


def test_a_threshold_leaves_questions_out_and_one_beyond_all_grades_is_refused(folder: Path) -> None:
    judge(folder, "q1\tp1\t2\nq1\tp2\t1\nq2\tp3\t1\n")
    loaded, whole = load_benchmark(folder, min_grade=2), load_benchmark(folder)
    assert ([("q1", ("p1",))], 2) == ([(q.id, q.gold) for q in loaded.questions], loaded.min_grade)
    assert loaded.digest != whole.digest
    with pytest.raises(InputError, match=r"--min-grade 3: no passage of data has such a grade, the highest is 2"):
        load_benchmark(folder, min_grade=3)
    with pytest.raises(InputError, match=r"min_grade is 0, must be at least 1"):
        load_benchmark(folder, min_grade=0)


def test_gold_that_the_corpus_lacks_is_counted_or_refused(folder: Path) -> None:
    judge(folder, "q1\tp1\t1\nq1\tp9\t1\nq2\tp9\t2\nq2\tp8\t1\nq1\tp7\t0\n")
    loaded = load_benchmark(folder)
    assert {"p8": ["q2"], "p9": ["q1", "q2"]} == loaded.missing_gold
    (warning,) = shown_warnings(loaded)
    assert (
        "data: gold passages that the corpus lacks: 2, of 2 questions: 'p8' (question q2), 'p9' (question q1)"
        in warning
    )
    with pytest.raises(InputError, match=r"data: gold passages that the corpus lacks: 2, of 2 questions"):
        load_benchmark(folder, strict=True)
