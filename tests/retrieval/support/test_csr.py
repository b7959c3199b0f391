"""Ranges laid end to end."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.support.csr import expand_ranges


def test_ranges_are_laid_end_to_end() -> None:
    positions, owner = expand_ranges(np.array([3, 8, 9]), np.array([5, 8, 11]))

    assert ([3, 4, 9, 10], [0, 0, 2, 2]) == (positions.tolist(), owner.tolist())
