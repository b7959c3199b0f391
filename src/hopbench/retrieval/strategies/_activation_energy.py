"""Activation energy: what an edge passes on, and how one seed's energy spreads level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.types import Step

MAX_DEPTH, BELOW_THRESHOLD, DEAD_END = "max_depth", "below_threshold", "dead_end"
EMPTY_FRONTIER, SEED_NOT_FOUND = "empty_frontier", "seed_not_found"
NOT_COUNTED = -1


def floored_jaccard(shared: int, edge: int, question: int, floor: float = 0.15) -> float:
    """Return the similarity of an edge's and a question's tags, from the sizes of both lists and of their overlap.

    1 without question tags, `floor` for an untagged edge, else floor + (1 − floor)·Jaccard: 1 of 6 gives
    0.15 + 0.85/6 = 0.292, no overlap 0.15.
    """
    if question == 0:
        return 1.0
    if edge == 0:
        return floor
    return floor + (1.0 - floor) * shared / (edge + question - shared)


def transfer_energy(activation: float, weight: float, degree: int, similarity: float) -> float:
    """T = R·w/√d · tag_sim, rounded to 9 decimals. 1·1/√4·0.292 = 0.146."""
    return round(activation * weight / math.sqrt(degree) * similarity, DECIMALS)


Edge = tuple[str, str, float, float]
"""An edge as its source sees it: type, target, weight (floored), similarity of its tags with the question's."""

Offer = tuple[float, str, str, float, int]
"""What a frontier node could pass on: −T, target, edge type, weight, place among the node's edges."""


@dataclass(slots=True)
class Neighbourhood:
    """A node's edges that may pass enough energy on or lead to what is visited; `degree` counts all of them.

    `NOT_COUNTED` stands for the degree of a node that has edges, none of which came back: they are all too weak.
    `tags` holds, by edge, what `read_tags` makes its tags from: only the tags of edges that are taken are read.
    """

    degree: int
    edges: list[Edge] = field(default_factory=list)
    tags: list[Any] = field(default_factory=list)
    read_tags: Callable[[Any], Sequence[str]] = tuple

    def tags_of(self, place: int) -> Sequence[str]:
        return self.read_tags(self.tags[place]) if self.tags else ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a path with the energy that reached it and the edge by which it came; a seed has no parent."""

    node: str
    energy: float
    depth: int = 0
    parent: Branch | None = None
    kind: str = ""
    weight: float = 0.0
    tags: Sequence[str] = ()

    def lineage(self) -> list[Branch]:
        line = [self]
        while line[-1].parent is not None:
            line.append(line[-1].parent)
        return line[::-1]

    def steps(self) -> tuple[Step, ...]:
        line = self.lineage()
        return tuple(Step(b.kind, a.node, b.node, b.weight, b.energy) for a, b in pairwise(line))


@dataclass(slots=True)
class Exploration:
    """One seed's breadth-first spread. `ended` are the complete paths, each by its last node, with why it ended."""

    seed: Branch
    frontier: list[Branch]
    visited: set[str]
    reached: list[Branch] = field(default_factory=list)
    ended: list[tuple[Branch, str]] = field(default_factory=list)

    @classmethod
    def start(cls, seed: str, activation: float) -> Exploration:
        branch = Branch(seed, activation)
        return cls(branch, [branch], {seed})

    def advance(self, around: Mapping[str, Neighbourhood], min_activation: float, max_branches: int) -> None:
        """One level: every frontier node's candidates, whose each is, the best of them, and the paths that end.

        A candidate belongs to the frontier node that passes it most energy, ties to the smaller node id, before any
        node takes its best `max_branches`: who loses a candidate takes its next. Equal energies go to the smaller id.
        """
        offers: dict[str, list[Offer]] = {}
        owner: dict[str, tuple[float, str]] = {}
        for branch in (branch for branch in self.frontier if branch.node in around):
            here = around[branch.node]
            own = offers[branch.node] = []
            for place, (kind, target, weight, similarity) in enumerate(here.edges):
                if target not in self.visited:
                    energy = transfer_energy(branch.energy, weight, here.degree, similarity)
                    if energy > min_activation:
                        own.append((-energy, target, kind, weight, place))
                        owner[target] = min(owner.get(target, (0.0, "")), (-energy, branch.node))
        taken: list[Branch] = []
        for branch in self.frontier:
            mine = sorted(offer for offer in offers.get(branch.node, ()) if owner[offer[1]][1] == branch.node)
            for lost, target, kind, weight, place in mine[:max_branches]:
                tags = around[branch.node].tags_of(place)
                taken.append(Branch(target, -lost, branch.depth + 1, branch, kind, weight, tags))
            if not mine:
                self.ended.append((branch, self._why(branch, around.get(branch.node), bool(offers.get(branch.node)))))
        self.frontier = taken
        self.reached += taken
        self.visited.update(branch.node for branch in taken)

    def _why(self, branch: Branch, here: Neighbourhood | None, offered: bool) -> str:
        if here is None:  # what a branch reached exists, so it has only edges that are too weak
            return BELOW_THRESHOLD if branch.parent else SEED_NOT_FOUND
        back = sum(target in self.visited for _, target, _, _ in here.edges)
        # A candidate lost to another branch is visited by now: all that could be entered has been.
        return DEAD_END if offered or back == here.degree else BELOW_THRESHOLD

    def finish(self) -> None:
        self.ended += [(branch, MAX_DEPTH) for branch in self.frontier]
        self.frontier = []

    def terminations(self) -> list[str]:
        """Why each path ended, and `empty_frontier` when all did before the maximum depth."""
        reasons = [why for _, why in self.ended]
        early = not {MAX_DEPTH, SEED_NOT_FOUND} & set(reasons)
        return [*reasons, EMPTY_FRONTIER] if early else reasons
