"""The trees of hoprank: their values and exact contributions, their file, and the order they make."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.graphs import ASKED, WORLD, built_index, plan_of
from tests.support.places import ROOT

from hopbench.eval.training.boosting import tree_of
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank.paths import Ranked
from hopbench.retrieval.strategies.hoprank.strategy import UNREAD, Scores
from hopbench.retrieval.strategies.hoprank.tree_features import TREE_FEATURES
from hopbench.retrieval.strategies.hoprank.trees import Tree, Trees
from hopbench.retrieval.strategies.hoprank.weights import from_json, shipped, to_json
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Counters

# x₀ ≤ 1: 10; else x₁ ≤ 2: 20, else 40; of 8 rows 4, 1 and 3 came there.
BY_HAND = Tree([0, 1], [1.0, 2.0], [~0, ~1], [1, ~2], [10.0, 20.0, 40.0], [4, 1, 3])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


def test_a_row_goes_left_up_to_the_threshold() -> None:
    rows = np.array([[1.0, 9.0], [1.1, 2.0], [1.1, 2.1]])

    assert [10.0, 20.0, 40.0] == Trees(("a", "b"), (BY_HAND,)).value(rows).tolist()
    assert [20.0, 40.0, 80.0] == Trees(("a", "b"), (BY_HAND, BY_HAND)).value(rows).tolist()
    assert [0.0] == Trees(("a",), ()).value(np.zeros((1, 1))).tolist()


def test_contributions_by_hand() -> None:
    """Row (2, 3) is worth 40. Nothing known: (4·10 + 1·20 + 3·40)/8 = 22.5.

    Only a known: (20 + 3·40)/4 = 35. Only b known: half go left at a, ½·10 + ½·40 = 25. So a adds the mean of
    35 − 22.5 and 40 − 25, b that of 25 − 22.5 and 40 − 35.
    """
    shares, mean = Trees(("a", "b"), (BY_HAND,)).contributions(np.array([[2.0, 3.0]]))

    assert 22.5 == mean
    assert [(12.5 + 15.0) / 2, (2.5 + 5.0) / 2] == pytest.approx(shares[0].tolist())


def test_no_rows_have_no_contributions() -> None:
    shares, mean = Trees(("a", "b"), (BY_HAND,)).contributions(np.empty((0, 2)))
    assert (0, 2) == shares.shape
    assert math.isfinite(mean)


def expected(tree: Tree, row: NDArray[np.float64], known: frozenset[int], node: int) -> float:
    """The tree's value where only some features are known: a split over any other takes both sides by their rows."""
    if node < 0:
        return tree.value[~node]
    ends = tree.left[node], tree.right[node]
    if tree.feature[node] in known:
        return expected(tree, row, known, ends[int(row[tree.feature[node]] > tree.threshold[node])])
    rows = [below(tree, end) for end in ends]
    return sum(count * expected(tree, row, known, end) for count, end in zip(rows, ends, strict=True)) / sum(rows)


def below(tree: Tree, node: int) -> int:
    return tree.count[~node] if node < 0 else below(tree, tree.left[node]) + below(tree, tree.right[node])


def shapley(tree: Tree, row: NDArray[np.float64], features: int) -> list[float]:
    """The definition: the mean over all orders of what knowing the feature changes."""
    orders = list(itertools.permutations(range(features)))
    total = [0.0] * features
    for order in orders:
        for place, feature in enumerate(order):
            before = frozenset(order[:place])
            total[feature] += expected(tree, row, before | {feature}, 0) - expected(tree, row, before, 0)
    return [value / len(orders) for value in total]


@pytest.fixture(scope="module")
def grown() -> list[dict[str, Any]]:
    """Trees of LightGBM with its own predictions and contributions: the last one large."""
    kinds = [*((seed, leaves, 2) for seed, leaves in enumerate((2, 3, 4, 5, 7, 8, 11, 16))), (1, 16, 50)]
    command = [sys.executable, "-m", "tests.support.lightgbm_trees", json.dumps(kinds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]))


def trees_of(reference: dict[str, Any]) -> tuple[Trees, NDArray[np.float64]]:
    return Trees(tuple("abcd"), tuple(map(tree_of, reference["trees"]))), np.array(reference["rows"])


def test_contributions_are_shapley_values_by_definition(grown: list[dict[str, Any]]) -> None:
    for reference in grown[:-1]:
        trees, rows = trees_of(reference)
        shares, _ = trees.contributions(rows[:3])

        for row, given_shares in zip(rows[:3], shares, strict=True):
            both = [shapley(tree, row, 4) for tree in trees.trees]
            assert np.sum(both, axis=0).tolist() == pytest.approx(given_shares.tolist(), abs=1e-9)


def test_values_and_contributions_are_those_of_lightgbm(grown: list[dict[str, Any]]) -> None:
    trees, rows = trees_of(grown[-1])
    shares, mean = trees.contributions(rows)
    theirs = np.array(grown[-1]["contributions"])

    assert grown[-1]["values"] == pytest.approx(trees.value(rows).tolist(), abs=1e-9)
    assert theirs[:, :-1].ravel().tolist() == pytest.approx(shares.ravel().tolist(), abs=1e-9)
    assert theirs[0, -1] == pytest.approx(mean)
    assert trees.value(rows).tolist() == pytest.approx((shares.sum(axis=1) + mean).tolist(), abs=1e-9)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ({"feature": ["no_such", "rank"]}, "no weights file"),
        ({"threshold": [1.0]}, "lists of lengths that do not fit"),
        ({"left": [-1, -1]}, "does not reach each"),
        ({"left": [-1, 0], "right": [1, -3]}, "does not reach each"),
        ({"left": [-1, 1], "right": [-2, -3]}, "does not reach each|leads back"),
        ({"value": [1.0, math.inf, 0.0]}, "not finite"),
        ({"value": [1.0, -2e6, 0.0]}, "a value beyond 1,000,000"),
        ({"count": [0, 1, 1]}, "no training row"),
        ({"count": [1, 10**400, 1]}, "more than 9,007,199,254,740,992 training rows"),
        ({"count": [1, 10**400, 1], "value": [0.0, 10**400, 0.0]}, "no weights file"),
    ],
)
def test_a_spoilt_tree_is_refused(spoil: dict[str, object], message: str) -> None:
    content = json.loads(to_json(replace(shipped(), trees=Trees(TREE_FEATURES, (BY_HAND,)))))
    content["trees"][0].update(spoil)

    with pytest.raises(InputError, match=message):
        from_json(json.dumps(content), "spoilt")


def test_a_chain_of_too_many_leaves_is_refused() -> None:
    size = 20
    chain = Tree(
        [0] * size, [float(n) for n in range(size)], [~n for n in range(size)], [*range(1, size), ~size],
        [0.0] * (size + 1), [1] * (size + 1),
    )  # fmt: skip
    content = to_json(replace(shipped(), trees=Trees(TREE_FEATURES, (chain,))))

    with pytest.raises(InputError, match="more than 16 leaves"):
        from_json(content, "long")


def test_a_file_of_trees_is_read_as_it_was_written() -> None:
    text = to_json(shipped())

    assert text == to_json(from_json(text, "again"))
    assert shipped().trees.trees
    assert len(text.encode()) <= 2 * 1024 * 1024


@pytest.mark.parametrize("label", ["hoprank", "hoprank[model=linear]", "hoprank[anchors=0]"])
def test_contributions_add_up_to_the_score_of_every_hit(index: Index, label: str) -> None:
    for ranking in make(label).rank(Batch(index, ASKED), Counters()):
        for hit in ranking.hits:
            if hit.origin != "fill":
                assert abs(hit.score - math.fsum(hit.components.values())) <= 1e-9


def test_trees_order_what_the_linear_score_found(index: Index) -> None:
    both = [make(label).rank(Batch(index, ASKED), Counters()) for label in ("hoprank", "hoprank[model=linear]")]

    for by_trees, linear in zip(*both, strict=True):
        assert {hit.chunk_id for hit in linear.hits} == {hit.chunk_id for hit in by_trees.hits}
        assert [hit.score for hit in by_trees.hits] == sorted((hit.score for hit in by_trees.hits), reverse=True)
    assert both[0][0].hits[0].score != both[1][0].hits[0].score


def test_weights_without_trees_rank_by_the_linear_score(index: Index, tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    none = Trees(TREE_FEATURES, ())
    file.write_text(to_json(replace(shipped(), trees=none)), encoding="utf-8")
    labels = f"hoprank[weights={file}]", "hoprank[model=linear]"
    scores: Callable[[str], list[list[tuple[str, float]]]] = lambda label: [  # noqa: E731
        [(hit.chunk_id, hit.score) for hit in ranking.hits]
        for ranking in make(label).rank(Batch(index, ASKED), Counters())
    ]

    assert scores(labels[0]) == scores(labels[1])


def test_what_trees_do_not_read_stays_below_what_they_do() -> None:
    """Linear scores 3, 2, 1 and .5; trees take 5 off the first two: the others go below −3."""
    names = TREE_FEATURES
    takes = Trees(names, (Tree([0], [0.5], [~0], [~1], [-5.0, 7.0], [3, 1]),))
    last = Ranked(np.arange(4), np.array([[3.0], [2.0], [1.0], [0.5]]), np.ones(1))
    scores = Scores.of(last, takes, (np.array([0, 1]), np.zeros((2, len(names)))))
    shares = np.array([scores.contributions(place) for place in range(4)])

    assert [0, 1, 2, 3] == scores.chunks.tolist()
    assert [-2.0, -3.0, -3.000001, -3.500001] == pytest.approx(scores.values.tolist())
    assert scores.values.tolist() == pytest.approx(shares.sum(axis=1).tolist(), abs=1e-9)
    assert [0.0, 0.0, -4.000001, -4.000001] == pytest.approx(shares[:, scores.names[UNREAD]].tolist())
    raised = Scores.of(last, takes, (np.array([0, 1]), np.ones((2, len(names)))))
    assert [10.0, 9.0, 1.0, 0.5] == raised.values.tolist()  # below already
