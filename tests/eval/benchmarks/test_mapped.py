"""Passages kept as mapped columns: the same benchmark, made again where the file or the columns have changed."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks import passages as mapped
from hopbench.eval.types import Benchmark
from hopbench.retrieval.corpus import MappedPassages
from hopbench.retrieval.support.cached_files import damaged
from hopbench.retrieval.support.errors import IncompleteError, InputError

ROWS = [
    {"_id": "b", "title": "Babbage", "text": "Babbage built engines."},
    {"_id": "a", "title": "Ada", "text": "Ada wrote notes.", "document_name": "notes.pdf", "page_number": 7},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tiny"
    (path / "qrels").mkdir(parents=True)
    write(path, ROWS)
    (path / "queries.jsonl").write_text('{"_id": "q1", "text": "Who wrote notes?"}\n')
    (path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    return path


def write(folder: Path, rows: list[dict[str, object]]) -> None:
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def same(one: Benchmark, other: Benchmark) -> bool:
    return (list(one.passages), one.questions, one.digest, one.titles, one.sources) == (
        list(other.passages),
        other.questions,
        other.digest,
        other.titles,
        other.sources,
    )


def test_the_benchmark_is_the_same_and_its_corpus_read_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, first = load_benchmark(folder), load_benchmark(folder, mapped=tmp_path / "kept")
    monkeypatch.setattr(mapped, "rows_of", lambda _: pytest.fail("it is kept"))
    again = load_benchmark(folder, mapped=tmp_path / "kept")
    assert isinstance(again.passages, MappedPassages)
    assert same(plain, first)
    assert same(plain, again)
    assert ["Ada wrote notes.", 7] == [again.by_id["a"].text, again.sources["a"].page_number]
    assert "nobody" not in again.by_id


def test_a_changed_file_is_read_again(folder: Path, tmp_path: Path) -> None:
    load_benchmark(folder, mapped=tmp_path / "kept")
    write(folder, [{**ROWS[0], "text": "Babbage drew engines."}, ROWS[1]])
    assert same(load_benchmark(folder), load_benchmark(folder, mapped=tmp_path / "kept"))


def test_what_is_refused_is_refused_with_the_same_words_and_nothing_is_kept(folder: Path, tmp_path: Path) -> None:
    write(folder, [*ROWS, {"_id": "b", "text": "again"}])
    with pytest.raises(InputError) as plain:
        load_benchmark(folder)
    with pytest.raises(InputError) as kept:
        load_benchmark(folder, mapped=tmp_path / "kept")
    assert str(plain.value) == str(kept.value)
    assert "duplicate passage '_id' 'b', first used in line 1" in str(kept.value)
    assert [] == list((tmp_path / "kept").iterdir())


def test_a_file_that_grows_while_it_is_read_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = iter(["before", "after"])
    monkeypatch.setattr(mapped, "_content_digest", lambda _: next(contents))
    with pytest.raises(InputError, match="was written to while it was read: run the command again"):
        load_benchmark(folder, mapped=tmp_path / "kept")
    assert [] == list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize(
    ("number", "kind", "told"),
    [(errno.ENOSPC, IncompleteError, "the disk is full for"), (errno.EACCES, InputError, "cannot write")],
)
def test_a_folder_that_cannot_be_written_is_named_and_not_the_corpus(
    number: int, kind: type[Exception], told: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(passages: object, place: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(mapped, "write_passages", refused)
    with pytest.raises(kind, match=f"{told} {tmp_path / 'kept'}"):
        load_benchmark(folder, mapped=tmp_path / "kept")
    assert [] == list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("name", ["text.utf8.bin", "id.ends.bin", "order.npy"])
def test_a_changed_byte_is_found_at_once(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_benchmark(folder, mapped=tmp_path / "kept")
    (kept,) = (tmp_path / "kept").iterdir()
    content = bytearray((kept / name).read_bytes())
    content[-1] ^= 1
    (kept / name).write_bytes(content)
    assert [kept] == damaged(tmp_path / "kept")
    assert same(load_benchmark(folder), load_benchmark(folder, mapped=tmp_path / "kept"))
    assert "it is made again" in capsys.readouterr().err
    assert [] == damaged(tmp_path / "kept")
