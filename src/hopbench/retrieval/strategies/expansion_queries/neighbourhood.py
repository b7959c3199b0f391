"""From the entities a question names to their neighbours, and from both to document 2's search queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.types import Counters, Step


def proximity(hops: int) -> float:
    """Document 2's graph proximity 1/(1 + hops): 1, .5, .333."""
    return 1.0 / (1 + hops)


class Neighbour(NamedTuple):
    """An entity `hops` from the seed: `strength` is the product along the best shortest route, `edge` its last's."""

    hops: int
    strength: float
    edge: float
    parent: str


@dataclass(slots=True)
class SeedNeighbourhood:
    """The breadth-first neighbourhood of one seed entity; `frontier` is what the last hop reached."""

    seed: str
    names: dict[str, str] = field(default_factory=dict)
    reached: dict[str, Neighbour] = field(default_factory=dict)
    frontier: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start at the seed."""
        self.frontier = [self.seed]

    def visited(self) -> list[str]:
        """The seed and all entities reached."""
        return sorted({self.seed, *self.reached})

    def add_hop(self, record: Record) -> None:
        """Add one hop's edges: of several routes to a neighbour the strongest, ties to the smaller parent id."""
        best: dict[str, tuple[float, str, float]] = {}
        for parent, target, edge in zip(record["source"], record["target"], record["weight"], strict=True):
            before = self.reached[parent].strength if parent in self.reached else 1.0
            route = (-round(before * edge, DECIMALS), parent, edge)
            if target not in best or route < best[target]:
                best[target] = route
        self.names.update(zip(record["target"], record["name"], strict=True))
        hops = self.reached[self.frontier[0]].hops + 1 if self.frontier[0] in self.reached else 1
        self.reached |= {target: Neighbour(hops, -lost, edge, parent) for target, (lost, parent, edge) in best.items()}
        self.frontier = sorted(best)

    def path(self, entity: str) -> tuple[Step, ...]:
        """The edges from the seed to a neighbour, each with the proximity after it."""
        here = self.reached.get(entity)
        if here is None:
            return ()
        last = Step(RELATED_TO, here.parent, entity, here.edge, round(proximity(here.hops), DECIMALS))
        return (*self.path(here.parent), last)


@dataclass(frozen=True, slots=True)
class ExpansionQuery:
    """A text to search, made of a seed's name and a neighbour's (or of the seed's alone: no path, proximity 1)."""

    text: str
    around: SeedNeighbourhood
    neighbour: str = ""
    proximity: float = 1.0
    strength: float = 1.0

    @property
    def seed(self) -> str:
        """The entity whose name comes first."""
        return self.around.seed

    @property
    def path(self) -> tuple[Step, ...]:
        """The edges from the seed to the neighbour."""
        return self.around.path(self.neighbour)


def expand(
    batch: Batch,
    counters: Counters,
    neighbourhoods: Sequence[Sequence[SeedNeighbourhood]],
    depth: int,
    min_strength: float,
    enough: int,
) -> None:
    """Grow the neighbourhoods of all seeds of all questions together, one round trip a hop.

    `neighbourhoods` has a list per question. A question with `enough` pairs goes no further: nearer pairs come first,
    so farther ones would be cut off anyway. The seeds' names come with the first hop (depth 0 reads only them).
    """
    for hop in range(max(depth, 1)):
        unfilled = (each for each in neighbourhoods if hop == 0 or len(_pairs(each)) < enough)
        going = [neighbourhood for each in unfilled for neighbourhood in each if neighbourhood.frontier]
        if not going:
            return
        rows = [
            {"q": number, "ids": neighbourhood.frontier, "visited": neighbourhood.visited()}
            for number, neighbourhood in enumerate(going)
        ]
        least = min_strength if depth else 2.0
        records = batch.read(counters, cypher.ENTITY_NEIGHBOURS, frontier=rows, min_strength=least)
        reached = {record["q"] for record in records if record["part"] == "edges" and record["target"]}
        for record in records:
            neighbourhood = going[record["q"]]
            if record["part"] == "names":
                neighbourhood.names.update(zip(record["source"], record["name"], strict=True))
            else:
                counters.edges_touched += len(record["target"])
                neighbourhood.add_hop(record)
        for number, neighbourhood in enumerate(going):
            neighbourhood.frontier = neighbourhood.frontier if number in reached else []


def _pairs(neighbourhoods: Sequence[SeedNeighbourhood]) -> set[frozenset[str]]:
    return {
        frozenset((neighbourhood.seed, entity)) for neighbourhood in neighbourhoods for entity in neighbourhood.reached
    }


def expansion_queries(
    neighbourhoods: Sequence[SeedNeighbourhood], limit: int, seeds_alone: bool
) -> list[ExpansionQuery]:
    """The "seed neighbour" queries of one question, then its seeds' names alone.

    Nearest first, then strongest, then by text; each unordered pair of entities once; at most `limit` pairs.
    """
    by_seed = {neighbourhood.seed: neighbourhood for neighbourhood in neighbourhoods}
    pairs: dict[frozenset[str], ExpansionQuery] = {}
    for hops, lost, text, seed, entity in sorted(_candidates(neighbourhoods)):
        pair = frozenset((seed, entity))
        if len(pairs) == limit:
            break
        if pair not in pairs:
            pairs[pair] = ExpansionQuery(text, by_seed[seed], entity, proximity(hops), -lost)
    alone = [
        ExpansionQuery(neighbourhood.names[neighbourhood.seed], neighbourhood)
        for neighbourhood in neighbourhoods
        if neighbourhood.seed in neighbourhood.names
    ]
    return [*pairs.values(), *(alone if seeds_alone else [])]


def _candidates(neighbourhoods: Sequence[SeedNeighbourhood]) -> Iterator[tuple[int, float, str, str, str]]:
    for neighbourhood in neighbourhoods:
        for entity, here in neighbourhood.reached.items():
            yield (
                here.hops,
                -here.strength,
                f"{neighbourhood.names[neighbourhood.seed]} {neighbourhood.names[entity]}",
                neighbourhood.seed,
                entity,
            )
