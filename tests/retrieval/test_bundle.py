"""A retriever in a folder answers as the one it was made from, and refuses to answer otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.flows.api.conftest import corpus, tiny

import hopbench
from hopbench.retrieval.bundle import MANIFEST, write_manifest
from hopbench.retrieval.support.errors import InputError

__all__ = ["corpus", "tiny"]  # fixtures

LABELS = ("bm25", "hoprank", "pagerank[restart=0.3]", "kg2rag:tuned", "dual_level", "activation")


@pytest.mark.parametrize("label", LABELS)
def test_what_is_loaded_answers_to_the_bit(corpus: hopbench.Corpus, tmp_path: Path, label: str) -> None:
    loaded = hopbench.load(corpus.export(tmp_path / "taken", label))
    assert label == loaded.label
    for question in corpus.questions.values():
        expected, found = corpus.retrieve(question, label, k=12), loaded(question, k=12)
        assert [(p.id, p.score, p.text, p.path, p.source) for p in expected] == [
            (p.id, p.score, p.text, p.path, p.source) for p in found
        ]


@pytest.fixture
def taken(corpus: hopbench.Corpus, tmp_path: Path) -> Path:
    return corpus.export(tmp_path / "taken", "pagerank")


def test_a_folder_moves_and_may_be_read_only(taken: Path, tmp_path: Path) -> None:
    moved = Path(shutil.move(taken, tmp_path / "elsewhere"))
    for file in moved.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    before = {file: file.stat().st_mtime_ns for file in moved.rglob("*")}
    assert hopbench.load(moved)("Who founded Geffen Company?", k=1).ids
    assert before == {file: file.stat().st_mtime_ns for file in moved.rglob("*")}


def test_exporting_again_replaces_an_export_and_nothing_else(corpus: hopbench.Corpus, taken: Path) -> None:
    corpus.export(taken, "bm25")
    assert "bm25" == hopbench.load(taken).label
    other = taken.parent / "mine"
    other.mkdir()
    (other / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="mine is there and holds no exported retriever: name another --out"):
        corpus.export(other, "bm25")
    assert "mine" == (other / "notes.txt").read_text(encoding="utf-8")
    assert {"taken", "mine"} == {entry.name for entry in taken.parent.iterdir()}  # no temporary folder is left


@pytest.mark.parametrize("file", ["passages.parquet", "vectors/vectors.npy", "vectors/keys.txt"])
def test_a_damaged_or_missing_file_is_named(taken: Path, file: str) -> None:
    content = bytearray((taken / file).read_bytes())
    content[len(content) // 2] ^= 1
    (taken / file).write_bytes(content)
    with pytest.raises(InputError, match=f"{file} is damaged: export the retriever again"):
        hopbench.load(taken)
    (taken / file).unlink()
    with pytest.raises(InputError, match=f"{file} is missing: export the retriever again"):
        hopbench.load(taken)


def changed(taken: Path, **parts: object) -> Path:
    manifest = json.loads((taken / MANIFEST).read_text(encoding="utf-8"))
    write_manifest(taken, {**manifest, **parts})
    return taken


def test_another_strategy_or_embedder_or_schema_is_refused(taken: Path) -> None:
    manifest = json.loads((taken / MANIFEST).read_text(encoding="utf-8"))
    strategy = manifest["strategy"]
    for parts, message in (
        ({"strategy": {**strategy, "name": "page"}}, "unknown strategy 'page'"),
        ({"strategy": {**strategy, "parameters": {"gone": 1}}}, "unknown parameter of pagerank 'gone'"),
        ({"strategy": {**strategy, "identity": {"restart": 1}}}, "pagerank has other learned numbers here"),
        ({"strategy": strategy, "embedder": {"spec": "wordllama", "name": "wordllama@0"}}, "embedder wordllama@0"),
        ({"schema": "hopbench.retriever/9"}, "schema 'hopbench.retriever/9', this version reads"),
    ):
        with pytest.raises(InputError, match=message):
            hopbench.load(changed(taken, **parts))


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"hopbench\.json does not exist: name a folder that hopbench export wrote"):
        hopbench.load(tmp_path)
    (tmp_path / MANIFEST).write_text("[1,", encoding="utf-8")
    with pytest.raises(InputError, match=r"hopbench\.json is damaged"):
        hopbench.load(tmp_path)


def test_learned_weights_travel(corpus: hopbench.Corpus, tmp_path: Path) -> None:
    from importlib.resources import files

    own = tmp_path / "own.json"
    own.write_text(
        (files("hopbench.retrieval.strategies.hoprank") / "weights.json").read_text(encoding="utf-8"), encoding="utf-8"
    )
    folder = corpus.export(tmp_path / "taken", f"hoprank[weights={own}]")
    own.unlink()
    assert hopbench.load(folder)("Who founded Geffen Company?").ids


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "[" * 100_000, '{"schema": "hopbench.retriever/1"}'],
    ids=["", "list", "null", "deep", "bare"],
)
def test_a_damaged_manifest_is_named(taken: Path, text: str) -> None:
    (taken / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"{MANIFEST} is (damaged|not as it was written).*export the retriever again"):
        hopbench.load(taken)


@pytest.mark.parametrize("name", ["files", "strategy", "embedder", "graph", "max_tokens", "label"])
def test_a_manifest_that_was_cut_or_edited_is_refused_before_anything_is_opened(taken: Path, name: str) -> None:
    manifest = json.loads((taken / MANIFEST).read_text(encoding="utf-8"))
    for edited in ({**manifest, name: None}, {key: value for key, value in manifest.items() if key != name}):
        (taken / MANIFEST).write_text(json.dumps(edited), encoding="utf-8")
        with pytest.raises(InputError, match=f"{MANIFEST} is not as it was written: its checksum does not fit"):
            hopbench.load(taken)


def test_a_link_is_followed_and_stays(corpus: hopbench.Corpus, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("exports/2026-11")
    for label in ("bm25", "vector"):  # the second replaces the first
        assert tmp_path / "latest" == corpus.export(tmp_path / "latest", label)
        assert label == hopbench.load(tmp_path / "exports" / "2026-11").label
    assert (tmp_path / "latest").is_symlink()
    assert ["2026-11"] == [entry.name for entry in (tmp_path / "exports").iterdir()]
