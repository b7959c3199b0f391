"""Sorted texts: the list that they were made of, and the row of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.support.sorted_texts import SAMPLED, SortedTexts

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
