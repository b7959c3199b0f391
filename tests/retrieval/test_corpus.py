"""Mapped passages and chunks are those of which they were written, whatever asks for them."""

from __future__ import annotations

import hashlib
import json
import operator
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.corpus import MappedChunks, MappedPassages, chunk_passages, ids_of, write_passages
from hopbench.retrieval.graph.construction.plan import corpus_digest
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage, Source

TEXTS = st.lists(st.sampled_from(["One two.", "Größe and 長さ.", "A b c d e f g h.", ""]), max_size=5).map(" ".join)
SOURCES = st.sampled_from([Source(), Source(3, "d1", "Manual.pdf"), Source("iv"), Source(None, "", "a.md")])
PASSAGES = st.lists(
    st.builds(Passage, st.sampled_from(["a", "B", "é", "10", "9", "a#0", "a#1", "𝔞"]), TEXTS, TEXTS, SOURCES),
    max_size=8,
    unique_by=lambda one: one.id,
)


def mapped(passages: Sequence[Passage], folder: Path) -> MappedPassages:
    write_passages(passages, folder)
    return MappedPassages(folder)


@given(PASSAGES, st.integers(1, 12))
def test_passages_and_chunks_are_the_same_as_in_memory(passages: list[Passage], max_tokens: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = mapped(passages, Path(folder))
        assert passages == list(found) == [found[row] for row in range(len(found))]
        assert [one.id for one in passages] == ids_of(found)
        assert [one.title for one in passages] == found.titles
        assert any(one.source for one in passages) == found.sourced
        assert passages[1:5:2] == found[1:5:2]
        assert passages[::-1] == found[::-1]
        assert corpus_digest(passages) == corpus_digest(found)
        try:
            chunks = chunk_passages(passages, max_tokens)
        except InputError as error:
            with pytest.raises(InputError, match=str(error)):
                chunk_passages(found, max_tokens)
            return
        again = chunk_passages(found, max_tokens)
        assert chunks == list(again) == [again[row] for row in range(len(again))] == again[:]
        assert [one.id for one in chunks] == ids_of(again)
        some = np.arange(len(chunks))[::-2]
        assert isinstance(again, MappedChunks)
        assert [chunks[row].id for row in some] == again.some_ids(some)


def test_rows_count_from_the_end_too_and_must_exist(tmp_path: Path) -> None:
    found = mapped([Passage("b", "", "One two. Three four."), Passage("a", "A", "x")], tmp_path)
    chunks = chunk_passages(found, 3)
    assert ["a", "b"] == [found[-1].id, found[-2].id]
    assert ["b#1", "b#0", "a"] == [chunks[row].id for row in (-1, -2, -3)]
    for sequence, row in ((found, 2), (found, -3), (chunks, 3), (chunks, -4)):
        with pytest.raises(IndexError):
            operator.getitem(sequence, row)


def test_the_digest_is_that_of_the_sorted_list_as_json(tmp_path: Path) -> None:
    """Graphs that were built are found by it: it must not change."""
    passages = [Passage("b", "B", 'a "quoted" text'), Passage("a", "", "Größe")]
    rows = json.dumps(sorted([one.id, one.title, one.text] for one in passages), ensure_ascii=False)
    found = [corpus_digest(one) for one in (passages, mapped(passages, tmp_path))]
    assert [hashlib.sha256(rows.encode()).hexdigest()] * 2 == found
    assert hashlib.sha256(b"[]").hexdigest() == corpus_digest([])
