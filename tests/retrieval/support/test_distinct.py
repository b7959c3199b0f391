"""Distinct values, and those among others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from hopbench.retrieval.support.distinct import among, distinct


@given(of_numpy.arrays(st.sampled_from([np.int32, np.int64]), st.integers(0, 50)))
def test_distinct_values_are_those_of_numpy(values: NDArray[np.integer]) -> None:
    before = values.copy()
    found = distinct(values)
    assert_array_equal(found, np.unique(values), strict=True)
    assert_array_equal(values, before)


@given(*[of_numpy.arrays(np.int64, st.integers(0, 20), elements=st.integers(-9, 9))] * 2)
def test_values_among_others_are_those_of_numpy(values: NDArray[np.int64], some: NDArray[np.int64]) -> None:
    assert_array_equal(among(values, np.sort(some)), np.isin(values, some), strict=True)
