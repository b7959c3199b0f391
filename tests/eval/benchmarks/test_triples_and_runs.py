"""Ready triples and published runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import load_run, load_triples
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Triple

TRIPLE = {"passage_id": "p1", "subject": "Ada", "relation": "wrote", "object": "Notes"}
RANKING = {"id": "q1", "ranked_ids": ["p2", "p1"], "published": {"recall@2": 1.0}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.jsonl"


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_triples_are_read_with_and_without_confidence(path: Path) -> None:
    write(
        path, TRIPLE, {**TRIPLE, "subject": " Bea ", "confidence": 0, "subj_id": "e1"}, {**TRIPLE, "confidence": None}
    )

    assert [
        Triple("p1", "Ada", "wrote", "Notes", 1.0),
        Triple("p1", "Bea", "wrote", "Notes", 0.0),
        Triple("p1", "Ada", "wrote", "Notes", 1.0),
    ] == load_triples(path, ["p1"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"object": None}, "line 2: field 'object' must be a string, not null"),
        ({"relation": " "}, "line 2: field 'relation' is empty: a triple needs a subject, a relation and an object"),
        ({"subject": 3}, "line 2: field 'subject' must be a string, not the number 3"),
        ({"passage_id": ""}, "line 2: field 'passage_id' is empty"),
        ({"confidence": 1.5}, "line 2: field 'confidence' is 1.5, must be from 0 to 1: rescale it or leave it out"),
        ({"confidence": -0.1}, "line 2: field 'confidence' is -0.1, must be from 0 to 1"),
        ({"confidence": float("nan")}, "line 2: not JSON that can be read (NaN is no number of JSON)"),
        ({"confidence": "high"}, "line 2: field 'confidence' must be a number from 0 to 1, not a string"),
        ({"confidence": True}, "line 2: field 'confidence' must be a number from 0 to 1, not true"),
        ({"weight": 0}, "line 2: field 'weight' is 0, must be from 1 to 10: rescale it or leave it out"),
        ({"weight": "8"}, "line 2: field 'weight' must be a number from 1 to 10, not a string"),
        ({"subject_type": 3}, "line 2: field 'subject_type' must be a string, not the number 3"),
        ({"obj_type": "x" * 81}, "line 2: field 'obj_type' is 81 characters long, over the limit of 80: name a kind"),
        ({"object_description": []}, "line 2: field 'object_description' must be a string, not a list"),
    ],
)
def test_bad_triples_name_line_and_field(path: Path, fields: dict[str, Any], expected: str) -> None:
    write(path, TRIPLE, {**TRIPLE, **fields})
    with pytest.raises(InputError) as caught:
        load_triples(path, ["p1"])

    assert f"{path}, {expected}" == str(caught.value)[: len(f"{path}, {expected}")]


def test_a_line_may_say_what_its_ends_are_and_what_the_relation_means(path: Path) -> None:
    said = {
        "description": "Ada wrote notes.",
        "subject_description": " A\n mathematician. ",
        "object_description": None,
    }
    write(path, {**TRIPLE, **said, "subject_type": "person", "object_type": "text", "confidence": 0.2, "weight": 8})
    (triple,) = load_triples(path, ["p1"])

    assert ("person", "text", "Ada wrote notes.") == (triple.subject_type, triple.object_type, triple.description)
    assert ("A mathematician.", "") == (triple.subject_description, triple.object_description)
    assert 0.8 == triple.confidence  # the weight of 8, not how sure somebody was


def test_2wiki_s_own_names_of_the_types_are_read(path: Path) -> None:
    (triple,) = load_triples(write(path, {**TRIPLE, "subj_type": "person", "obj_type": None}), ["p1"])

    assert ("person", "", 1.0) == (triple.subject_type, triple.object_type, triple.confidence)


def test_triples_of_unknown_passages_are_counted(path: Path) -> None:
    write(path, TRIPLE, *({**TRIPLE, "passage_id": name} for name in ("x1", "x2", "x1")))
    with pytest.raises(InputError) as caught:
        load_triples(path, ["p1", "p2"])

    assert (
        f"{path}: 2 passage_ids are not in the corpus of 2 passages: 'x1' (line 2), 'x2' (line 3). "
        "Use the triples of this benchmark or remove the lines."
    ) == str(caught.value)


def test_triples_missing_field_empty_file_and_missing_file(path: Path) -> None:
    with pytest.raises(InputError, match=r"file\.jsonl: no such file$"):
        load_triples(path, [])
    with pytest.raises(InputError, match=r"file\.jsonl: holds no triples: each line must be an object with"):
        load_triples(write(path), [])
    with pytest.raises(
        InputError, match=r"line 1: field 'relation' is missing \(fields present: passage_id, subject\)"
    ):
        load_triples(write(path, {"passage_id": "p1", "subject": "Ada"}), ["p1"])
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"file\.jsonl: is a folder, not a file"):
        load_triples(path, [])


def test_a_run_maps_questions_to_rankings_in_order(path: Path) -> None:
    assert load_run(write(path, RANKING, {"id": "q2", "ranked_ids": []})) == {"q1": ["p2", "p1"], "q2": []}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], ": holds no rankings: each line must be an object with id and ranked_ids"),
        ([RANKING, RANKING], ", line 2: duplicate question '_id' 'q1', first used in line 1"),
        ([{"id": "q1"}], ", line 1: field 'ranked_ids' is missing (fields present: id)"),
        ([{"id": "q1", "ranked_ids": "p1"}], ", line 1: field 'ranked_ids' must be a list, not a string"),
        ([{"id": "q1", "ranked_ids": ["p1", None]}], ", line 1: field 'ranked_ids' must be a string, not null"),
        ([{"id": "q1", "ranked_ids": ["p1", "p1"]}], ", line 1: field 'ranked_ids' holds 'p1' twice"),
    ],
)
def test_bad_runs_name_line_and_field(path: Path, records: list[object], expected: str) -> None:
    write(path, *records)
    with pytest.raises(InputError) as caught:
        load_run(path)

    assert f"{path}{expected}" == str(caught.value)[: len(f"{path}{expected}")]
