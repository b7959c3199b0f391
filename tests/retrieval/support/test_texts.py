"""Columns of texts and sorted texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopbench.retrieval.support.texts import SAMPLED, SortedTexts, Texts, TextsOfRows, TextsWriter, numbered

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


TEXTS = st.lists(st.text(st.characters(), max_size=5), unique=True).map(sorted)  # lone surrogates too


@given(texts=TEXTS, other=st.text(max_size=5))
def test_they_are_the_list_and_find_the_row_of_each_of_its_texts_alone(texts: list[str], other: str) -> None:
    found = SortedTexts(*SortedTexts.arrays(texts))

    assert texts == list(found) == found[:]
    assert (texts[1:3], texts[-1:]) == (found[1:3], [found[-1]] if texts else [])
    assert {text: row for row, text in enumerate(texts)} == dict(found.row_of)
    assert (other in texts) == (other in found.row_of)


def test_of_many_each_is_found_and_what_lies_between_is_not() -> None:
    numbers = range(0, 6 * SAMPLED, 2)
    found = SortedTexts(*SortedTexts.arrays([f"{number:04}" for number in numbers])).row_of

    assert [*range(len(numbers))] == [found[f"{number:04}"] for number in numbers]
    assert not [number for number in range(-1, 6 * SAMPLED + 2, 2) if f"{number:04}" in found]


@pytest.mark.parametrize("row", [2, -3])
def test_a_row_beyond_them_is_refused(row: int) -> None:
    with pytest.raises(IndexError):
        SortedTexts(*SortedTexts.arrays(["a", "é"]))[row]
