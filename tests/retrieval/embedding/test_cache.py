"""The cache: nothing is embedded twice, and no crash, race or damage gives a wrong vector."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hash_embedder import HashEmbedder
from tests.support.places import ROOT

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.embedding.cache import CachedEmbedder, EmbeddingCache, VectorTable, text_key
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.sqlite_files import seal, seal_of_bytes


def test_nothing_is_embedded_twice(tmp_path: Path) -> None:
    inner = HashEmbedder()
    cached = CachedEmbedder(inner, EmbeddingCache(tmp_path))
    first = cached.embed(["a", "b", "a", ""])
    second = cached.embed(["b", "c", "a"])
    assert inner.asked == ["a", "b", "", "c"]
    np.testing.assert_array_equal(first[[1, 0]], second[[0, 2]])
    np.testing.assert_array_equal(first, HashEmbedder().embed(["a", "b", "a", ""]))
    fresh = HashEmbedder()
    CachedEmbedder(fresh, EmbeddingCache(tmp_path)).embed(["c", "b", "a", ""])
    assert fresh.asked == []


def test_models_and_versions_do_not_share_vectors(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    one, two = HashEmbedder("hash@1"), HashEmbedder("hash@2", size=4)
    assert CachedEmbedder(one, cache).embed(["a"]).shape == (1, 8)
    assert CachedEmbedder(two, cache).embed(["a"]).shape == (1, 4)
    assert cache.file("a/b:c") != cache.file("a-b:c")
    assert cache.file("openai:x@host:80/v1").parent == tmp_path


def test_more_texts_than_a_batch_keep_their_order(tmp_path: Path) -> None:
    texts = [f"text {i % 1500}" for i in range(2000)]
    cached = CachedEmbedder(HashEmbedder(), EmbeddingCache(tmp_path))
    expected = HashEmbedder().embed(texts)
    for _ in range(2):
        assert cached.embed(texts).tobytes() == expected.tobytes()


def test_many_short_texts_of_a_quick_embedder_are_computed(tmp_path: Path) -> None:
    cache, short, long = EmbeddingCache(tmp_path), [f"text {i % 1500}" for i in range(20_000)], ["long " * 20] * 1024
    inner = HashEmbedder()
    quick = CachedEmbedder(inner, cache, quick=True)
    assert quick.embed(short).tobytes() == HashEmbedder().embed(short).tobytes()
    assert (inner.asked, [*tmp_path.iterdir()]) == (short, [])
    for few in (short[:1023], long):  # these are kept
        quick.embed(few)
        again = HashEmbedder()
        assert CachedEmbedder(again, cache, quick=True).embed(few).tobytes() == HashEmbedder().embed(few).tobytes()
        assert again.asked == []


def test_wordllama_gives_the_same_bytes_with_and_without_its_cache(tmp_path: Path) -> None:
    texts = [f"Ed Wood {i % 1100} born in Kingsville{' ' * (i % 3)}" for i in range(2000)] + ["", "\ud800"]
    embedder, expected = get_embedder("wordllama", EmbeddingCache(tmp_path)), get_embedder("wordllama").embed(texts)
    np.testing.assert_array_equal(embedder.embed(texts), expected)
    assert [*tmp_path.iterdir()] == []
    stored = [embedder.embed(texts[start : start + 500]) for start in range(0, len(texts), 500)]
    np.testing.assert_array_equal(np.concatenate(stored), expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.text(alphabet=st.characters(codec=None), max_size=5), max_size=6), max_size=4))
def test_cached_equals_uncached_for_any_calls(calls: list[list[str]]) -> None:
    inner = HashEmbedder()
    with TemporaryDirectory() as folder:
        cached = CachedEmbedder(inner, EmbeddingCache(Path(folder)))
        for texts in calls:
            assert cached.embed(texts).tobytes() == HashEmbedder().embed(texts).tobytes()
            assert cached.embed(texts).shape == (len(texts), 8)
    assert len(inner.asked) == len(set(inner.asked))


def test_wordllama_is_not_loaded_for_what_the_cache_knows(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    expected = get_embedder("wordllama").embed(["Ed Wood", ""])
    get_embedder("wordllama", cache).embed(["Ed Wood", ""])
    again = get_embedder("wordllama", cache)
    np.testing.assert_array_equal(again.embed(["Ed Wood", ""]), expected)
    assert isinstance(again, CachedEmbedder)
    assert "_model" not in vars(again.inner)
    assert (again.name, again.dimension) == (get_embedder("wordllama").name, 256)


def test_dimension_is_remembered_without_the_model(tmp_path: Path) -> None:
    class Unreachable(HashEmbedder):
        @property
        def dimension(self) -> int:
            raise InputError("no endpoint")

    cache = EmbeddingCache(tmp_path)
    CachedEmbedder(HashEmbedder(), cache).embed(["a"])
    offline = CachedEmbedder(Unreachable(), cache)
    assert (offline.dimension, offline.embed([]).shape) == (8, (0, 8))


def test_another_length_under_the_same_name_is_refused(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    CachedEmbedder(HashEmbedder(), cache).embed(["a"])
    with pytest.raises(InputError, match="holds vectors of 8 dimensions, the model now gives 4"):
        CachedEmbedder(HashEmbedder(size=4), cache).embed(["b"])
    assert CachedEmbedder(HashEmbedder(), cache).embed(["b"]).shape == (1, 8)


def test_the_first_stored_answer_stays(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path).open("m@1") as table:
        table.write([text_key("a")], np.ones((1, 2), np.float32))
        table.write([text_key("a")], np.zeros((1, 2), np.float32))
        vectors, found = table.read([text_key("a"), text_key("b")])
    assert (vectors.tolist(), found.tolist()) == ([[1, 1], [0, 0]], [True, False])


def test_a_model_that_fails_midway_keeps_what_it_did_and_its_own_error(tmp_path: Path) -> None:
    class Failing(HashEmbedder):
        def embed(self, texts: list[str]) -> Vectors:
            if self.asked:
                raise OSError("model file gone")
            return super().embed(texts)

    texts = [f"text {i}" for i in range(300)]
    cache = EmbeddingCache(tmp_path)
    with pytest.raises(OSError, match=r"^model file gone$"):
        CachedEmbedder(Failing(), cache).embed(texts)
    rest = HashEmbedder()
    CachedEmbedder(rest, cache).embed(texts)
    assert rest.asked == texts[256:]


@pytest.mark.parametrize(
    ("short", "sizes"), [(0.0, [256, 256, 256, 232]), (60.0, [256, 512, 232])], ids=["slow", "fast"]
)
def test_a_fast_model_is_asked_for_more_between_two_commits(
    short: float, sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopbench.retrieval.embedding.cache.SHORT_SECONDS", short)
    asked: list[int] = []

    class Counting(HashEmbedder):
        def embed(self, texts: list[str]) -> Vectors:
            asked.append(len(texts))
            return super().embed(texts)

    texts = [f"text {i}" for i in range(1000)]
    found = CachedEmbedder(Counting(), EmbeddingCache(tmp_path)).embed(texts)

    assert sizes == asked
    np.testing.assert_array_equal(found, HashEmbedder().embed(texts))


def test_a_damaged_file_is_set_aside_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = EmbeddingCache(tmp_path)
    cache.file("hash@1").write_bytes(b"not a database" * 100)
    assert (1, 8) == CachedEmbedder(HashEmbedder(), cache).embed(["a"]).shape
    (said,) = capsys.readouterr().err.splitlines()
    assert "hash-1-" in said
    assert "was damaged (file is not a database): 0 rows that read were kept" in said
    assert [b"not a database" * 100] == [file.read_bytes() for file in tmp_path.glob("*.damaged-*")]


@pytest.mark.parametrize("change", ["vector = x'00'", "vector = CAST(x'41' || substr(vector, 2) AS BLOB)", "seal = 0"])
def test_a_changed_vector_is_told_and_computed_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    model = HashEmbedder()
    cached = CachedEmbedder(model, EmbeddingCache(tmp_path))
    whole = cached.embed(["a", "b"])
    with sqlite3.connect(cached.cache.file("hash@1")) as connection:
        connection.execute(f"UPDATE vectors SET {change} WHERE key = ?", (text_key("b"),))
    connection.close()
    np.testing.assert_array_equal(whole, cached.embed(["a", "b"]))
    assert ["a", "b", "b"] == model.asked
    assert "1 damaged vectors are computed again" in capsys.readouterr().err
    np.testing.assert_array_equal(whole, cached.embed(["a", "b"]))
    assert "" == capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"file.*embeddings.*Make sure that the folder can be written"):
        CachedEmbedder(HashEmbedder(), EmbeddingCache(tmp_path / "file" / "embeddings")).embed(["a"])


def test_a_first_vector_stored_while_reading_is_not_half_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Between the reader's look at the dimension and its look at the vectors another process stores the first one.
    cache = EmbeddingCache(tmp_path)
    with cache.open("m@1") as reader, cache.open("m@1") as writer:
        dimension = VectorTable.dimension

        def then_write(table: VectorTable) -> int | None:
            seen = dimension(table)
            if table is reader:
                writer.write([text_key("a")], np.ones((1, 2), np.float32))
            return seen

        monkeypatch.setattr(VectorTable, "dimension", then_write)
        before, known_before = reader.read([text_key("a")])
        after, known_after = reader.read([text_key("a")])
    assert (before.shape, known_before.tolist()) == ((1, 0), [False])
    assert (after.tolist(), known_after.tolist()) == ([[1, 1]], [True])


def test_threads_share_one_embedder(tmp_path: Path) -> None:
    cached = CachedEmbedder(HashEmbedder(), EmbeddingCache(tmp_path))
    calls = [[f"text {i}" for i in range(start, start + 100)] for start in range(0, 400, 50)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(cached.embed, calls))
    for texts, vectors in zip(calls, answers, strict=True):
        np.testing.assert_array_equal(vectors, HashEmbedder().embed(texts))


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.support.hash_embedder import HashEmbedder
from hopbench.retrieval.embedding.cache import CachedEmbedder, EmbeddingCache
cached = CachedEmbedder(HashEmbedder(), EmbeddingCache(Path(sys.argv[2])))
for start in range(int(sys.argv[3]), int(sys.argv[4]), 50):
    cached.embed([f"text {i}" for i in range(start, start + 50)])
    print(start, flush=True)
"""


def start_writer(folder: Path, first: int, last: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(ROOT), str(folder), str(first), str(last)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    # They meet at a new file and overlap: 0-1000, 500-1500, 1000-2000.
    writers = [start_writer(tmp_path, first, first + 1000) for first in (0, 500, 1000)]
    for writer in writers:
        writer.communicate(timeout=120)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    texts = [f"text {i}" for i in range(2000)]
    inner = HashEmbedder()
    np.testing.assert_array_equal(CachedEmbedder(inner, EmbeddingCache(tmp_path)).embed(texts), inner.embed(texts))
    assert inner.asked == texts  # only by the comparison: the cache had them all


@pytest.mark.parametrize("milliseconds", [0, 3, 17])
def test_kill_9_loses_only_the_batch_in_flight(tmp_path: Path, milliseconds: int) -> None:
    writer = start_writer(tmp_path, 0, 1_000_000)
    assert writer.stdout is not None
    with writer.stdout:
        for _ in range(3):
            writer.stdout.readline()
        time.sleep(milliseconds / 1000)
        writer.send_signal(signal.SIGKILL)
        done = 150 + 50 * len(writer.stdout.readlines())
    assert writer.wait(timeout=60) == -signal.SIGKILL
    texts = [f"text {i}" for i in range(done + 100)]
    inner = HashEmbedder()
    vectors = CachedEmbedder(inner, EmbeddingCache(tmp_path)).embed(texts)
    # What the writer reported is there; it may have stored one more batch without having reported it.
    assert inner.asked in (texts[done:], texts[done + 50 :])
    np.testing.assert_array_equal(vectors, HashEmbedder().embed(texts))


def test_a_file_killed_before_its_tables_is_finished(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    cache.file("hash@1").touch()
    assert CachedEmbedder(HashEmbedder(), cache).embed(["a"]).shape == (1, 8)


@given(first=st.binary(), second=st.binary())
def test_the_seal_of_bytes_is_that_of_any_values(first: bytes, second: bytes) -> None:
    assert seal((first, second)) == seal_of_bytes(first, second)
