"""Document 3's numbers by hand: tag similarity, transfer energy, claims and the bounds that follow from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pytest

from hopbench.retrieval.strategies._activation_spread import (
    BELOW_THRESHOLD,
    DEAD_END,
    EMPTY_FRONTIER,
    MAX_DEPTH,
    SEED_NOT_FOUND,
    Exploration,
    Neighbourhood,
    floored_jaccard,
    transfer_energy,
)
from hopbench.retrieval.types import Step

EDGE_TAGS = ["inventory_policy", "recommendation", "analysis_dependency"]
QUERY_TAGS = ["demand_forecasting", "stockout", "safety_stock", "inventory_policy"]


def tag_similarity(edge: list[str], question: list[str], floor: float = 0.15) -> float:
    return floored_jaccard(len(set(edge) & set(question)), len(edge), len(question), floor)


@pytest.mark.parametrize(
    ("edge", "question", "expected"),
    [
        (EDGE_TAGS, QUERY_TAGS, 0.15 + 0.85 / 6),  # the source's example: 1 shared of 3 + 4 − 1 = 6
        (EDGE_TAGS[1:], QUERY_TAGS, 0.15),  # nothing shared
        (EDGE_TAGS, [], 1.0),  # no question tags
        ([], [], 1.0),
        ([], QUERY_TAGS, 0.15),  # an untagged edge
        (QUERY_TAGS, QUERY_TAGS, 1.0),  # .15 + .85 · 4/4
    ],
)
def test_tag_similarity_is_the_floored_jaccard(edge: list[str], question: list[str], expected: float) -> None:
    assert expected == pytest.approx(tag_similarity(edge, question), abs=1e-12)
    assert tag_similarity(edge, question) == pytest.approx(tag_similarity(edge[::-1], question[::-1]), abs=1e-12)


def test_the_source_s_example_is_292_thousandths() -> None:
    assert round(tag_similarity(EDGE_TAGS, QUERY_TAGS), 3) == 0.292


def test_another_floor_lifts_every_similarity() -> None:
    assert pytest.approx(0.5 + 0.5 / 6) == tag_similarity(EDGE_TAGS, QUERY_TAGS, floor=0.5)


def test_transfer_energy_divides_by_the_root_of_the_degree() -> None:
    # .8 · .5 / √4 · .292 = .2 · .292
    assert pytest.approx(0.0584) == transfer_energy(0.8, 0.5, 4, 0.292)


def passes(hops: int, product_of_degrees: int) -> bool:
    """Whether `hops` hops at w = 1 and tag similarity .292 from R = 1 end above .005; only Π d matters."""
    energy = transfer_energy(1.0, 1.0, product_of_degrees, 0.292)
    for _ in range(hops - 1):
        energy = transfer_energy(energy, 1.0, 1, 0.292)
    return energy > 0.005


def test_how_far_energy_gets_at_the_source_s_similarity() -> None:
    # hops h: .292^h/√Πd > .005, so Πd < (.292^h/.005)²: 290.8 for two, 24.8 for three, .18 for five.
    assert passes(2, 290)
    assert not passes(2, 291)
    assert passes(3, 24)
    assert not passes(3, 25)
    assert not passes(5, 1)


class Tree(Mapping[str, Neighbourhood]):
    """Every node has `width` children, "x" → "x0", "x1", …, and no way back."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __getitem__(self, node: str) -> Neighbourhood:
        return Neighbourhood(self.width, [("RELATED_TO", f"{node}{child}", 1.0, 1.0) for child in range(self.width)])

    def __contains__(self, node: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


def test_three_branches_and_five_levels_are_at_most_243_paths() -> None:
    spread = Exploration.start("s", 1.0)
    for _ in range(5):
        spread.advance(Tree(7), 0.0, 3)
    spread.finish()

    assert 3**5 == len(spread.ended)
    assert {MAX_DEPTH: 243} == {why: spread.terminations().count(why) for why in spread.terminations()}
    assert 3 + 9 + 27 + 81 + 243 == len(spread.reached)


def graph(**edges: dict[str, float]) -> dict[str, Neighbourhood]:
    """Untagged neighbourhoods with similarity 1 and the degree that is written as "d"."""
    return {
        node: Neighbourhood(
            int(targets.get("d", len(targets))),
            [("RELATED_TO", target, weight, 1.0) for target, weight in targets.items() if target != "d"],
        )
        for node, targets in edges.items()
    }


def level(spread: Exploration) -> list[tuple[str, str]]:
    """Parent and child of the frontier's edges."""
    return [(branch.parent.node if branch.parent else "", branch.node) for branch in spread.frontier]


def two_parents() -> Exploration:
    """A frontier of a and b with energies .9 and .8 (degree 1 so that weights are energies)."""
    spread = Exploration.start("s", 1.0)
    spread.advance(graph(s={"a": 0.9, "b": 0.8, "d": 1}), 0.005, 3)
    return spread


def test_a_claim_goes_to_the_highest_energy_and_the_loser_takes_its_next() -> None:
    spread = two_parents()
    around = graph(
        a={"s": 1.0, "x": 1.0, "d": 1},
        b={"s": 1.0, "x": 1.0, "y": 0.9, "z": 0.8, "v": 0.7, "u": 0.6, "d": 1},  # .8 for x is less than a's .9
    )

    spread.advance(around, 0.005, 3)

    assert [("a", "x"), ("b", "y"), ("b", "z"), ("b", "v")] == level(spread)


def test_what_its_owner_does_not_take_goes_to_nobody_this_level() -> None:
    spread = two_parents()
    around = graph(
        a={"p": 1.0, "q": 0.9, "r": 0.8, "x": 0.7, "d": 1},  # .63 for x, a's fourth
        b={"x": 0.7, "y": 0.1, "d": 1},  # .56 for x
    )

    spread.advance(around, 0.005, 3)

    assert [("a", "p"), ("a", "q"), ("a", "r"), ("b", "y")] == level(spread)


def test_equal_claims_go_to_the_smaller_node_and_equal_energies_to_the_smaller_neighbour() -> None:
    spread = Exploration.start("s", 1.0)
    spread.advance(graph(s={"b": 0.9, "a": 0.9, "d": 1}), 0.005, 3)
    around = graph(a={"x": 1.0, "d": 1}, b={"x": 1.0, "z": 0.5, "y": 0.5, "v": 0.5, "u": 0.5, "d": 1})

    spread.advance(around, 0.005, 3)

    assert [("s", "a"), ("s", "b")] == [(b.parent.parent.node, b.parent.node) for b in spread.frontier[:2]]  # type: ignore[union-attr]
    assert [("a", "x"), ("b", "u"), ("b", "v"), ("b", "y")] == level(spread)


def test_energy_at_the_threshold_does_not_pass() -> None:
    spread = Exploration.start("s", 1.0)

    spread.advance(graph(s={"a": 0.005, "b": 0.005000002, "d": 1}), 0.005, 3)

    assert [("s", "b")] == level(spread)


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ({}, [SEED_NOT_FOUND]),
        ({"s": Neighbourhood(0)}, [DEAD_END, EMPTY_FRONTIER]),
        ({"s": Neighbourhood(-1)}, [BELOW_THRESHOLD, EMPTY_FRONTIER]),  # it has edges, none strong enough came back
        (graph(s={"a": 0.004, "d": 1}), [BELOW_THRESHOLD, EMPTY_FRONTIER]),
    ],
)
def test_why_a_seed_goes_nowhere(around: dict[str, Neighbourhood], expected: list[str]) -> None:
    spread = Exploration.start("s", 1.0)

    spread.advance(around, 0.005, 3)
    spread.finish()

    assert expected == spread.terminations()
    assert [] == spread.reached


def test_a_node_with_only_the_way_back_is_a_dead_end_and_one_with_a_weak_edge_is_below_the_threshold() -> None:
    spread = two_parents()

    spread.advance(graph(a={"s": 0.9}, b={"s": 0.9, "d": 2}), 0.005, 3)  # b's second edge is too weak to come back

    assert [("a", DEAD_END), ("b", BELOW_THRESHOLD)] == [(branch.node, why) for branch, why in spread.ended]


def test_a_node_whose_every_candidate_was_claimed_is_a_dead_end() -> None:
    spread = two_parents()

    spread.advance(graph(a={"s": 0.9, "x": 1.0}, b={"s": 0.8, "x": 1.0}), 0.005, 3)

    assert [("b", DEAD_END)] == [(branch.node, why) for branch, why in spread.ended]


def test_a_path_tells_each_edge_and_the_energy_after_it() -> None:
    spread = two_parents()
    spread.advance(graph(a={"s": 0.9, "x": 0.5}), 0.005, 3)
    (x,) = spread.frontier

    assert (
        Step("RELATED_TO", "s", "a", 0.9, 0.9),
        Step("RELATED_TO", "a", "x", 0.5, round(0.9 * 0.5 / math.sqrt(2), 9)),
    ) == x.steps()
