"""Sums, products, logarithms and powers that have the same bits on every processor."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.embedding.base import unit_rows
from hopbench.retrieval.support.arithmetic import (
    exp,
    length,
    ln,
    log,
    on_grid,
    product_error,
    row_lengths,
    shares,
    summable,
    summed,
    weighted_sum,
)


def units(count: int, dimension: int, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    drawn = np.random.default_rng(seed).standard_normal((count, dimension))
    return on_grid(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))  # type: ignore[return-value]


def test_a_component_moves_to_the_nearest_multiple() -> None:
    step = 2.0**-24
    values = np.array([0.0, 1.0, -1.0, 0.3, -0.3 * step, 1.4 * step, 0.5])

    # .3/step = 5033164.8: the nearest is 5033165.
    expected = [0.0, 1.0, -1.0, 5033165 * step, 0.0, step, 0.5]
    assert expected == on_grid(values).tolist()


@given(st.lists(st.floats(-1.0, 1.0, width=32), min_size=1, max_size=20))
def test_what_is_on_the_grid_stays(values: list[float]) -> None:
    once = on_grid(np.array(values, np.float32))

    assert on_grid(once) is once
    assert np.abs(once - np.array(values)).max() <= 2.0**-25


@pytest.mark.parametrize("dimension", [2, 256, 3072])
def test_a_product_of_unit_vectors_on_the_grid_is_exact_in_any_order(dimension: int) -> None:
    vectors = units(6, dimension).astype(np.float64)
    first, second = vectors[:3], vectors[3:]
    truth = [
        [
            float(sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0)))
            for b in second.tolist()
        ]
        for a in first.tolist()
    ]

    shuffled = np.random.default_rng(1).permutation(dimension)
    assert truth == (first @ second.T).tolist()
    assert truth == (first[:, shuffled] @ second[:, shuffled].T).tolist()
    assert truth == [[math.fsum((a * b).tolist()) for b in second] for a in first]
    assert truth == [[float(np.cumsum(a * b)[-1]) for b in second] for a in first]


@pytest.mark.parametrize("dimension", [16, 256, 3072])
def test_the_bound_of_a_float32_product_holds(dimension: int) -> None:
    vectors = units(300, dimension)
    exact = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    one_by_one = np.zeros((300, 300), np.float32)  # the worst order there is: one after the other
    for column in vectors.T:
        one_by_one += column[:, None] * column

    assert np.abs(one_by_one - exact).max() <= product_error(dimension)
    assert np.abs(vectors @ vectors.T - exact).max() <= product_error(dimension)


def test_shares_add_up_exactly_in_any_order() -> None:
    parts = shares(np.random.default_rng(0).random(2000), 1000.0)

    assert {math.fsum(parts)} == {float(parts.sum()), float(parts[::-1].cumsum()[-1]), float(parts @ np.ones(2000))}
    assert np.abs(parts * 1000.0 - np.random.default_rng(0).random(2000)).max() <= 1000.0 * 2.0**-41


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.randoms())
def test_summable_values_add_up_exactly_in_any_order(values: list[float], random: random.Random) -> None:
    rounded = summable(values, len(values)).tolist()
    truth = math.fsum(rounded)
    random.shuffle(rounded)

    assert truth == sum(rounded) == float(np.array(rounded) @ np.ones(len(rounded)))
    assert max(map(abs, values)) * 2.0**-43 >= abs(truth - math.fsum(values)) / len(values)  # 52 − log₂ 200 bits


@given(st.integers(0, 40), st.integers(1, 5))
def test_sums_by_halves_are_sums(rows: int, columns: int) -> None:
    values = np.arange(rows * columns, dtype=np.float64).reshape(rows, columns)

    assert values.sum(axis=0).tolist() == summed(values).tolist()
    weights = np.arange(columns, dtype=np.float64)
    assert (values @ weights).tolist() == weighted_sum(values, weights).tolist()
    assert np.arange(rows * columns).tolist() == values.ravel().tolist()  # the argument stays as it was


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 1), (9, 7), (20, 256), (2, 257)])
def test_lengths_of_rows_are_those_of_sums_by_halves(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(2).standard_normal(shape)
    before = values.copy()
    assert np.sqrt(summed((values * values).T)).tolist() == row_lengths(values).tolist()  # to the last bit
    assert before.tolist() == values.tolist()


def test_a_row_of_zeros_stays() -> None:
    expected = [[0.0, 0.0], on_grid(np.array([0.6, 0.8])).tolist()]
    assert expected == unit_rows(np.array([[0.0, -0.0], [3.0, 4.0]])).tolist()
    assert not np.signbit(unit_rows(np.array([[-0.0, 0.0]]))).any()


def test_the_order_of_a_sum_is_the_one_written_down() -> None:
    # (1 + 1e-16) loses the small one, (1e-16 − 1) + 1 would keep another part of it: of 4 rows 0 + 2 and 1 + 3.
    values = np.array([1.0, 1e-16, -1.0, 1e-16])

    assert (1.0 - 1.0) + (1e-16 + 1e-16) == float(summed(values))
    assert float(summed(values)) != float(values.cumsum()[-1])


def test_a_row_has_the_same_sum_in_any_company() -> None:
    rows, weights = np.random.default_rng(0).standard_normal((50, 26)), np.random.default_rng(1).standard_normal(26)

    together = weighted_sum(rows, weights)

    assert together.tolist() == [float(weighted_sum(rows[[i]], weights)[0]) for i in range(50)]
    assert np.abs(together - rows @ weights).max() < 1e-13


def test_lengths() -> None:
    assert 5.0 == length(np.array([3.0, 4.0]))
    assert on_grid(np.array([[0.6, 0.8], [0.0, 0.0]])).tolist() == unit_rows(np.array([[3.0, 4.0], [0, 0]])).tolist()
    assert [[1.0, 0.0]] == unit_rows(np.array([[1e-40, 0.0]], np.float32)).tolist()
    assert [[1.0, 0.0]] == unit_rows(np.array([[3e38, 0.0]], np.float32)).tolist()


@given(st.floats(1e-300, 1e300))
def test_logarithms_are_within_one_unit_in_the_last_place(x: float) -> None:
    truth = math.log(x)

    assert abs(float(log(x)) - truth) <= math.ulp(truth)
    assert float(log(np.array([x, 2.0]))[0]) == ln(x)


@given(st.floats(-700.0, 700.0))
def test_powers_of_e_are_within_one_unit_in_the_last_place(x: float) -> None:
    truth = math.exp(x)

    assert abs(float(exp(x)) - truth) <= math.ulp(truth)


def test_golden_bits() -> None:
    # What every processor has to print; ln 3 is one unit beside the nearest double, ...30b, the others are the nearest.
    logarithms = """-0x1.ba18a998fffa0p+2 0x0.0p+0 0x1.62e42fefa39efp-1 0x1.193ea7aad030ap+0 0x1.26bb1bbb55516p+1
        0x1.f4c3b8dd9c234p+2 0x1.4b927f32bffb8p+4"""
    powers = "0x1.a56e0c2ac7f75p-44 0x1.78b56362cef38p-2 0x1.0000000000000p+0 0x1.5bf0a8b14576ap+1"
    found = log(np.array([1e-3, 1.0, 2.0, 3.0, 10.0, 2501.0, 1e9])), exp(np.array([-30.0, -1.0, 0.0, 1.0]))

    assert [logarithms.split(), powers.split()] == [[value.hex() for value in one.tolist()] for one in found]
