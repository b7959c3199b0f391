"""Document 1's expansion of a whole batch, a round trip a depth; what it reaches does not depend on the scoring."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from retrieval.graph import cypher
from retrieval.index import Batch
from retrieval.strategies.graph_expansion_routes import Floats, Found, Hop, Ints, Reached, Ways, steps_to
from retrieval.types import Counters, Step

NEVER = 2.0  # above every similarity and strength: a threshold that no edge passes


@dataclass(frozen=True, kw_only=True)
class Walk:
    """How far an expansion goes, and over which edges; `enough` chunks beside the seeds end it."""

    depth: int
    min_similarity: float
    min_strength: float
    path_strength: str
    enough: int


@dataclass(slots=True)
class Expansion:
    """What one question reached: `rows` (index rows, ascending) are the chunks beside its seeds, called `ids`.

    `strengths` are max(similarity, path) of each, `depths` where it was reached. What led to the chunks of the last hop
    is put into `reached` only when it is asked for: most of them are never shown.
    """

    seeds: list[str]
    reached: dict[str, Reached]
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    strengths: Floats = field(default_factory=lambda: np.zeros(0))
    depths: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    ids: Sequence[str] = ()
    last: _Last | None = None
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def at(self, place: int) -> Reached:
        """How the chunk in that place was reached."""
        chunk = self.ids[place]
        known = self.reached.get(chunk)
        if known is None:
            known = self.reached[chunk] = cast("_Last", self.last).to(chunk)  # only the last hop leaves any out
        return known

    def path(self, chunk: str) -> tuple[Step, ...]:
        """The edges from a seed to the chunk."""
        if chunk not in self.steps:
            self.steps[chunk] = steps_to(chunk, self.reached)
        return self.steps[chunk]


def walked(
    batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], key: Hashable, walk: Walk
) -> list[Expansion]:
    """The expansion of each question from its seeds (`key` names them), kept for trials that only score otherwise."""
    return batch.kept.of((name, key, walk), counters, lambda spent: _walked(batch, spent, name, seeds, walk))


def _walked(batch: Batch, counters: Counters, name: str, seeds: Sequence[list[str]], walk: Walk) -> list[Expansion]:
    found = [Expansion(chunks, {chunk: Reached(0, carried=1.0) for chunk in chunks}) for chunks in seeds]
    frontiers: list[list[str]] = [sorted(chunks) for chunks in seeds]
    for depth in range(1, walk.depth + 1):
        going = [q for q, ids in enumerate(frontiers) if ids and len(found[q].reached) - len(seeds[q]) < walk.enough]
        if not going:
            break
        ids = sorted({chunk for q in going for chunk in frontiers[q]})
        hop = _hop(batch, counters, name, ids, walk)
        for q in going:
            frontiers[q] = _reach(batch, found[q], hop, frontiers[q], depth, walk)
    for one in found:
        _close(one)
    return found


def _hop(batch: Batch, counters: Counters, name: str, ids: Sequence[str], walk: Walk) -> Hop:
    """One round trip, read down to the floors and charged what passes the thresholds."""
    floors = {
        "min_similarity": batch.floor(name, "min_similarity", walk.min_similarity),
        "min_strength": batch.floor(name, "min_strength", walk.min_strength),
    }

    def read(_: Counters) -> Hop:
        return Hop.read(batch.read_uncharged(cypher.EXPANSION_HOP, ids=ids, **floors)[0], ids, batch.index.row_of)

    hop = batch.kept.of(("hop", tuple(ids), *floors.values()), Counters(), read)
    hop, edges = hop.above(walk.min_similarity, walk.min_strength)
    counters.round_trips += 1
    counters.rows += edges
    counters.edges_touched += edges
    return hop


def _reach(batch: Batch, one: Expansion, hop: Hop, frontier: Sequence[str], depth: int, walk: Walk) -> list[str]:
    """One question's hop: adds what it newly reaches, and returns that in the order of ids."""
    known = np.zeros(len(batch.index.chunks), bool)
    known[[batch.index.row_of[chunk] for chunk in one.reached]] = True
    carried = np.array([one.reached[chunk].carried for chunk in frontier])
    found, ways = hop.reach(frontier, carried, known, walk.path_strength == "product")
    paths = np.where(found.ways >= 0, ways.paths[found.ways], 0.0) if len(ways.paths) else np.zeros(len(found.rows))
    ids = [batch.index.chunks[row].id for row in found.rows.tolist()]
    one.rows = np.concatenate([one.rows, found.rows])
    one.strengths = np.concatenate([one.strengths, np.maximum(found.similarities, paths)])
    one.depths = np.concatenate([one.depths, np.full(len(found.rows), depth)])
    one.ids = [*one.ids, *ids]

    if depth < walk.depth:
        every = _Led(hop, frontier, carried, depth, found, ways)
        one.reached.update((chunk, every.to(place)) for place, chunk in enumerate(ids))
    else:
        one.last = _Last(lambda: _Led(hop, frontier, carried, depth, found, ways), ids)
    return ids


class _Led:
    """What led to each chunk of one question's hop; plain lists, as single values of arrays are slow to read."""

    def __init__(
        self, hop: Hop, frontier: Sequence[str], carried: Floats, depth: int, found: Found, ways: Ways
    ) -> None:
        self._entities, self._frontier, self._depth = hop.entities, frontier, depth
        self._carried = carried.tolist()
        self._found = list(zip(*(column.tolist() for column in found), strict=True))
        self._ways = list(zip(*(column.tolist() for column in ways), strict=True))

    def to(self, place: int) -> Reached:
        """The chunk in a place of what the hop found."""
        _, similarity, near, going, going_similarity, way, mention = self._found[place]
        here = Reached(self._depth)
        if near >= 0:
            here.similarity, here.similar_to = similarity, self._frontier[near]
            here.carried, here.carried_from = self._carried[going], self._frontier[going]
            here.carried_similarity = going_similarity
        if way >= 0:
            here.path, entity, source, via, here.strength = self._ways[way]
            here.entity, here.via = self._entities[entity], self._entities[via]
            here.source, here.mention = self._frontier[source], mention
            if here.path > here.carried:
                here.carried, here.carried_from = here.path, ""
        return here


@dataclass
class _Last:
    """What the last hop reached, put into lists when it is first asked for."""

    make: Callable[[], _Led]
    ids: Sequence[str]

    def to(self, chunk: str) -> Reached:
        """What led to a chunk."""
        return self._led.to(self._places[chunk])

    @cached_property
    def _led(self) -> _Led:
        return self.make()

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {chunk: place for place, chunk in enumerate(self.ids)}


def _close(one: Expansion) -> None:
    """Put what the hops reached in the order of rows."""
    order = np.argsort(one.rows, kind="stable")
    one.rows, one.strengths, one.depths = one.rows[order], one.strengths[order], one.depths[order]
    one.ids = [one.ids[place] for place in order.tolist()]


def evidence(expansion: Expansion, losses: Mapping[int, float]) -> Floats:
    """max(similarity, path) times what is lost by depth, of each reached chunk."""
    factors = np.array([0.0, *(losses[depth] for depth in sorted(losses))])[expansion.depths]
    return np.asarray(expansion.strengths * factors)
