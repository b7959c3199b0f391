"""`hopbench train hoprank` on the tiny benchmark, and what explain then says of its score."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.flows.cli.conftest import QUESTIONS, Hopbench

from hopbench.eval.files import read_table
from hopbench.retrieval.support.errors import IncompleteError


def test_weights_are_learned_written_and_used(hopbench: Hopbench, bench: Path, finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(bench, other)
    file = tmp_path / "weights.json"
    told = tmp_path / "triples.jsonl"
    told.write_text(
        json.dumps({"passage_id": "p01", "subject": "Ed Wood", "relation": "played by", "object": "Johnny Depp"}) + "\n"
    )
    held = tmp_path / "held.parquet"
    more = ("--triples", f"other={told}", "--passes", 1, "--held-out", held)
    done = hopbench("train", "hoprank", "--dataset", bench, "--dataset", other, "--folds", 2, "--out", file, *more)
    assert done.code == 0, done.err
    for setting in ("cross-validated", "left out"):
        assert re.search(rf"^{setting} +linear +tiny +wordllama +4 +\d\.\d{{3}} \[", done.out, re.MULTILINE)
    assert re.search(r"^cross-validated +linear +other with triples +wordllama +4 ", done.out, re.MULTILINE)
    # first 12; four kinds of 17 + 1, triples' of 22 + 1; one pass of 24 + 2
    assert re.search(rf"^133 numbers and 0 trees learned, written to {re.escape(str(file))}$", done.out, re.MULTILINE)
    content = json.loads(file.read_text(encoding="utf-8"))
    assert {"tiny", "other"} == set(content["provenance"]["learned_from"])
    assert {"other"} == set(content["provenance"]["triples"])
    assert 1 == len(content["passes"])
    ranks = read_table(held)
    assert {("cross-validated", 3), ("cross-validated apart", 3), ("left out", 3)} == {
        (setting, len(rows.groupby(["dataset", "triples"]))) for setting, rows in ranks.groupby("setting")
    }
    assert {"Beetlejuice"} < set(ranks["title"])

    label = f"hoprank[weights={file}]"
    told = hopbench("explain", "q1", "--dataset", bench, "--strategy", label, "--top", 3)
    assert (told.code, told.err) == (0, "")
    assert re.search(r"^bm25 +-?[\d.e-]+ +", told.out, re.MULTILINE)  # a row of features × weights
    assert re.search(r"^score +", told.out, re.MULTILINE)


def test_explain_quotes_the_mentions_of_a_path(hopbench: Hopbench, bench: Path, finished: Path) -> None:
    done = hopbench("explain", QUESTIONS[0][0], "--dataset", bench, "--strategy", "hoprank", "--top", 5)
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert "[Ed Wood (film)] “It stars [Johnny Depp] as Ed Wood.”" in text


def test_what_cannot_be_written_or_learned_from_is_refused_before_any_graph_is_built(
    hopbench: Hopbench, bench: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    given = ["--dataset", bench, "--folds", 2, "--out", tmp_path]
    folder = hopbench("train", "hoprank", *given, HOPBENCH_HOME=str(home))
    assert (folder.code, f"cannot write {tmp_path}: it is a folder" in folder.err) == (2, True)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(bench / name, bare / name)
    both = ["--dataset", bench, "--dataset", bare]
    one = hopbench("train", "hoprank", *given[:4], "--out", tmp_path / "a", "--held-out", tmp_path / "x/../a")
    assert (one.code, "are one file: name two" in one.err) == (2, True)
    copied = shutil.copytree(bench, tmp_path / "elsewhere" / "tiny")
    named = hopbench("train", "hoprank", *given[:2], "--dataset", copied)
    assert (named.code, "two have one name, which must tell them apart" in named.err) == (2, True)
    corpus = copied / "corpus.jsonl"
    for flag in ("--out", "--held-out"):
        data = hopbench("train", "hoprank", "--dataset", copied, *given[2:4], flag, corpus, HOPBENCH_HOME=str(home))
        assert (data.code, "it is there already, among what is learned from" in data.err) == (2, True)
    assert corpus.read_bytes() == (bench / "corpus.jsonl").read_bytes()
    goldless = hopbench("train", "hoprank", *both, HOPBENCH_HOME=str(home))
    assert (goldless.code, "bare has no question with gold passages" in goldless.err) == (2, True)
    assert not list(home.rglob("graphs/*"))
    kept = tmp_path / "weights.json"
    kept.write_text("{}", encoding="utf-8")
    assert 2 == hopbench("train", "hoprank", "--dataset", bare, "--out", kept).code
    assert "{}" == kept.read_text(encoding="utf-8")


def test_a_run_refuses_weights_before_any_graph_is_built(hopbench: Hopbench, bench: Path, tmp_path: Path) -> None:
    foreign = ["--strategies", "hoprank", "--set", "hoprank.weights=nowhere.json", "--out", tmp_path / "out"]
    refused = hopbench("run", "--dataset", bench, *foreign, "--no-prefect", HOPBENCH_HOME=str(tmp_path / "home"))
    assert (refused.code, "hoprank.weights = 'nowhere.json' cannot be read" in refused.err) == (2, True)
    assert not (tmp_path / "home").exists()


def test_bad_input_is_refused(hopbench: Hopbench, bench: Path, tmp_path: Path) -> None:
    same = hopbench("train", "hoprank", "--dataset", bench, "--dataset", bench)
    assert (same.code, "each once" in same.err) == (2, True)
    figures = hopbench("train", "hoprank", "--dataset", bench, "--folds", 0, "--rounds", 0)
    assert (figures.code, "figures alone; --out FILE" in figures.out) == (0, True)
    assert "warning: nothing was tested on questions not learned from" in figures.err
    unknown = hopbench("train", "hoprank", "--dataset", bench, "--folds", 2, "--without", "covrage")
    assert unknown.code == 2
    assert "coverage" in unknown.err
    for given, reason in (
        (f"other={bench}/queries.jsonl", "tiny"),
        ("tiny", "NAME=FILE"),
        ("tiny=nowhere", "NAME=FILE"),
    ):
        refused = hopbench("train", "hoprank", "--dataset", bench, "--triples", given)
        assert (refused.code, reason in refused.err) == (2, True)
    twice = hopbench("train", "hoprank", "--dataset", bench, "--embedder", "wordllama", "--embedder", "wordllama")
    assert (twice.code, "name each once, wordllama is twice for tiny" in twice.err) == (2, True)
    for given, reason in (("wordllama=tony", "data set under --embedder 'tony'"), ("minilm=tony,tiny", "'tony'")):
        elsewhere = hopbench("train", "hoprank", "--dataset", bench, "--embedder", given)
        assert (elsewhere.code, reason in elsewhere.err) == (2, True)
    shutil.copytree(bench, other := tmp_path / "other")
    without = hopbench("train", "hoprank", "--dataset", bench, "--dataset", other, "--embedder", "wordllama=tiny")
    assert (without.code, "none for other" in without.err) == (2, True)
    many = hopbench("train", "hoprank", "--dataset", bench, "--folds", 9)
    assert (many.code, "--folds 9: wanted is 2 to 4, the number of questions, or 0" in many.err) == (2, True)
    (tmp_path / "t.jsonl").touch()
    two = hopbench("train", "hoprank", "--dataset", bench, *("--triples", f"tiny={tmp_path / 't.jsonl'}") * 2)
    assert (two.code, "tiny has two files: name one" in two.err) == (2, True)
    missing = hopbench("train", "hoprank", "--dataset", tmp_path / "nowhere")
    assert missing.code == 2
    foreign = hopbench("explain", "q1", "--dataset", bench, "--strategy", "hoprank[weights=nowhere.json]")
    assert (foreign.code, "nowhere.json" in foreign.err) == (2, True)


def test_figures_and_weights_are_not_lost_with_a_file_that_cannot_be_written(
    hopbench: Hopbench, bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise IncompleteError("the disk is full")

    monkeypatch.setattr("hopbench.flows.studies.training.write_table", full)
    files = ("--held-out", tmp_path / "held.parquet", "--out", tmp_path / "weights.json")
    done = hopbench("train", "hoprank", "--dataset", bench, "--folds", 2, "--rounds", 0, *files)

    assert (4, True) == (done.code, "the disk is full" in done.err)
    assert re.search(r"^cross-validated +linear +tiny ", done.out, re.MULTILINE)
    assert (tmp_path / "weights.json").is_file()
