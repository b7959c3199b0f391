"""Document 1's expansion of a whole batch, a round trip a depth; what it reaches does not depend on the scoring."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from retrieval.graph import cypher
from retrieval.index import Batch
from retrieval.strategies.graph_expansion_routes import Hop, Reached, Way, by_entity, steps_to
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
    """What one question reached: `rows` (index rows, ascending) are the chunks beside its seeds.

    `strengths` are max(similarity, path) of each, `depths` where it was reached. Chunks of the last hop that no
    SIMILAR_TO edge led to are not in `reached` but have the place of their way in `owners` (others −1).
    """

    seeds: list[str]
    reached: dict[str, Reached]
    ids: Sequence[str] = ()
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    strengths: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    depths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    owners: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    mentions: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    ways: Sequence[Way] = ()
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def at(self, place: int) -> Reached:
        """How the chunk in that place was reached."""
        chunk = self.ids[place]
        if chunk not in self.reached:
            way = self.ways[self.owners[place]]
            self.reached[chunk] = by_entity(Reached(int(self.depths[place])), way, float(self.mentions[place]))
        return self.reached[chunk]

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
        _close(batch, one)
    return found


def _hop(batch: Batch, counters: Counters, name: str, ids: Sequence[str], walk: Walk) -> Hop:
    """One round trip, read down to the floors and charged what passes the thresholds."""
    floors = {
        "min_similarity": batch.floor(name, "min_similarity", walk.min_similarity),
        "min_strength": batch.floor(name, "min_strength", walk.min_strength),
    }

    def read(_: Counters) -> Hop:
        return Hop.read(batch.read_uncharged(cypher.EXPANSION_HOP, ids=ids, **floors)[0], batch.index.row_of)

    hop = batch.kept.of(("hop", tuple(ids), *floors.values()), Counters(), read)
    hop = hop.above(walk.min_similarity, walk.min_strength)
    counters.round_trips += 1
    counters.rows += hop.edges
    counters.edges_touched += hop.edges
    return hop


def _reach(batch: Batch, one: Expansion, hop: Hop, frontier: Sequence[str], depth: int, walk: Walk) -> list[str]:
    """One question's hop: adds what it newly reaches, and returns that, sorted; after the last hop nothing is next."""
    similar, ways = hop.reach(frontier, one.reached, depth, walk.path_strength)
    rows, owners, mentions = hop.mentioned(ways)
    ids, row_of = batch.index.chunks, batch.index.row_of
    known = np.zeros(len(ids), bool)
    known[[row_of[chunk] for chunk in one.reached]] = True
    new = ~known[rows]
    rows, owners, mentions = rows[new], owners[new], mentions[new]
    last = depth == walk.depth
    also = np.isin(rows, [row_of[chunk] for chunk in similar]) if last else np.ones(len(rows), bool)
    for place in np.flatnonzero(also).tolist():
        chunk = ids[rows[place]].id
        here = similar.get(chunk) or similar.setdefault(chunk, Reached(depth))
        by_entity(here, ways[owners[place]], float(mentions[place]))
    one.reached.update(similar)
    if last:
        one.ways, one.rows, one.owners, one.mentions = ways, rows[~also], owners[~also], mentions[~also]
        one.depths = np.full(len(one.rows), depth)
    return sorted(similar)


def _close(batch: Batch, one: Expansion) -> None:
    """Put all that was reached beside the seeds into arrays, by row."""
    near = {chunk: here for chunk, here in one.reached.items() if here.depth}
    rows = np.array([batch.index.row_of[chunk] for chunk in near], np.int64)
    strengths = [max(here.similarity, here.path) for here in near.values()]
    paths = -np.array([way.lost for way in one.ways])[one.owners] if one.ways else np.zeros(0)
    all_rows = np.concatenate([rows, one.rows])
    order = np.argsort(all_rows, kind="stable")
    one.rows = all_rows[order]
    one.strengths = np.concatenate([np.array(strengths, float), paths])[order]
    one.depths = np.concatenate([np.array([h.depth for h in near.values()], np.int64), one.depths])[order]
    one.owners = np.concatenate([np.full(len(near), -1), one.owners])[order]
    one.mentions = np.concatenate([np.zeros(len(near)), one.mentions])[order]
    one.ids = [batch.index.chunks[row].id for row in one.rows.tolist()]


def evidence(expansion: Expansion, losses: Mapping[int, float]) -> NDArray[np.float64]:
    """max(similarity, path) times what is lost by depth, of each reached chunk."""
    factors = np.array([0.0, *(losses[depth] for depth in sorted(losses))])[expansion.depths]
    return np.asarray(expansion.strengths * factors)
