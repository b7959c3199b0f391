"""Hits that are made when somebody looks at them, and a fusion of rows against the fusion of ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.search.fusion import ordered, reciprocal_rank, rows_by_reciprocal_rank
from hopbench.retrieval.types import DETAILED, Hit, LazyHits, scored

BEST = [(f"c{place}", 1.0 - place / 100) for place in range(DETAILED + 5)]
ROWS = st.lists(st.integers(0, 30), max_size=20, unique=True)


def of(place: int) -> Hit:
    return Hit(*BEST[place], components={"place": place})


def some(places: range) -> list[Hit]:
    return [of(place) for place in places]


def test_the_first_hits_are_made_at_once_and_the_others_when_they_are_looked_at() -> None:
    made: list[int] = []

    def make(places: range) -> list[Hit]:
        made.extend(places)
        return some(places)

    hits = LazyHits(BEST, make)

    assert made == [*range(DETAILED)]
    assert list(scored(hits)) == BEST
    assert len(hits) == len(BEST)
    assert made == [*range(DETAILED)]
    assert hits[DETAILED] == of(DETAILED)
    assert hits[-1] == of(len(BEST) - 1)
    assert made == [*range(len(BEST))]


def test_they_are_equal_to_any_sequence_of_the_same_hits() -> None:
    hits, plain = LazyHits(BEST, some), [of(place) for place in range(len(BEST))]

    assert hits == plain == list(hits)
    assert hits == LazyHits(BEST, some)
    assert repr(hits) == repr(plain)
    assert hits != plain[1:]
    assert hits != "c0"
    assert hits[-1] == plain[-1]
    assert hits[18:23] == plain[18:23]
    assert hits[::-7] == plain[::-7]
    assert list(scored(plain)) == BEST
    with pytest.raises(IndexError):
        hits[len(BEST)]


@given(
    lists=st.lists(ROWS, min_size=2, max_size=3), weight=st.sampled_from([0.0, 0.3, 1.0, 2.0]), keep=st.integers(1, 40)
)
def test_a_fusion_of_rows_is_that_of_their_ids(lists: Sequence[Sequence[int]], weight: float, keep: int) -> None:
    named = dict(zip("abc", lists, strict=False))
    weights = dict(zip("abc", (1.0, weight, 0.5), strict=True))

    rows, scores, parts = rows_by_reciprocal_rank({k: np.array(v, np.int64) for k, v in named.items()}, weights, keep)

    own = {name: reciprocal_rank([[f"{row:02}" for row in each]]) for name, each in named.items()}
    total: dict[str, float] = {}
    for name, part in own.items():
        for chunk, value in part.items():
            total[chunk] = total.get(chunk, 0.0) + weights[name] * value
    best = ordered(total)[:keep]
    assert [(f"{row:02}", score) for row, score in zip(rows.tolist(), scores, strict=True)] == best
    for name, part in own.items():
        assert parts[name].tolist() == [round(part.get(chunk, 0.0), 9) for chunk, _ in best]
