"""BLAS's threads are limited within, and restored, after an error too."""

from __future__ import annotations

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hopbench.retrieval.support.blas import one_blas_thread


def threads() -> set[int]:
    """Of NumPy's own BLAS, once it is loaded; SciPy's may have been loaded after the libraries were looked up."""
    return {each["num_threads"] for each in threadpool_info() if f"{os.sep}numpy.libs{os.sep}" in each["filepath"]}


def fails_within() -> None:
    with one_blas_thread():
        assert threads() == {1}
        raise ZeroDivisionError


def test_one_thread_within_and_those_of_before_after_an_error() -> None:
    assert np.eye(2).sum() == 2  # loaded before it is looked up
    with threadpool_limits(2, "blas"):
        with pytest.raises(ZeroDivisionError):
            fails_within()
        assert threads() == {2}
