"""Mapped arrays: the values of the file, which nobody writes to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hopbench.retrieval.support.mapped_arrays import mapped_array, rows_of

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
