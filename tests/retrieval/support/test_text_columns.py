"""Texts of some rows of a column, and `numbered`: texts in lists by number, whether these are of a column or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopbench.retrieval.support.text_columns import Texts, TextsOfRows, TextsWriter, numbered

NAMES = ["b", "a", "", "b", "é", "z\udce9"]  # two rows may hold one text


@pytest.fixture(scope="module")
def column(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    stem = tmp_path_factory.mktemp("column") / "names"
    with TextsWriter(stem) as writer:
        writer.add(NAMES)
    return Texts(stem)


@given(
    lists=st.lists(st.lists(st.integers(0, len(NAMES) - 1)), max_size=4),
    plain=st.sets(st.integers(0, 3)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_of_lists_get_numbers_in_their_order(column: Texts, lists: list[list[int]], plain: set[int]) -> None:
    texts = [[NAMES[row] for row in rows] for rows in lists]
    given_: list[Sequence[str]] = [
        each if number in plain else TextsOfRows(column, np.array(rows, np.int64))
        for number, (each, rows) in enumerate(zip(texts, lists, strict=True))
    ]

    known, numbers = numbered(given_)

    assert sorted({text for each in texts for text in each}) == known
    assert texts == [[known[number] for number in each.tolist()] for each in numbers]


def test_a_text_of_a_column_is_read_once(column: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    many = Texts.many
    monkeypatch.setattr(Texts, "many", lambda self, rows: read.extend(rows.tolist()) or many(self, rows))
    rows = np.array([1, 0, 1, 4], np.int64)

    known, numbers = numbered([TextsOfRows(column, rows), TextsOfRows(column, rows[:2])])

    assert ["a", "b", "é"] == known
    assert [[0, 1, 0, 2], [0, 1]] == [each.tolist() for each in numbers]
    assert [0, 1, 4] == sorted(read)


@pytest.mark.parametrize("rows", [range(0, 96, 2), range(95, -1, -3), [*range(31), 96], []])
def test_texts_of_some_rows_come_in_their_order(rows: Sequence[int], tmp_path: Path) -> None:
    texts = [*(f"{row:0128d}" for row in range(96)), ""]
    with TextsWriter(tmp_path / "texts") as writer:
        writer.add(texts)

    assert [texts[row] for row in rows] == Texts(tmp_path / "texts").many(np.array(rows, np.int64))
