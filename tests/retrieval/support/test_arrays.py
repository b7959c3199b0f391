"""CSR rows read together, distinct values, and mapped files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from hopbench.retrieval.support.arrays import Lists, among, distinct, expand_ranges, mapped_array, rows_of


def test_ranges_are_laid_end_to_end() -> None:
    positions, owner = expand_ranges(np.array([3, 8, 9]), np.array([5, 8, 11]))

    assert ([3, 4, 9, 10], [0, 0, 2, 2]) == (positions.tolist(), owner.tolist())


def test_lists_end_to_end_are_lists_again() -> None:
    lists = Lists.of([np.array([3, 1]), np.array([], np.int64), np.array([4])])

    assert [[3, 1], [], [4]] == [one.tolist() for one in lists]
    assert [[3, 1], [4]] == [one.tolist() for one in lists[::2]]
    assert [0, 0, 2] == lists.owner.tolist()
    assert lists.values is Lists.of(lists).values


@given(of_numpy.arrays(st.sampled_from([np.int32, np.int64]), st.integers(0, 50)))
def test_distinct_values_are_those_of_numpy(values: NDArray[np.integer]) -> None:
    before = values.copy()
    found = distinct(values)
    assert_array_equal(found, np.unique(values), strict=True)
    assert_array_equal(values, before)


@given(*[of_numpy.arrays(np.int64, st.integers(0, 20), elements=st.integers(-9, 9))] * 2)
def test_values_among_others_are_those_of_numpy(values: NDArray[np.int64], some: NDArray[np.int64]) -> None:
    assert_array_equal(among(values, np.sort(some)), np.isin(values, some), strict=True)


VALUES = np.arange(200_000).reshape(-1, 100)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "values.npy", VALUES)
    return tmp_path / "values.npy"


def test_a_mapped_array_has_the_values_of_its_file_and_cannot_be_written_to(file: Path) -> None:
    found = mapped_array(file)

    assert type(found) is np.ndarray
    assert np.array_equal(VALUES, found)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 7


def test_an_empty_array_is_mapped_and_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "empty.npy", np.zeros((0, 3)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)

    assert (0, 3) == mapped_array(tmp_path / "empty.npy").shape
    with pytest.raises(ValueError, match="Array can't be memory-mapped"):
        mapped_array(tmp_path / "objects.npy")


@pytest.mark.parametrize("rows", [[3, 1, 3], [7], []])
def test_rows_are_those_of_the_array_mapped_or_in_memory(rows: list[int], file: Path) -> None:
    expected = VALUES[np.array(rows, int)]

    assert np.array_equal(expected, rows_of(mapped_array(file), rows))
    assert np.array_equal(expected, rows_of(VALUES, rows))
