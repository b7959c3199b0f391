"""Ranges laid end to end."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.support.csr import Lists, expand_ranges


def test_ranges_are_laid_end_to_end() -> None:
    positions, owner = expand_ranges(np.array([3, 8, 9]), np.array([5, 8, 11]))

    assert ([3, 4, 9, 10], [0, 0, 2, 2]) == (positions.tolist(), owner.tolist())


def test_lists_end_to_end_are_lists_again() -> None:
    lists = Lists.of([np.array([3, 1]), np.array([], np.int64), np.array([4])])

    assert [[3, 1], [], [4]] == [one.tolist() for one in lists]
    assert [[3, 1], [4]] == [one.tolist() for one in lists[::2]]
    assert [0, 0, 2] == lists.owner.tolist()
    assert lists.values is Lists.of(lists).values
