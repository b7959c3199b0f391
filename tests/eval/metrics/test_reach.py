"""reach@h on graphs small enough to follow with a finger, and against the product it never forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hopbench.eval.metrics.reach import ExpansionFactors, reach
from hopbench.retrieval.support.errors import InputError


def matrix(shape: tuple[int, int], *cells: tuple[int, int]) -> sparse.csr_array:
    rows, columns = [r for r, _ in cells], [c for _, c in cells]
    return sparse.csr_array((np.ones(len(cells)), (rows, columns)), shape=shape)


# passages 0-5, entities 0-3:  0 -e0- 1,  1 mentions e1, e1 ~ e2, e2 in 2,  2 ≈ 3 (similar),  4 and 5 alone
MENTIONS = matrix((6, 4), (0, 0), (1, 0), (1, 1), (2, 2), (4, 3))
RELATIONS = matrix((4, 4), (1, 2))
SIMILAR = matrix((6, 6), (3, 2))


def test_steps_through_entities_relations_and_similarity() -> None:
    factors = ExpansionFactors.make(6, MENTIONS, RELATIONS, SIMILAR)
    all_gold, corpus_share = reach([[0], [0], [0], [3]], [[1], [0, 2], [4], [0]], factors, 3)
    # from 0: {0} → 1 by e0 → 2 by e1~e2 → 3 by similarity; from 3: {3} → 2 → 1 by e2~e1 → 0 by e0
    assert all_gold.tolist() == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert corpus_share.tolist() == [[1 / 6, 2 / 6, 3 / 6, 4 / 6]] * 4


def test_factors_can_be_left_out() -> None:
    _, corpus_share = reach([[0]], [[2]], ExpansionFactors.make(6, MENTIONS), 3)
    assert corpus_share.tolist() == [[1 / 6, 2 / 6, 2 / 6, 2 / 6]]
    all_gold, _ = reach([[2]], [[3]], ExpansionFactors.make(6, similar=SIMILAR), 1)
    assert all_gold.tolist() == [[0, 1]]
    all_gold, _ = reach([[2]], [[3]], ExpansionFactors.make(6), 2)
    assert all_gold.tolist() == [[0, 0, 0]]


def test_no_seeds_reach_nothing_and_no_gold_does_not_apply() -> None:
    all_gold, corpus_share = reach([[], [0]], [[1], []], ExpansionFactors.make(6, MENTIONS, RELATIONS, SIMILAR), 2)
    assert all_gold[0].tolist() == [0, 0, 0]
    assert corpus_share[0].tolist() == [0, 0, 0]
    assert np.isnan(all_gold[1]).all()
    assert reach([], [], ExpansionFactors.make(6), 1)[0].shape == (0, 2)


def test_more_questions_than_a_word_has_bits() -> None:
    factors = ExpansionFactors.make(6, MENTIONS, RELATIONS, SIMILAR)
    one = [reach([[i % 6]], [[5 - i % 6]], factors, 3) for i in range(6)]
    all_gold, corpus_share = reach([[i % 6] for i in range(150)], [[5 - i % 6] for i in range(150)], factors, 3)
    for i in range(150):
        assert all_gold[i].tolist() == one[i % 6][0][0].tolist()
        assert corpus_share[i].tolist() == one[i % 6][1][0].tolist()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 7))
def test_equals_the_powers_of_the_dense_product(seed: int, passages: int, entities: int) -> None:
    rng = np.random.default_rng(seed)
    m, r, s = (rng.random(x) < 0.2 for x in ((passages, entities), (entities, entities), (passages, passages)))
    factors = ExpansionFactors.make(passages, *(sparse.csr_array(x) for x in (m, r, s)))
    relations = (r | r.T).astype(int)
    step = (s | s.T) | (m @ m.T.astype(int) > 0) | (m @ relations @ m.T > 0)
    start = int(rng.integers(passages))
    reached = np.eye(passages, dtype=bool)[start]
    all_gold, corpus_share = reach([[start]] * passages, [[p] for p in range(passages)], factors, 3)
    for hops in range(4):
        assert all_gold[:, hops].tolist() == reached.astype(float).tolist()
        assert corpus_share[0, hops] == pytest.approx(reached.mean())
        reached = reached | (reached.astype(int) @ step > 0)


@pytest.mark.parametrize(
    ("seeds", "gold", "hops", "message"),
    [
        ([[6]], [[0]], 1, "seeds of question 0 holds 6"),
        ([[0]], [[-1]], 1, "gold of question 0 holds -1"),
        ([[0]], [], 1, "1 seed lists for 0 gold lists"),
        ([[0]], [[0]], 4, "hops is 4"),
    ],
)
def test_bad_input_is_refused(seeds: list[list[int]], gold: list[list[int]], hops: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reach(seeds, gold, ExpansionFactors.make(6, MENTIONS), hops)


def test_factors_must_fit_together() -> None:
    with pytest.raises(InputError, match="relations has shape"):
        ExpansionFactors.make(6, MENTIONS, matrix((5, 5)))
    with pytest.raises(InputError, match="similar has shape"):
        ExpansionFactors.make(6, similar=matrix((5, 5)))
