"""BM25 and the tagger in files that processes share: the same answers, and damaged files are made again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.retrieval.index.test_linker import NAMES, TITLES

from hopbench.retrieval.embedding.base import Vectors, unit_rows
from hopbench.retrieval.index import Linker
from hopbench.retrieval.index.cache import FORMAT, IndexCache
from hopbench.retrieval.index.linker import Uncapitalised
from hopbench.retrieval.search.approximate import ApproximateSearch
from hopbench.retrieval.search.exact import LexicalIndex
from hopbench.retrieval.support.cached_files import damaged
from hopbench.retrieval.text import Tagger

TEXTS = ["The river Thames flows.", "Rivers of London", "Ada Lovelace wrote", "", "the"]


@pytest.mark.parametrize("texts", [TEXTS, [], ["the", ""]], ids=["some", "none", "stop words"])
def test_what_was_kept_answers_as_what_was_computed(texts: list[str], tmp_path: Path) -> None:
    made: list[str] = []

    def lexical() -> LexicalIndex:
        made.append("lexical")
        return LexicalIndex(texts)

    def tagger() -> Tagger:
        made.append("tagger")
        return Tagger(texts)

    for _ in range(2):
        kept = IndexCache(tmp_path / "corpus")
        for question in ("Which river flows through London?", "nothing known", ""):
            assert LexicalIndex(texts).scores(question).tolist() == kept.lexical(lexical).scores(question).tolist()
        assert Tagger(texts).tags("Ada and the rivers of London", 2) == kept.tagger(tagger).tags(
            "Ada and the rivers of London", 2
        )
    assert ["lexical", "tagger"] == made


@pytest.mark.parametrize("file", ["tagger/tagger.json", "bm25/params.index.json", "bm25/indptr.csc.index.npy"])
def test_a_file_of_its_own_size_that_cannot_be_read_is_made_again(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = IndexCache(tmp_path)
    for _ in range(2):
        assert Tagger(TEXTS).tags("Ada", 2) == kept.tagger(lambda: Tagger(TEXTS)).tags("Ada", 2)
        assert (
            LexicalIndex(TEXTS).scores("Ada").tolist()
            == kept.lexical(lambda: LexicalIndex(TEXTS)).scores("Ada").tolist()
        )
        (tmp_path / file).write_bytes(b"x" * (tmp_path / file).stat().st_size)
    assert "it is made again" in capsys.readouterr().err


def test_what_other_code_computed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    IndexCache(tmp_path).tagger(lambda: Tagger(["of another version"]))
    monkeypatch.setattr("hopbench.retrieval.index.cache.FORMAT", FORMAT + 1)
    assert Tagger(TEXTS).tags("Ada", 2) == IndexCache(tmp_path).tagger(lambda: Tagger(TEXTS)).tags("Ada", 2)


@pytest.mark.parametrize("damage", ["cut", "gone", "no sizes"])
def test_what_does_not_read_as_it_was_written_is_made_again(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = IndexCache(tmp_path / "corpus")
    kept.lexical(lambda: LexicalIndex(TEXTS))
    file = tmp_path / "corpus" / "bm25" / ("sizes.json" if damage == "no sizes" else "data.csc.index.npy")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-3])
    else:
        file.unlink()

    again = kept.lexical(lambda: LexicalIndex(TEXTS))

    assert LexicalIndex(TEXTS).scores("river").tolist() == again.scores("river").tolist()
    assert "it is made again" in capsys.readouterr().err
    assert ["bm25"] == [place.name for place in (tmp_path / "corpus").iterdir()]


def test_a_changed_byte_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the graph of near chunks at once, since faiss would follow a wrong link out of its memory; else by doctor."""
    vectors = unit_rows(np.random.default_rng(1).standard_normal((200, 8)))
    kept = IndexCache(tmp_path)
    kept.lexical(lambda: LexicalIndex(TEXTS))
    found = kept.approximate(lambda: ApproximateSearch.fit(vectors)).top(vectors[:5], vectors, 3)
    assert [] == damaged(tmp_path)
    for name in ("near-chunks/hnsw.faiss", "bm25/data.csc.index.npy"):
        content = bytearray((tmp_path / name).read_bytes())
        content[-9] ^= 255
        (tmp_path / name).write_bytes(content)
    assert ["bm25", "near-chunks"] == [part.name for part in damaged(tmp_path)]

    again = kept.approximate(lambda: ApproximateSearch.fit(vectors)).top(vectors[:5], vectors, 3)

    assert [one.rows.tolist() for one in found] == [one.rows.tolist() for one in again]
    assert "near-chunks does not read as it was written: it is made again" in capsys.readouterr().err
    assert ["bm25"] == [part.name for part in damaged(tmp_path)]


def test_a_killed_write_leaves_nothing_that_would_be_read(tmp_path: Path) -> None:
    kept = IndexCache(tmp_path / "corpus")

    def killed() -> LexicalIndex:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.lexical(killed)

    assert [] == list((tmp_path / "corpus").iterdir())


def test_a_linker_that_was_kept_answers_as_the_one_that_was_computed_until_the_graph_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []
    small = Uncapitalised(frozenset({"e:bjork"}), frozenset({"e:wood"}))

    def linker() -> Linker:
        made.append("linker")
        return Linker(NAMES, TITLES, small)

    for stamp in ("first", "first", "second"):
        kept, fresh = IndexCache(tmp_path).linker(stamp, linker), Linker(NAMES, TITLES, small)
        for question in ("Did bjork see Ed Wood (film)?", "what is wood?", "Is Burbank, California large?"):
            assert fresh.links(question) == kept.links(question)
        assert list(fresh.name_of.items()) == list(kept.name_of.items())
        assert [fresh.names_of(entity) for entity, *_ in NAMES] == [kept.names_of(entity) for entity, *_ in NAMES]
        assert (fresh.read, fresh.resolve("Timothy Walter BURTON")) == (
            kept.read,
            kept.resolve("Timothy Walter BURTON"),
        )
    assert ["linker", "linker"] == made
    assert "" == capsys.readouterr().err


def test_vectors_of_names_are_mapped_until_the_graph_changes(tmp_path: Path) -> None:
    made: list[str] = []

    def vectors(stamp: str) -> Vectors:
        made.append(stamp)
        return np.full((2, 3), len(made), np.float32)

    read = {stamp: IndexCache(tmp_path).names(stamp, partial(vectors, stamp)).tolist() for stamp in ("a", "a", "b")}

    assert ["a", "b"] == made
    assert {"a": [[1.0] * 3] * 2, "b": [[2.0] * 3] * 2} == read
