"""The digest of a corpus, noted in the home by what the corpus holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hopbench.flows.settings import graph_options
from hopbench.flows.settings.graph_options import known_digest
from hopbench.retrieval.graph.construction import plan
from hopbench.retrieval.graph.construction.plan import corpus_digest
from hopbench.retrieval.types import Passage

PASSAGES = [Passage("a", "One", "text one"), Passage("b", "", "text two"), Passage("c", "Three", "")]


@pytest.fixture(autouse=True)
def _small_corpora_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_options, "MIN_CACHED_PASSAGES", 2)


def test_a_corpus_seen_before_is_not_digested_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = corpus_digest(PASSAGES)
    assert wanted == known_digest(PASSAGES, tmp_path)
    monkeypatch.setattr(plan, "corpus_digest", lambda _: pytest.fail("it is noted"))
    assert wanted == known_digest(PASSAGES, tmp_path)
    assert "" == known_digest(PASSAGES[:2], tmp_path)  # few: whoever wants it computes it


@pytest.mark.parametrize("column", ["id", "title", "text"])
def test_whatever_changes_in_a_corpus_changes_its_digest(column: str, tmp_path: Path) -> None:
    known_digest(PASSAGES, tmp_path)
    moved = [replace(PASSAGES[0], **{column: "an"}), replace(PASSAGES[1], **{column: "other"}), PASSAGES[2]]
    again = [replace(PASSAGES[0], **{column: "ano"}), replace(PASSAGES[1], **{column: "ther"}), PASSAGES[2]]
    found = {known_digest(passages, tmp_path) for passages in (PASSAGES, moved, again)}
    assert {corpus_digest(passages) for passages in (PASSAGES, moved, again)} == found
    assert 3 == len(found)


def test_a_damaged_note_is_written_again(tmp_path: Path) -> None:
    wanted = known_digest(PASSAGES, tmp_path)
    (note,) = (tmp_path / "corpora").iterdir()
    note.write_bytes(b"\xff not a digest")
    assert wanted == known_digest(PASSAGES, tmp_path)
    assert wanted == note.read_text(encoding="ascii")
