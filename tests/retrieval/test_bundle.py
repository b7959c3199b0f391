"""A retriever in a folder answers as the one it was made from, and refuses to answer otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flows.api.conftest import corpus, tiny

import hopbench
from hopbench.retrieval.bundle import MANIFEST, write_manifest
from hopbench.retrieval.support.errors import HopBenchError, InputError

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


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("max_tokens", -1, "max_tokens = -1, a whole number, 1..1,000,000 is wanted"),
        ("max_tokens", True, "max_tokens = True, a whole number"),
        ("max_tokens", "1200", "max_tokens = '1200', a whole number"),
        ("max_tokens", ..., "max_tokens is missing, a whole number"),
        ("passages", 1.5, "passages = 1.5, a whole number, 0 or more is wanted"),
        ("passages", 11, "passages = 11, passages.parquet has 12"),
        ("label", "", "label = '', the retriever's label is wanted"),
        ("label", 3, "label = 3, the retriever's label"),
        ("hopbench", None, "hopbench = None, the version of hopbench that exported it is wanted"),
        ("dataset", ..., "dataset is missing, the data set's name is wanted"),
        ("files", [], "files = [], an object with the SHA-256 of each file is wanted"),
        ("files.passages.parquet", 3, "files.passages.parquet = 3, an object with the SHA-256 of each file is wanted"),
        ("plugins", {"acme": 1}, "plugins.acme = 1, an object with plug-ins' packages"),
        ("strategy", "pagerank", "strategy = 'pagerank', an object with name, parameters and identity is wanted"),
        ("strategy.name", ..., "strategy.name is missing, a label, such as pagerank is wanted"),
        (
            "strategy.parameters",
            [1],
            "strategy.parameters = [1], an object with the strategy's parameters is wanted",
        ),
        ("strategy.identity", ..., "strategy.identity is missing, the strategy's identity is wanted"),
        ("embedder", None, "embedder = None, an object with spec and name is wanted"),
        ("embedder.spec", ..., "embedder.spec is missing, an embedder, such as wordllama is wanted"),
        ("embedder.name", 1, "embedder.name = 1, the embedder's name with its version is wanted"),
        (
            "graph.namespace",
            "../x",
            "graph.namespace = '../x', the name of the graph's file without its ending",
        ),
        ("graph.namespace", "other", "graph does not hold the graph other"),
        ("graph.fingerprint", "0" * 64, "graph does not hold the graph tiny-"),
        ("graph.fingerprint", ..., "graph.fingerprint is missing, a SHA-256 in hexadecimal is wanted"),
    ],
)
def test_a_field_of_the_manifest_is_named_with_what_is_wanted(
    taken: Path, place: str, value: object, message: str
) -> None:
    with pytest.raises(InputError, match="export the retriever again") as refused:
        hopbench.load(mutated(taken, place.split(".", 1), value))
    assert message in str(refused.value)
    assert str(taken) in str(refused.value)


def mutated(taken: Path, place: Sequence[str | int], value: object) -> Path:
    """The folder with another value in one place of its manifest, whose checksum fits; `...` takes it away."""
    manifest = json.loads((taken / MANIFEST).read_text(encoding="utf-8"))
    part = manifest
    for name in place[:-1]:
        part = part[name]
    if value is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    write_manifest(taken, manifest)
    return taken


def places(part: object) -> Iterator[tuple[str, ...]]:
    """The places of a manifest that can have another value."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from ((name, *rest) for rest in [(), *places(value)])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def exported(corpus: hopbench.Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.export(tmp_path_factory.mktemp("exported") / "taken", "hoprank")


@given(data=st.data())
def test_whatever_a_manifest_says_it_is_opened_or_refused(exported: Path, data: st.DataObject) -> None:
    whole = (exported / MANIFEST).read_text(encoding="utf-8")
    place = data.draw(st.sampled_from([each for each in places(json.loads(whole)) if each != ("sha256",)]))
    try:
        mutated(exported, place, data.draw(st.just(...) | JSON_VALUES))
        with suppress(HopBenchError):
            hopbench.load(exported)("Who founded Geffen Company?")
    finally:
        (exported / MANIFEST).write_text(whole, encoding="utf-8")


def test_a_link_is_followed_and_stays(corpus: hopbench.Corpus, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("exports/2026-11")
    for label in ("bm25", "vector"):  # the second replaces the first
        assert tmp_path / "latest" == corpus.export(tmp_path / "latest", label)
        assert label == hopbench.load(tmp_path / "exports" / "2026-11").label
    assert (tmp_path / "latest").is_symlink()
    assert ["2026-11"] == [entry.name for entry in (tmp_path / "exports").iterdir()]
