"""SIMILAR_TO: the union of both ends' nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction import similarity
from hopbench.retrieval.graph.construction.similarity import SharedStems, exact_pairs, similar_parts
from hopbench.retrieval.search import candidates as neighbours
from hopbench.retrieval.search.candidates import Pairs, kth_at_least, top_columns
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk


def unit(*rows: tuple[float, ...]) -> NDArray[np.float32]:
    matrix = np.array(rows, np.float64)
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


def nearest_pairs(vectors: NDArray[np.float32], *, top_k: int, floor: float) -> dict[tuple[int, int], float]:
    return as_dict(exact_pairs(vectors, top_k=top_k, floor=floor))


def as_dict(pairs: Pairs) -> dict[tuple[int, int], float]:
    ends = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    return dict(zip(ends, pairs.cosine.tolist(), strict=True))


def table_of(chunks: Sequence[Chunk], pairs: Pairs, tagger: Tagger) -> pd.DataFrame:
    return pd.concat(parts_of(chunks, pairs, tagger), ignore_index=True)


def parts_of(chunks: Sequence[Chunk], pairs: Pairs, tagger: Tagger) -> list[pd.DataFrame]:
    ids = np.array([chunk.id for chunk in chunks], object)
    return list(similar_parts(ids, pairs, SharedStems.of(chunks, tagger)))


def brute(vectors: NDArray[np.float32], top_k: int, floor: float) -> dict[tuple[int, int], float]:
    """Read from SPEC section 2: each row's top k by (cosine, smaller index), both directions united, above a floor."""
    cosine = np.round(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 6)
    found = {}
    for i in range(len(vectors)):
        others = sorted((j for j in range(len(vectors)) if j != i), key=lambda j: (-cosine[i, j], j))
        for j in others[:top_k]:
            if cosine[i, j] >= floor:
                found[min(i, j), max(i, j)] = min(float(cosine[i, j]), 1.0)
    return found


def test_a_pair_is_kept_when_either_end_has_it_among_its_nearest() -> None:
    # Angles 0°, 10°, 15°, 40°: nearest of 0° is 10°, of 10° is 15°, of 15° is 10°, of 40° is 15° (which prefers 10°).
    vectors = unit(*((np.cos(a), np.sin(a)) for a in np.radians([0, 10, 15, 40])))

    pairs = nearest_pairs(vectors, top_k=1, floor=0.0)

    expected = {(0, 1): np.cos(np.radians(10)), (1, 2): np.cos(np.radians(5)), (2, 3): np.cos(np.radians(25))}
    assert expected.keys() == pairs.keys()
    assert list(expected.values()) == pytest.approx(list(pairs.values()), abs=1e-6)


def test_equal_similarities_go_to_the_earlier_chunk() -> None:
    vectors = unit((1, 0), (0, 1), (0, 1), (0, 1))

    # Each of the three equal ones has the earliest of the others as its nearest; chunk 0 is at cosine 0 of all: 0-1.
    assert {(0, 1): 0.0, (1, 2): 1.0, (1, 3): 1.0} == nearest_pairs(vectors, top_k=1, floor=0.0)


def test_the_floor_is_inclusive_and_negative_cosines_never_pass() -> None:
    vectors = unit((1, 0), (0.6, 0.8), (-1, 0))

    assert {(0, 1): 0.6} == nearest_pairs(vectors, top_k=5, floor=0.6)
    assert {(0, 1): 0.6} == nearest_pairs(vectors, top_k=5, floor=0.0)


def test_texts_without_a_known_token_are_similar_to_nothing() -> None:
    vectors = np.array([[0, 0], [1, 0], [0, 0]], np.float32)

    assert {} == nearest_pairs(vectors, top_k=2, floor=0.01)


def test_one_chunk_has_no_neighbour() -> None:
    assert {} == nearest_pairs(unit((1, 0)), top_k=3, floor=0.0)
    assert {} == nearest_pairs(np.zeros((0, 2), np.float32), top_k=3, floor=0.0)


coordinates = st.lists(st.tuples(*[st.integers(-3, 3)] * 3).filter(any), min_size=1, max_size=12)


@given(coordinates, st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.8]), st.integers(1, 5), st.integers(1, 30))
def test_it_equals_brute_force_in_tiles_of_any_size_and_however_often_candidates_are_pruned(
    rows: list[tuple[float, ...]], top_k: int, floor: float, tile: int, held: int
) -> None:
    vectors = unit(*rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "TILE_ROWS", tile)
        patch.setattr(neighbours, "MIN_HELD", held)
        patch.setattr(neighbours, "HELD_PER_NEIGHBOUR", 0)
        pairs = nearest_pairs(vectors, top_k=top_k, floor=floor)

    expected = brute(vectors, top_k, floor)
    assert expected.keys() == pairs.keys()
    assert list(expected.values()) == pytest.approx([pairs[pair] for pair in expected], abs=2e-6)
    assert all(0.0 <= value <= 1.0 for value in pairs.values())


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5),
    st.integers(0, 6),
)
def test_top_columns_sorts_by_value_then_column(rows: list[list[int]], k: int) -> None:
    found_rows, found_columns = top_columns(np.array(rows, np.float32), k)

    expected = [(i, j) for i, row in enumerate(rows) for j in sorted(range(4), key=lambda j: (-row[j], j))[:k]]
    assert expected == list(zip(found_rows.tolist(), found_columns.tolist(), strict=True))


@pytest.mark.parametrize("values", [3, 10_000])
def test_the_bound_of_the_kth_best_leaves_every_winner_in(values: int) -> None:
    # 4,000 columns in 1,333 groups of 3, of which the last column is left over; with 3 values nearly every cell ties.
    scores = np.random.default_rng(0).integers(0, values, (5, 4000)).astype(np.float32)
    ordered = -np.sort(-scores, axis=1)
    for k in (1, 10, 60):
        bound = kth_at_least(scores, k)[:, 0]
        assert (bound <= ordered[:, k - 1]).all()
        assert (bound >= ordered[:, 2 * k]).all()  # and is close
        fewer = kth_at_least(scores, k, 10)[:, 0]
        assert ((ordered[:, 2 * k] <= fewer) & (fewer <= bound)).all()
        rows, columns = top_columns(scores, k)
        by_hand = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        assert by_hand.tolist() == columns.reshape(5, k).tolist()
        assert np.repeat(np.arange(5), k).tolist() == rows.tolist()


@pytest.mark.parametrize("tile", [37, 100, 1024, 3000])
def test_tiles_do_not_decide_the_last_decimal(tile: int) -> None:
    # A product of 1 row, of 100 columns or of 3,000 is summed by other instructions, so its float32 bits are others.
    vectors = unit(*np.random.default_rng(1).standard_normal((3000, 64)).tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "TILE_ROWS", tile)
        pairs = nearest_pairs(vectors, top_k=5, floor=0.1)

    assert exact(vectors, list(pairs)) == list(pairs.values())


def exact(vectors: NDArray[np.float32], pairs: Sequence[tuple[int, int]]) -> list[float]:
    """Cosines in whole numbers, of vectors on the grid of 2⁻²⁴."""
    whole = [[int(value) for value in row] for row in np.rint(vectors.astype(np.float64) * 2**24)]
    products = (sum(x * y for x, y in zip(whole[i], whole[j], strict=True)) for i, j in pairs)
    return [min(round(product / 2**48, 6), 1.0) for product in products]


def test_what_a_product_in_float32_gets_wrong_is_found_all_the_same() -> None:
    # Rows 1 and 2 differ from row 0 by less than float32 sees in a dot product, and round to other sixth decimals.
    near = np.float32(0.6), np.float32(0.6) + np.float32(2**-24) * 9
    vectors = np.array([[1, 0], [near[0], 0.8], [near[1], 0.8]], np.float32)

    found = nearest_pairs(vectors, top_k=1, floor=0.6)

    assert {(0, 2): 0.600001, (1, 2): 1.0} == found


def test_an_edge_stands_once_with_sorted_ends_and_the_tags_both_share() -> None:
    chunks = [
        Chunk("b", "b", 0, "", "rivers and boats"),
        Chunk("a", "a", 0, "", "a river of boats"),
        Chunk("c", "c", 0, "", "words words"),
    ]
    tagger = Tagger(chunk.content for chunk in chunks)
    vectors = unit((1, 0.1), (1, 0), (0, 1))

    table = table_of(chunks, exact_pairs(vectors, top_k=2, floor=0.5), tagger)

    assert [("a", "b", ["boat", "river"])] == list(zip(table.source, table.target, table.tags, strict=True))


def test_tags_are_at_most_eight() -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    chunks = [Chunk(name, name, 0, "", text) for name in "ab"]

    table = table_of(chunks, exact_pairs(unit((1, 0), (1, 0)), top_k=1, floor=0.0), Tagger([text]))

    assert [8] == table.tags.map(len).tolist()


@given(
    st.lists(
        st.lists(st.sampled_from("rivers boats the kings 7 queens falling stars".split()), max_size=12),
        min_size=2,
        max_size=6,
    )
)
def test_the_tags_of_many_pairs_are_those_of_each(texts: list[list[str]]) -> None:
    chunks = [Chunk(f"c{row}", f"c{row}", 0, "", " ".join(words)) for row, words in enumerate(texts)]
    tagger = Tagger([*(chunk.content for chunk in chunks[1:]), "kings", "stars"])  # of salience that differs
    first, second = np.triu_indices(len(chunks), 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "MAX_TAGS", 2)
        tags = SharedStems.of(chunks, tagger).shared(first, second)

    stems = [set(tagger.stems(chunk.content)) for chunk in chunks]
    assert [tagger.top(sorted(stems[i] & stems[j]), 2) for i, j in zip(first, second, strict=True)] == tags


def test_a_table_in_parts_is_the_whole_table() -> None:
    chunks = [Chunk(f"c{row}", f"c{row}", 0, "", f"river {row} boats") for row in range(12)]
    pairs = exact_pairs(np.repeat(unit((1, 0.3), (0.4, 1)), 6, axis=0), top_k=3, floor=0.1)
    tagger = Tagger(chunk.content for chunk in chunks)

    whole = table_of(chunks, pairs, tagger)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "TAG_BATCH", 7)
        assert len(parts_of(chunks, pairs, tagger)) == -(-len(whole) // 7)
        assert whole.equals(table_of(chunks, pairs, tagger))


def test_a_graph_without_pairs_has_no_part() -> None:
    chunk = Chunk("a", "a", 0, "", "")

    assert [] == parts_of([chunk], exact_pairs(unit((1, 0)), top_k=1, floor=0.0), Tagger())


def test_copies_of_one_text_go_to_the_earliest_and_take_no_more_room_than_others() -> None:
    # 300 rows are equal: each is as near to all the others as to the three that it keeps.
    vectors = np.repeat(unit((1, 0.5), (0.2, 1)), [300, 5], axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "TILE_ROWS", 16)
        patch.setattr(neighbours, "MIN_HELD", 1000)
        patch.setattr(neighbours, "HELD_PER_NEIGHBOUR", 0)
        pairs = nearest_pairs(vectors, top_k=3, floor=0.9)

    earliest = {(i, j) for j in range(1, 300) for i in range(min(j, 3))} | {
        (i, j) for i in range(3) for j in range(i + 1, 4)
    }
    others = {(300 + i, 300 + j) for i in range(3) for j in range(i + 1, 5)}
    assert earliest | others == pairs.keys()
