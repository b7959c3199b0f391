"""Rankings in the files of others: TREC runs, JSON lines and arrays, folders of earlier runs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from ir_measures import read_trec_run

from hopbench.eval.benchmarks import load_rankings
from hopbench.eval.runs.external import folder_rankings
from hopbench.retrieval.support.errors import InputError

RUN = """q1 Q0 p3 1 9.5 mine
q1 Q0 p1 2 9.5 mine
q2 Q0 p2 1 .25 mine
q1 Q0 p2 3 1e1 mine
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.txt"


def rankings(path: Path) -> dict[str, list[str]]:
    return {question: list(one.passages) for question, one in load_rankings(path).rankings.items()}


def test_in_a_trec_run_scores_decide_and_the_last_id_between_equal_ones(path: Path) -> None:
    path.write_text(RUN)
    run = load_rankings(path)

    assert {"q1": ["p2", "p3", "p1"], "q2": ["p2"]} == rankings(path)
    assert [10.0, 9.5, 9.5] == list(run.rankings["q1"].scores)
    assert ("TREC run", 1) == (run.form, run.ties)
    path.write_text(RUN.replace(" 1 9.5", " rank 9.5"))
    assert run.rankings == load_rankings(path).rankings  # trec_eval does not read ranks


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": {"a": 1, "b": 2.5, "c": 1}, "q2": {}}',
        '{\n  "q1": {"c": 1, "a": 1,\n "b": 2.5},\n  "q2": {}\n}\n',
        '\ufeff{"q1": {"a": 1, "b": 2.5, "c": 1}}\n{"q2": {}}\n',
    ],
)
def test_scores_by_question_and_passage_are_a_run(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    run = load_rankings(path)

    assert {"q1": ["b", "c", "a"], "q2": []} == rankings(path)
    assert ([2.5, 1, 1], "JSON scores", 1) == (list(run.rankings["q1"].scores), run.form, run.ties)


def test_scores_are_compared_in_single_precision(path: Path) -> None:
    path.write_text('{"q1": {"a": 1.0000000001, "b": 1, "c": 1e40, "d": 1e39, "e": 1.0001}}')
    run = load_rankings(path)

    assert (["d", "c", "e", "b", "a"], 2) == (list(run.rankings["q1"].passages), run.ties)


def test_json_rankings_with_equal_scores_are_ordered_by_id_and_those_without_scores_stand(path: Path) -> None:
    path.write_text('{"id": "q1", "passages": ["a", "b"], "scores": [1, 1]}\n{"id": "q2", "passages": ["a", "b"]}\n')

    assert {"q1": ["b", "a"], "q2": ["a", "b"]} == rankings(path)
    assert 1 == load_rankings(path).ties


def test_a_trec_run_holds_what_ir_measures_reads(path: Path) -> None:
    path.write_text(RUN.replace(" ", "\t"))
    ours = {(q, p, s) for q, one in load_rankings(path).rankings.items() for p, s in zip(one.passages, one.scores)}  # noqa: B905

    assert {(doc.query_id, doc.doc_id, doc.score) for doc in read_trec_run(str(path))} == ours


def test_the_digest_is_that_of_the_bytes(path: Path) -> None:
    path.write_text(RUN)
    first = load_rankings(path).digest
    path.write_text(RUN + "q3 Q0 p1 1 1 mine\n")

    assert 64 == len(first)
    assert first != load_rankings(path).digest


@pytest.mark.parametrize("question", ["question", "question_id", "query_id", "qid", "_id", "id"])
@pytest.mark.parametrize("passages", ["passages", "ranked_ids", "doc_ids"])
def test_json_rankings_by_the_usual_names_of_fields(path: Path, question: str, passages: str) -> None:
    path.write_text(json.dumps({question: "q1", passages: ["p2", 7], "scores": [2, 1.5], "note": "kept apart"}) + "\n")
    run = load_rankings(path)

    assert {"q1": ["p2", "7"]} == rankings(path)
    assert [2.0, 1.5] == list(run.rankings["q1"].scores)
    assert "JSON rankings" == run.form


def test_json_rankings_in_one_array(path: Path) -> None:
    path.write_text(json.dumps([{"question": "q1", "passages": ["p1"]}, {"question": "q2", "passages": []}]))

    assert {"q1": ["p1"], "q2": []} == rankings(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ": holds no rankings: each line must be an object with id and ranked_ids, or the six columns of a TREC"),
        ("q1 p1 3\n", ", line 1: has 3 columns, must have the 6 of a TREC run: qid Q0 docid rank score tag"),
        ("q1 Q0 p1 1 x mine\n", ", line 1: column 'score' is 'x', must be a number"),
        ("q1 Q0 p1 1 nan mine\n", ", line 1: column 'score' is 'nan', must be a finite number"),
        ("q1 Q0 p1 1 inf mine\n", ", line 1: column 'score' is 'inf', must be a finite number"),
        ('{"q1": {"p1": "2"}}', ", question 1: 'q1' has for 'p1' a string, must be a number"),
        ('{"q1": {"p1": true}}', ", question 1: 'q1' has for 'p1' true, must be a number"),
        ('{"q1": {"p1": 1}, "q2": {"p1": NaN}}', ", question 2: 'q2' has for 'p1' nan, must be a finite number"),
        ('{"q1": {"p1": 1%s}}' % ("0" * 400), ", question 1: 'q1' has for 'p1' inf, must be a finite number"),
        ('{"q1": {"p1": 2, "p1": 1}}', ", question 1: 'q1' names 'p1' twice"),
        ('{"q1": {"p1": 2}, "q1": {"p2": 1}}', ", question 2: 'q1' comes a second time"),
        ('{"q1": {"p1": 2}}\n{"q2": [1]}\n', ", question 2: 'q2' has a list, must have an object of scores by passage"),
        ('{"q1": {"p1": 2}}\n7\n', ": holds the number 7 after an object of scores"),
        ('{\n"q1": {"p1": 2,}}\n', ": not JSON that can be read ("),
        ("{}", ": holds no rankings"),
        ("q1 Q0 p1 1 2 a\n\nq1 Q0 p1 2 1 a\n", ", line 3: ranks 'p1' for question 'q1' again, first in line 1"),
        ('{"question": "q1"}\n', ", line 1: field 'ranked_ids' is missing"),
        ('{"question": "q1", "passages": "p1"}\n', ", line 1: field 'passages' must be a list, not a string"),
        ('{"question": "q1", "passages": ["p1"], "scores": []}\n', ", line 1: field 'scores' has 0 numbers for the 1"),
        ('{"question": "q1", "passages": ["p1"], "scores": ["2"]}\n', ", line 1: field 'scores' holds a string"),
        (
            '{"question": "q1", "passages": ["p1", "p2"], "scores": [1, 2]}\n',
            ", line 1: field 'scores' rises from 1 to 2: list passages best first",
        ),
        ('{"question": {"id": 1}, "passages": []}\n', ", line 1: field 'question' must be a string, not an object"),
    ],
)
def test_bad_files_are_refused_with_their_place(path: Path, text: str, expected: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_rankings(path)

    assert f"{path}{expected}" == str(caught.value)[: len(f"{path}{expected}")]


def test_a_compressed_run_is_told_to_be_unpacked(path: Path) -> None:
    path.write_bytes(gzip.compress(RUN.encode()))
    with pytest.raises(InputError, match=r"run\.txt: is compressed: unpack it \(gunzip\)"):
        load_rankings(path)


def test_no_file_is_no_run(path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.txt: no such file"):
        load_rankings(path)


def write_folder(folder: Path, rows: Sequence[Sequence[object]]) -> Path:
    columns = ["question_id", "strategy", "ranked_ids", "scores", "failure"]
    pd.DataFrame(rows, columns=columns).to_parquet(folder / "questions.parquet")
    return folder


def test_a_results_folder_has_a_run_for_each_label_and_its_failures(tmp_path: Path) -> None:
    write_folder(
        tmp_path,
        [
            ("q1", "bm25", ["p1", "p2"], [2.0, 1.0], None),
            ("q2", "bm25", [], [], "RuntimeError: no"),
            ("q1", "closed_book", [], [], None),
            ("q1", "pagerank:tuned", ["p2"], [0.1], None),
        ],
    )
    found = folder_rankings(tmp_path)

    assert ["bm25", "pagerank:tuned"] == list(found)
    assert ["p1", "p2"] == list(found["bm25"].rankings["q1"].passages)
    assert "RuntimeError: no" == found["bm25"].rankings["q2"].failure


def test_a_folder_without_a_run_or_with_a_broken_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"questions\.parquet is not there: name a folder that `hopbench run --out`"):
        folder_rankings(tmp_path)
    (tmp_path / "questions.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"questions\.parquet is damaged"):
        folder_rankings(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "questions.parquet")
    with pytest.raises(InputError, match=r"no column failure, question_id, ranked_ids, strategy"):
        folder_rankings(tmp_path)
