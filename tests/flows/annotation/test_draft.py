"""Annotations on disk: what is saved is an ordinary data set, and nothing of it is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Gold
from hopbench.flows.annotation.draft import Draft, OutdatedVersionError
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage, Source

PASSAGES = [
    Passage("a", "Pilots", "Pilots pay dues.", Source(document_id="one.md")),
    Passage("b", "Dues", "Dues are 5 euros.", Source(document_id="one.md")),
    Passage("c", "Fees", "Dues are 5 euros a day.", Source(document_id="two.md")),
]
CORPUS = Benchmark("docs", PASSAGES, ())


def question(**changed: Any) -> dict[str, Any]:
    return {"id": "q001", "text": "What do pilots pay?", "answer": "5 euros", "evidence": {"a": 1, "b": 2}} | changed


def test_a_complete_question_is_in_the_data_set_at_once(tmp_path: Path) -> None:
    draft = Draft.open(CORPUS, tmp_path / "set")
    draft.save(question(type="bridge", aliases=["5 EUR"]))
    draft.save(question(id="q002", text="Not yet marked?", evidence={}))

    loaded = load_benchmark(str(tmp_path / "set"))

    (only,) = loaded.questions
    assert ("q001", "What do pilots pay?", "bridge", ("5 euros", "5 EUR")) == (
        only.id,
        only.text,
        only.type,
        only.answers,
    )
    assert (Gold(["a", "b"]), "report") == (only.gold, loaded.role)
    assert PASSAGES == list(loaded.passages)


def test_passages_with_one_number_are_either_or(tmp_path: Path) -> None:
    draft = Draft.open(CORPUS, tmp_path / "set")
    draft.save(question(evidence={"a": 1, "b": 2, "c": 2}))

    (only,) = load_benchmark(str(tmp_path / "set")).questions

    assert {frozenset("ab"), frozenset("ac")} == {frozenset(passages) for passages in only.gold.sets}


def test_a_second_start_continues_unfinished_questions_too(tmp_path: Path) -> None:
    first = Draft.open(CORPUS, tmp_path / "set")
    first.save(question(evidence={}))

    again = Draft.open(CORPUS, tmp_path / "set")

    assert ["q001"] == list(again.questions)
    assert {"questions": 0, "unfinished": 1} == {name: again.progress()[name] for name in ("questions", "unfinished")}


def test_a_change_of_an_outdated_copy_is_refused(tmp_path: Path) -> None:
    draft = Draft.open(CORPUS, tmp_path / "set")
    saved = draft.save(question())
    draft.save(saved.model_dump() | {"text": "Changed?"})

    with pytest.raises(OutdatedVersionError, match="another window"):
        draft.save(saved.model_dump() | {"text": "Older?"})
    assert "Changed?" == draft.questions["q001"].text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"evidence": {"nowhere": 1}}, "'nowhere' is not in the corpus"),
        ({"evidence": {"a": 7}}, r"number 7 is not in 1\.\.6"),
        ({"id": "../x"}, "field id"),
        ({"text": "x" * 2001}, "field text"),
        ({"extra": 1}, "field extra"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_changes_nothing(
    tmp_path: Path, wrong: dict[str, Any], message: str
) -> None:
    draft = Draft.open(CORPUS, tmp_path / "set")
    before = (tmp_path / "set" / "annotations.json").read_bytes()

    with pytest.raises(InputError, match=message):
        draft.save(question(**wrong))
    assert before == (tmp_path / "set" / "annotations.json").read_bytes()


def test_a_full_disk_leaves_what_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = Draft.open(CORPUS, tmp_path / "set")
    draft.save(question())

    def full(*_: object) -> None:
        raise InputError("No space left on device")

    monkeypatch.setattr("hopbench.flows.annotation.draft.write_atomically", full)
    with pytest.raises(InputError, match="No space"):
        draft.save(question(id="q002"))
    assert ["q001"] == list(draft.questions)


def test_annotations_of_other_passages_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    Draft.open(CORPUS, tmp_path / "set").save(question())

    with pytest.raises(InputError, match="marks 1 passages that docs lacks, such as 'b'"):
        Draft.open(Benchmark("docs", [PASSAGES[0], PASSAGES[2]], ()), tmp_path / "set")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds something already"):
        Draft.open(CORPUS, tmp_path / "other")
    (tmp_path / "set" / "annotations.json").write_text('{"questions": 3}', encoding="utf-8")
    with pytest.raises(InputError, match="no file of annotations"):
        Draft.open(CORPUS, tmp_path / "set")


def test_the_data_set_s_own_questions_are_taken_over_with_their_alternatives(tmp_path: Path) -> None:
    sets = Gold.any_of([["a", "b"], ["a", "c"]])
    given = Benchmark("docs", PASSAGES, (BenchmarkQuestion("x1", "Which?", answer="five", gold=sets),))
    Draft.open(given, tmp_path / "set")

    (only,) = load_benchmark(str(tmp_path / "set")).questions

    assert set(map(frozenset, sets.sets)) == set(map(frozenset, only.gold.sets))
    odd = Benchmark("docs", PASSAGES, (BenchmarkQuestion("x1", "Which?", gold=Gold.any_of([["a", "b"], ["c"]])),))
    with pytest.raises(InputError, match="'x1' has 2 gold sets"):
        Draft.open(odd, tmp_path / "odd")


def test_progress_counts_hops_documents_and_the_detectable_difference(tmp_path: Path) -> None:
    draft = Draft.open(CORPUS, tmp_path / "set")
    draft.save(question())
    draft.save(question(id="q002", evidence={"c": 1}))

    progress = draft.progress()

    assert ({"1": 1, "2": 1}, 2, 2) == (progress["hops"], progress["documents"], progress["documents_in_all"])
    assert 0.9905 == round(progress["detectable"], 4)  # 2.8016 · 0.5 / √2
    json.dumps(progress)
