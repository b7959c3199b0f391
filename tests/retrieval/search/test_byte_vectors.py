"""Vectors in bytes: their products are exact, whatever multiplies them, and near those of the vectors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from textwrap import dedent

import numkong
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hopbench.retrieval.search import byte_vectors
from hopbench.retrieval.search.byte_vectors import ByteVectors, byte_products
from hopbench.retrieval.support.arithmetic import on_grid

SMALL_STACK = 8192  # bytes: enough for AVX-512's registers, not for tiles


def unit(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(count, dimension))
    return on_grid((drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32))


@pytest.fixture(params=[(), ("haswell",), numkong.get_capabilities()], ids=["plain", "haswell", "all"])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """NumKong with the instructions of an old processor, or all that this one has."""
    had = {name for name, has in numkong.get_capabilities().items() if has} - {"serial"}
    for name in had - set(request.param):
        numkong.disable_capability(name)
    yield
    for name in had:
        numkong.enable_capability(name)


@pytest.mark.parametrize("dimension", [1, 3, 64, 255, 256, 1536])
def test_products_are_exact_with_the_instructions_of_every_processor(kernels: None, dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    rows = rng.integers(-127, 128, (71, dimension)).astype(np.int8)
    others = rng.choice(np.array([-127, 127], np.int8), (33, dimension))  # the largest sums
    assert np.array_equal(byte_products(rows, others), rows.astype(np.int64) @ others.astype(np.int64).T)
    assert np.array_equal(byte_products(others, others), others.astype(np.int64) @ others.astype(np.int64).T)


@pytest.mark.parametrize("permitted", [True, False])
def test_tiles_are_used_only_where_the_system_permits_them(permitted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    disabled: list[str] = []
    has = {"haswell": True, "sapphireamx": True, "graniteamx": False}
    monkeypatch.setattr(numkong, "get_capabilities", lambda: has)
    monkeypatch.setattr(numkong, "disable_capability", disabled.append)
    monkeypatch.setattr(byte_vectors, "_tiles_permitted", lambda: permitted)
    byte_vectors._numkong.__wrapped__()
    assert disabled == ([] if permitted else ["sapphireamx"])


def test_a_process_that_has_asked_for_tiles_may_use_them() -> None:
    assert byte_vectors._tiles_permitted() == numkong.get_capabilities()["sapphireamx"]


def test_products_are_exact_where_the_system_refuses_tiles() -> None:
    # Linux refuses them to a process that handles signals on a stack too small for their state: to use one ends it.
    refused = f"""
        import ctypes, numpy as np
        class Stack(ctypes.Structure):
            _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
        memory = ctypes.create_string_buffer({SMALL_STACK})
        stack = Stack(ctypes.addressof(memory), 0, {SMALL_STACK})
        assert not ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None)
        from hopbench.retrieval.search import byte_vectors
        ones = np.ones((40, 256), np.int8)
        print(byte_vectors.byte_products(ones, ones).sum(), byte_vectors._tiles_permitted())
    """
    ended = subprocess.run([sys.executable, "-c", dedent(refused)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.split()) == (0, [str(40 * 40 * 256), "False"]), ended.stderr


def test_a_product_is_as_near_to_the_vectors_as_their_steps_say() -> None:
    rows, questions = unit(500, 256), unit(100, 256, seed=1)
    alike, each = ByteVectors.with_common_step(rows), ByteVectors.with_own_steps(questions)
    wrong = byte_products(each.codes, alike.codes) * (each.step[:, None] * alike.step) - questions @ rows.T
    assert wrong.std(axis=1) == pytest.approx(each.spread(alike), rel=0.2)
    assert (np.abs(wrong) < 6 * each.spread(alike)[:, None]).all()


def test_vectors_have_a_step_in_common_or_each_its_own() -> None:
    vectors = np.array([[0.5, -0.25], [0.1, 0.0], [0.0, 0.0]], np.float32)
    alike, each = ByteVectors.with_common_step(vectors), ByteVectors.with_own_steps(vectors)
    assert alike.codes.tolist() == [[127, -64], [25, 0], [0, 0]]
    assert float(alike.step) == pytest.approx(0.5 / 127)
    assert each.codes.tolist() == [[127, -64], [127, 0], [0, 0]]
    assert each.step == pytest.approx([0.5 / 127, 0.1 / 127, 1 / 127])


def test_of_nothing_there_are_no_products() -> None:
    nothing, some = ByteVectors.with_common_step(np.zeros((0, 4), np.float32)), ByteVectors.with_common_step(unit(3, 4))
    assert (0, 3) == byte_products(nothing.codes, some.codes).shape
    assert (3, 0) == byte_products(some.codes, nothing.codes).shape


@settings(max_examples=50)
@given(arrays(np.float32, (3, 5), elements=st.floats(-1, 1, width=32)))
def test_no_component_is_farther_off_than_half_a_step(vectors: np.ndarray) -> None:
    for coded, step in (
        (of := ByteVectors.with_common_step(vectors), of.step),
        (of := ByteVectors.with_own_steps(vectors), of.step[:, None]),
    ):
        assert (np.abs(coded.codes * step.astype(np.float64) - vectors) <= step * 0.50001).all()
