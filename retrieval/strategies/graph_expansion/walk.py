"""Document 1's expansion of a whole batch, a round trip a depth; what it reaches does not depend on the scoring.

Trials share the first hop whatever their thresholds: there the best way to a chunk is one edge of each kind, so what
was reached down to the lowest thresholds holds the best of every higher one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.graph_expansion.routes import Floats, Found, Hop, Ints, Marks, Reached, steps_to
from hopbench.retrieval.types import Counters, Step

NEVER = 2.0  # above every similarity and strength: a threshold that no edge passes
SEED = Reached(0, carried=1.0)
Frontier = tuple[Sequence[str], Floats]  # chunk ids in order, each with what its route carries


@dataclass(frozen=True, kw_only=True)
class Walk:
    """How far an expansion goes, and over which edges; `enough` chunks beside the seeds end it."""

    depth: int
    min_similarity: float
    min_strength: float
    path_strength: str
    enough: int


@dataclass(slots=True)
class Leg:
    """One question's hop from its `frontier` (chunk ids in order, each with what its route carried).

    `shown` holds what was put into words of it, for all walks that share it: by place, and by what a walk lets pass.
    """

    hop: Hop
    depth: int
    frontier: Sequence[str]
    carried: Floats
    found: Found
    shown: dict[tuple[int, bool, bool], tuple[Reached, tuple[Step, ...]]] = field(default_factory=dict)

    def reached(self, place: int, near: bool, led: bool) -> Reached:
        """The chunk in a place of what was found, if its SIMILAR_TO edge (`near`) and its way (`led`) count."""
        found, here = self.found, Reached(self.depth)
        if near:
            going = found.carried_by.item(place)
            here.similarity = found.similarities.item(place)
            here.similar_to = self.frontier[found.similar_to.item(place)]
            here.carried, here.carried_from = self.carried.item(going), self.frontier[going]
            here.carried_similarity = found.carried_similarities.item(place)
        if led:
            routes, way = found.routes, found.ways.item(place)
            here.path, here.strength = routes.paths.item(way), routes.strengths.item(way)
            here.entity = self.hop.entities[routes.entities.item(way)]
            here.via = self.hop.entities[routes.vias.item(way)]
            here.source = self.frontier[routes.sources.item(way)]
            here.mention = self.hop.mentions.weights.item(found.mentions.item(place))
            if here.path > here.carried:
                here.carried, here.carried_from = here.path, ""
        return here


@dataclass(slots=True)
class Passed:
    """What a walk lets pass of a leg: whether each found chunk's SIMILAR_TO edge (`near`) and its way (`led`) count."""

    leg: Leg
    near: NDArray[np.bool_]
    led: NDArray[np.bool_]

    @classmethod
    def of(cls, leg: Leg, walk: Walk) -> Passed:
        """What passes the thresholds on the leg's last edges."""
        found = leg.found
        near = (found.similar_to >= 0) & (found.similarities >= walk.min_similarity)
        led = found.ways >= 0
        led[led] = found.routes.strengths[found.ways[led]] >= walk.min_strength
        return cls(leg, near, led)

    def new(self, known: Ints) -> Ints:
        """The places of what passes and is not among the `known` rows."""
        rows, fresh = self.leg.found.rows, self.near | self.led
        at = np.searchsorted(rows, known)
        inside = at < len(rows)
        at, known = at[inside], known[inside]
        fresh[at[rows[at] == known]] = False
        return np.flatnonzero(fresh)

    def strengths(self, places: Ints) -> Floats:
        """max(similarity, path) of each."""
        found = self.leg.found
        return self._larger(found.similarities, found.paths, places)

    def carried(self, places: Ints) -> Floats:
        """What the best carried route to each carries."""
        return self._larger(self.leg.carried[self.leg.found.carried_by], self.leg.found.paths, places)

    def _larger(self, near: Floats, led: Floats, places: Ints) -> Floats:
        near, led = np.where(self.near[places], near[places], 0.0), np.where(self.led[places], led[places], 0.0)
        return np.asarray(np.maximum(near, led))


@dataclass(slots=True)
class Expansion:
    """What one question reached: `rows` (index rows, ascending) are the chunks beside its seeds.

    `strengths` are max(similarity, path) of each, `depths` where it was reached, `places` where it stands in that leg.
    """

    seeds: Sequence[str]
    row_of: Mapping[str, int]
    legs: list[Passed] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    strengths: Floats = field(default_factory=lambda: np.zeros(0))
    depths: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    places: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, passed: Passed) -> Ints:
        """Take a leg's new chunks in; returns their places there."""
        places = passed.new(np.concatenate([self.rows, [self.row_of[seed] for seed in self.seeds]]))
        rows = np.concatenate([self.rows, passed.leg.found.rows[places]])
        order = np.argsort(rows, kind="stable")
        self.legs.append(passed)
        self.rows = rows[order]
        self.strengths = np.concatenate([self.strengths, passed.strengths(places)])[order]
        self.depths = np.concatenate([self.depths, np.full(len(places), passed.leg.depth)])[order]
        self.places = np.concatenate([self.places, places])[order]
        return places

    def ways(self, chunks: Sequence[str], numbers: Ints) -> list[tuple[Reached, tuple[Step, ...]]]:
        """How some chunks, by their numbers in the order of rows, were reached; and the edges from a seed to each."""
        depths, places = self.depths[numbers], self.places[numbers]
        found: list[tuple[Reached, tuple[Step, ...]]] = [(SEED, ())] * len(chunks)
        for depth, passed in enumerate(self.legs, 1):
            own = np.flatnonzero(depths == depth)
            at, shown = places[own], passed.leg.shown
            for n, *seen in zip(
                *(column.tolist() for column in (own, at, passed.near[at], passed.led[at])), strict=True
            ):
                known = shown.get(tuple(seen))
                if known is None:
                    here = passed.leg.reached(*seen)
                    known = shown[tuple(seen)] = here, steps_to(chunks[n], here, self._reached)
                found[n] = known
        return found

    def told(self) -> dict[str, object]:
        """What the expansion met: how often edges led to a chunk, the chunks beside the seeds, and those by depth.

        An entity that several frontier chunks mention is read once: `entity_cache_hits` of the `entity_lookups` need
        no reading (document 1's label cache).
        """
        routes = [passed.leg.found.routes for passed in self.legs]
        lookups = sum(one.looked_up for one in routes)
        return {
            "found": sum(int(passed.near.sum() + passed.led.sum()) for passed in self.legs),
            "unique": len(self.rows),
            "reached_at_depth": {str(d): int((self.depths == d).sum()) for d in range(1, len(self.legs) + 1)},
            "entity_lookups": lookups,
            "entity_cache_hits": lookups - sum(one.read for one in routes),
        }

    def _reached(self, chunk: str) -> Reached:
        if chunk in self.seeds:
            return SEED
        return self.ways([chunk], np.searchsorted(self.rows, [self.row_of[chunk]]))[0][0]


def walked(
    batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], key: Hashable, walk: Walk
) -> list[Expansion]:
    """The expansion of each question from its seeds (`key` names them), kept for trials that only score otherwise."""
    return batch.memo.charged((name, key, walk), counters, lambda spent: _walked(batch, spent, name, seeds, key, walk))


def _walked(
    batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], key: Hashable, walk: Walk
) -> list[Expansion]:
    found = [Expansion(chunks, batch.index.row_of) for chunks in seeds]
    frontiers = {q: (sorted(chunks), np.ones(len(chunks))) for q, chunks in enumerate(seeds)}
    least = walk.min_similarity, walk.min_strength
    floors = batch.floor(name, "min_similarity", least[0]), batch.floor(name, "min_strength", least[1])
    for depth in range(1, walk.depth + 1):
        going = {q: ids for q, ids in frontiers.items() if ids[0] and len(found[q].rows) < walk.enough}
        if not going:
            break
        hop = _hop(batch, counters, going, floors, walk)
        make = partial(_legs, batch, hop if depth == 1 else hop.above(*least), going, depth, walk)
        legs = batch.memo.get(("legs", key, *floors), make) if depth == 1 else make()
        for q in going:
            passed = Passed.of(legs[q], walk)
            places = found[q].add(passed)
            if depth < walk.depth:
                rows = passed.leg.found.rows[places].tolist()
                frontiers[q] = [batch.index.chunks[row].id for row in rows], passed.carried(places)
    return found


def _hop(
    batch: Batch, counters: Counters, going: Mapping[int, Frontier], floors: tuple[float, float], walk: Walk
) -> Hop:
    """One round trip, read down to the floors and charged what passes the thresholds."""
    ids = sorted({chunk for frontier, _ in going.values() for chunk in frontier})

    def read() -> Hop:
        records, _rows = batch.read_uncharged(
            cypher.EXPANSION_HOP, ids=ids, min_similarity=floors[0], min_strength=floors[1]
        )
        return Hop.read(records, ids, batch.index.row_of)

    hop = batch.memo.get(("hop", tuple(ids), *floors), read)
    edges = hop.edges(walk.min_similarity, walk.min_strength)
    counters.round_trips += 1
    counters.rows += edges
    counters.edges_touched += edges
    return hop


def _legs(batch: Batch, hop: Hop, going: Mapping[int, Frontier], depth: int, walk: Walk) -> dict[int, Leg]:
    marks, product = (Marks(len(batch.index.chunks)), Marks(len(hop.entities))), walk.path_strength == "product"
    return {
        q: Leg(hop, depth, ids, carried, hop.reach(ids, carried, product, marks)) for q, (ids, carried) in going.items()
    }


def evidence(expansion: Expansion, losses: Mapping[int, float]) -> Floats:
    """max(similarity, path) times what is lost by depth, of each reached chunk."""
    factors = np.array([0.0, *(losses[depth] for depth in sorted(losses))])[expansion.depths]
    return np.asarray(expansion.strengths * factors)
