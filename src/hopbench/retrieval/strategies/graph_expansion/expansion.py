"""What document 1's expansion reached from each question, hop by hop, under the thresholds of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.graph_expansion.edge_lists import Floats, Ints
from hopbench.retrieval.strategies.graph_expansion.routes import HopEdges, HopResult, ReachedChunk, steps_to
from hopbench.retrieval.types import Step

NEVER = 2.0  # above every similarity and strength: a threshold that no edge passes
SEED_CHUNK = ReachedChunk(0, carried=1.0)


@dataclass(frozen=True, kw_only=True)
class ExpansionLimits:
    """How far an expansion goes, and over which edges; `enough` chunks beside the seeds end it."""

    depth: int
    min_similarity: float
    min_strength: float
    path_strength: str
    enough: int


@dataclass(slots=True)
class QuestionHop:
    """One question's hop from its `frontier` (chunk ids in order); `carried` is the best product of strengths to each.

    `described` caches the provenance of reached chunks for all trials that share the hop: by the chunk's index in the
    result, and by which of its edges pass the trial's thresholds.
    """

    hop: HopEdges
    depth: int
    frontier: Sequence[str]
    carried: Floats
    result: HopResult
    described: dict[tuple[int, bool, bool], tuple[ReachedChunk, tuple[Step, ...]]] = field(default_factory=dict)

    def reached(self, place: int, near: bool, led: bool) -> ReachedChunk:
        """The chunk at an index of the result; `near` and `led` say whether its similarity and entity route count."""
        result, here = self.result, ReachedChunk(self.depth)
        if near:
            going = result.carried_by.item(place)
            here.similarity = result.similarities.item(place)
            here.similar_to = self.frontier[result.similar_to.item(place)]
            here.carried, here.carried_from = self.carried.item(going), self.frontier[going]
            here.carried_similarity = result.carried_similarities.item(place)
        if led:
            routes, route = result.routes, result.ways.item(place)
            here.path, here.strength = routes.paths.item(route), routes.strengths.item(route)
            here.entity = self.hop.entities[routes.entities.item(route)]
            here.via = self.hop.entities[routes.vias.item(route)]
            here.source = self.frontier[routes.sources.item(route)]
            here.mention = self.hop.mentions.weights.item(result.mentions.item(place))
            if here.path > here.carried:
                here.carried, here.carried_from = here.path, ""
        return here


@dataclass(slots=True)
class FilteredHop:
    """A hop under a trial's thresholds: for each chunk whether its SIMILAR_TO edge and its entity route pass them."""

    hop: QuestionHop
    by_similarity: NDArray[np.bool_]
    by_entities: NDArray[np.bool_]

    @classmethod
    def of(cls, hop: QuestionHop, limits: ExpansionLimits) -> FilteredHop:
        """The hop with the thresholds applied to its last edges."""
        result = hop.result
        near = (result.similar_to >= 0) & (result.similarities >= limits.min_similarity)
        led = result.ways >= 0
        led[led] = result.routes.strengths[result.ways[led]] >= limits.min_strength
        return cls(hop, near, led)

    def new(self, known: Ints) -> Ints:
        """Indices, in the result, of chunks that pass and are not among the `known` rows."""
        rows, fresh = self.hop.result.rows, self.by_similarity | self.by_entities
        at = np.searchsorted(rows, known)
        inside = at < len(rows)
        at, known = at[inside], known[inside]
        fresh[at[rows[at] == known]] = False
        return np.flatnonzero(fresh)

    def strengths(self, places: Ints) -> Floats:
        """max(similarity, path) of each."""
        result = self.hop.result
        return self._larger(result.similarities, result.paths, places)

    def carried(self, places: Ints) -> Floats:
        """The best product of strengths over all routes to each."""
        return self._larger(self.hop.carried[self.hop.result.carried_by], self.hop.result.paths, places)

    def _larger(self, near: Floats, led: Floats, places: Ints) -> Floats:
        near, led = (
            np.where(self.by_similarity[places], near[places], 0.0),
            np.where(self.by_entities[places], led[places], 0.0),
        )
        return np.asarray(np.maximum(near, led))


@dataclass(slots=True)
class Expansion:
    """The chunks that one question reached: `rows` (index rows, ascending), without its seeds.

    `strengths` are max(similarity, path) of each, `depths` where it was reached, `places` its index in that hop.
    """

    seeds: Sequence[str]
    row_of: Mapping[str, int]
    hops: list[FilteredHop] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    strengths: Floats = field(default_factory=lambda: np.zeros(0))
    depths: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    places: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, filtered: FilteredHop) -> Ints:
        """Add the new chunks of a hop; returns their indices in its result."""
        places = filtered.new(np.concatenate([self.rows, [self.row_of[seed] for seed in self.seeds]]))
        rows = np.concatenate([self.rows, filtered.hop.result.rows[places]])
        order = np.argsort(rows, kind="stable")
        self.hops.append(filtered)
        self.rows = rows[order]
        self.strengths = np.concatenate([self.strengths, filtered.strengths(places)])[order]
        self.depths = np.concatenate([self.depths, np.full(len(places), filtered.hop.depth)])[order]
        self.places = np.concatenate([self.places, places])[order]
        return places

    def provenance(self, chunks: Sequence[str], numbers: Ints) -> list[tuple[ReachedChunk, tuple[Step, ...]]]:
        """How some chunks (`numbers`: indices into `rows`) were reached, and the edges from a seed to each."""
        depths, places = self.depths[numbers], self.places[numbers]
        provenance: list[tuple[ReachedChunk, tuple[Step, ...]]] = [(SEED_CHUNK, ())] * len(chunks)
        for depth, filtered in enumerate(self.hops, 1):
            own = np.flatnonzero(depths == depth)
            at, shown = places[own], filtered.hop.described
            for n, *seen in zip(
                *(column.tolist() for column in (own, at, filtered.by_similarity[at], filtered.by_entities[at])),
                strict=True,
            ):
                known = shown.get(tuple(seen))
                if known is None:
                    here = filtered.hop.reached(*seen)
                    known = shown[tuple(seen)] = here, steps_to(chunks[n], here, self._reached)
                provenance[n] = known
        return provenance

    def notes(self) -> dict[str, object]:
        """Counts for the ranking's notes: edges that led to a chunk, the chunks beside the seeds, and these by depth.

        An entity that several frontier chunks mention is read once: `entity_cache_hits` of the `entity_lookups` need
        no reading (document 1's label cache).
        """
        routes = [filtered.hop.result.routes for filtered in self.hops]
        lookups = sum(route.looked_up for route in routes)
        return {
            "found": sum(int(filtered.by_similarity.sum() + filtered.by_entities.sum()) for filtered in self.hops),
            "unique": len(self.rows),
            "reached_at_depth": {str(d): int((self.depths == d).sum()) for d in range(1, len(self.hops) + 1)},
            "entity_lookups": lookups,
            "entity_cache_hits": lookups - sum(route.read for route in routes),
        }

    def _reached(self, chunk: str) -> ReachedChunk:
        if chunk in self.seeds:
            return SEED_CHUNK
        return self.provenance([chunk], np.searchsorted(self.rows, [self.row_of[chunk]]))[0][0]


def evidence(expansion: Expansion, losses: Mapping[int, float]) -> Floats:
    """max(similarity, path) of each reached chunk, times the penalty of its depth."""
    factors = np.array([0.0, *(losses[depth] for depth in sorted(losses))])[expansion.depths]
    return np.asarray(expansion.strengths * factors)
