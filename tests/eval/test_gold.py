"""Gold: passages, alternative sets and grades."""

from __future__ import annotations

import pickle

import pytest

from hopbench.eval.types import NO_GOLD, Benchmark, BenchmarkQuestion, Gold
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

SETS = Gold.any_of([["p1", "p2"], ["p2", "p5", "p6"]])
GRADES = Gold.judged({"p1": 2, "p2": 1, "p3": 0, "p4": -1})


def test_ids_alone_are_one_set_of_equal_passages() -> None:
    gold = Gold(["p2", "p1", "p2"])
    assert (("p2", "p1"), (("p2", "p1"),), {"p2": 1, "p1": 1}) == (gold, gold.sets, gold.gains)
    assert (2, {}, False, []) == (gold.size, gold.grades, gold.graded, gold.digest_fields())
    assert ((), (), 0) == (NO_GOLD, NO_GOLD.sets, NO_GOLD.size)
    assert Gold(["p1"]) == BenchmarkQuestion("q", "?", gold=("p1",)).gold  # type: ignore[arg-type]


def test_alternative_sets() -> None:
    assert (("p1", "p2", "p5", "p6"), (("p1", "p2"), ("p2", "p5", "p6")), 2) == (SETS, SETS.sets, SETS.size)
    assert Gold(["p1", "p2"]) == Gold.any_of([["p1", "p2"]])
    for found, best, share in (
        ("", (1, ("p1", "p2")), 0),
        (("p5", "p6"), (2, ("p2",)), 2 / 3),
        (("p1", "p2"), (1, ()), 1),
    ):
        assert (best, share) == (SETS.best_set(found), SETS.share(found))
    assert [False, True, True] == [SETS.complete_in(found) for found in ({"p1"}, {"p1", "p2"}, {"p2", "p5", "p6"})]
    assert NO_GOLD.complete_in(())


@pytest.mark.parametrize(
    ("sets", "message"),
    [([["p1"], []], "holds an empty set"), ([["p1", "p2"], ["p2", "p1"]], r"holds the set \['p2', 'p1'\] twice")],
)
def test_sets_that_say_nothing_are_refused(sets: list[list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Gold.any_of(sets)


def test_a_threshold_decides_which_grades_are_gold() -> None:
    assert (("p1", "p2"), {"p1": 2, "p2": 1}, True) == (GRADES, GRADES.gains, GRADES.graded)
    assert [("p1", "p2"), ("p1",), ()] == [GRADES.at_least(least) for least in (1, 2, 3)]
    assert GRADES == GRADES.at_least(2).at_least(1)  # no grade is lost
    assert [("p1",), ()] == [Gold(["p1"]).at_least(least) for least in (1, 2)]
    assert not Gold.judged({"p1": 1, "p2": 0}).graded


def test_equal_are_ids_sets_and_grades() -> None:
    assert SETS != Gold(SETS)
    assert GRADES != Gold(GRADES)
    assert Gold(["p1"]) == ("p1",) != Gold(["p2"])
    assert [SETS, GRADES, NO_GOLD] == pickle.loads(pickle.dumps([SETS, GRADES, NO_GOLD]))


def digest(gold: Gold) -> str:
    return Benchmark("b", (Passage("p1", "", "x"),), (BenchmarkQuestion("q", "?", gold=gold),)).digest


def test_the_digest_of_ordinary_gold_is_as_before_and_sets_and_grades_change_it() -> None:
    ordinary = "e1d78bdf"  # what the digest of two gold passages has always been
    assert ordinary == digest(Gold(["p1", "p2"]))[:8] == digest(Gold.judged({"p2": 1, "p3": 0, "p1": 1}))[:8]
    others = [
        Gold.any_of([["p1"], ["p2"]]),
        Gold.any_of([["p1", "p2"], ["p2"]]),
        *(Gold.judged({"p1": 2, "p2": 1}), Gold.judged({"p1": 1, "p2": 2}), Gold.judged({"p1": 1, "p2": 1, "p3": -1})),
    ]
    assert len(others) + 1 == len({*map(digest, others), digest(Gold(["p1", "p2"]))})
    assert digest(Gold.any_of([["p1"], ["p2"]])) == digest(Gold.any_of([["p2"], ["p1"]]))
