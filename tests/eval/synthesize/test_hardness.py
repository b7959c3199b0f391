"""How often BM25 and vector search are to find a question's evidence, and which wording is taken for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hopbench.eval.synthesize.generate import ALL, NONE, SOME, TYPES, Quota, Searched, targets


@pytest.mark.parametrize("room", [0.0, 0.4, 1.0])
def test_shares_of_each_type_add_up(room: float) -> None:
    assert dict.fromkeys(TYPES, 1.0) == pytest.approx({name: sum(t.values()) for name, t in targets(room).items()})


def test_bm25_finds_more_where_there_is_more_to_quote() -> None:
    found = [sum(share for cell, share in targets(room)["bridge"].items() if cell[0] == ALL) for room in (0, 1)]
    assert [0.05, 0.50] == pytest.approx(found)


def test_the_wording_that_is_lacking_most_is_taken(made: Sequence[Searched]) -> None:
    wording = made[0].wording
    easy, hard = (Searched(wording, (level, level), ()) for level in (ALL, NONE))
    quota = Quota({easy.found: 0.25, hard.found: 0.75}, 4)
    taken = []
    while (best := quota.best([easy, hard])) is not None:
        quota.take(best.found)
        taken.append(best.found[0])
    assert [NONE, NONE, ALL, NONE] == taken
    assert 0 == quota.missing


def test_bm25_finds_some_of_nearly_every_questions_evidence(made: Sequence[Searched]) -> None:
    levels = [each.found[0] for each in made]
    assert levels.count(NONE) <= 2
    assert levels.count(SOME) > levels.count(ALL) > 0
