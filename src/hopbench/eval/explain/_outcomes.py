"""What became of a gold passage: its outcome, the shortest path to it, and the single change that would rank it.

A step of a path is SIMILAR_TO or an edge of documents, chunk–entity–chunk or chunk–entity–entity–chunk, as reach@h
counts them.

Nothing is inferred from a parameter's name. Each numeric parameter is set to its lower and to its upper bound, each
switch is flipped, each choice tried, and the strategy is run again; the changes that rank the passage are named. A
limit is a parameter whose change only adds candidates; any other change also loses candidates, and their number is
reported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.eval.explain.answers import Answer, RankedPassage, places
from hopbench.eval.metrics.built_in import MAX_HOPS
from hopbench.eval.metrics.reach import ExpansionFactors
from hopbench.retrieval.graph.schema import DOCUMENT_EDGES, MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.types import Counters, Step

EVERY_KIND = (SIMILAR_TO, MENTIONED_IN, RELATED_TO, *DOCUMENT_EDGES)
Matrix = Any  # scipy.sparse.csr_array, whose stubs want a shape
TIERS = (10, 20)
NOT_A_LIMIT = "fill"  # it completes rankings, which makes nothing a candidate
Kind = Literal[
    "seed",
    "returned",
    "reached",
    "filled",
    "out-ranked",
    "pruned",
    "not followed",
    "other edges",
    "never linked",
    "not ranked",
    "not returned",
    "failed",
    "not in the corpus",
]
"""In the top k: `seed` (by the initial ranking), `reached` (an edge led there), `filled` (completed from the initial
ranking), `returned` (by a foreign retriever). Below it, or beyond the end of a full ranking: `out-ranked`. Not ranked
by the strategy itself: `pruned` (one changed parameter ranks it), `not followed` (the graph leads there, no single
parameter explains it), `other edges` (only edges that the strategy does not follow lead there), `never linked` (no way
of 3 steps), `not ranked` (a hop-free ranking ends before it), `not returned` (by a foreign retriever). `failed`: no
ranking at all. `not in the corpus`: no ranking can have it."""
RIVALS = 3


@dataclass(frozen=True, slots=True)
class Route:
    """A shortest way: `hops` expansion steps, and their edges from a seed (or recognised entity) to the passage."""

    hops: int
    steps: tuple[Step, ...]


Way = tuple[float, int, tuple[Step, ...], int | None]
"""One step back from a chunk: its strength, how frequent its entity is, its edges, and the chunk it starts from, None
at a recognised entity."""


def _order(way: Way) -> tuple[float, int, int, tuple[str, ...]]:
    """Strongest first, then fewest edges, then through the rarest entity, then by ids."""
    strength, frequency, steps, _ = way
    return -strength, len(steps), frequency, tuple(step.source for step in steps)


class Routes:
    """Shortest ways over edges of the given `kinds` from passages and entities, at most 3 steps long."""

    def __init__(
        self, index: Index, seeds: Sequence[str], entities: Sequence[str] = (), kinds: Collection[str] = EVERY_KIND
    ) -> None:
        """`seeds` are passage ids, `entities` entity ids; unknown entities are left out."""
        self._ids, self._passage_of = index.ids, index.passage_of
        graph = adjacency(Batch(index, []), Counters())
        matrices: dict[str, Matrix] = {
            MENTIONED_IN: graph.mentions,
            RELATED_TO: graph.related,
            SIMILAR_TO: graph.similar,
            **graph.documents,
        }
        mentions, related, similar, *documents = (
            one if kind in kinds else sparse.csr_array(one.shape) for kind, one in matrices.items()
        )
        self._graph = Adjacency(
            graph.entities, mentions, related, similar, dict(zip(graph.documents, documents, strict=True)), graph.rows
        )
        self._entities_of: Matrix = sparse.csr_array(self._graph.mentions.T)
        wanted = set(seeds)
        self._from_chunks = [row for row, chunk in enumerate(index.ids) if self._passage_of[chunk] in wanted]
        known = self._graph.entity_row
        self._from_entities = sorted({known[entity] for entity in entities if entity in known})
        self._level = self._levels()

    def to(self, passage: str) -> Route | None:
        """Find the way to a passage; None where it cannot be reached in 3 steps, no edges where it is a seed."""
        reached = np.flatnonzero(self._level >= 0).tolist()
        rows = [row for row in reached if self._passage_of[self._ids[row]] == passage]
        if not rows:
            return None
        last: int | None = min(rows, key=lambda row: (self._level[row], row))
        hops = int(self._level[last])
        steps: tuple[Step, ...] = ()
        while last is not None and self._level[last] > 0:
            _, _, own, last = min(self._ways(last, int(self._level[last]) - 1), key=_order)
            steps = (*own, *steps)
        return Route(hops, steps)

    def _levels(self) -> NDArray[np.int64]:
        """In how many steps each chunk is reached, -1 for none."""
        graph = self._graph
        factors = ExpansionFactors.make(len(self._ids), self._entities_of, graph.related, graph.between_chunks)
        words = np.zeros(len(self._ids), dtype=np.uint64)
        words[self._from_chunks] = 1
        level = np.where(words > 0, 0, -1).astype(np.int64)
        for hop in range(1, MAX_HOPS + 1):
            words = factors.step(words)
            if hop == 1:
                related = {int(e) for start in self._from_entities for e in _row(graph.related, start)[0]}
                near = {int(c) for e in {*self._from_entities, *related} for c in _row(graph.mentions, e)[0]}
                words[sorted(near)] = 1
            level[(words > 0) & (level < 0)] = hop
        return level

    def _ways(self, chunk: int, level: int) -> Iterator[Way]:
        """Every way of one step into `chunk` from chunks of `level`, and at level 0 from the recognised entities."""
        id_of, name = self._ids[chunk], self._graph.entities
        for kind, edges in {SIMILAR_TO: self._graph.similar, **self._graph.documents}.items():
            for before, weight in zip(*_row(edges, chunk), strict=True):
                if self._level[before] == level:
                    yield weight, 0, (Step(kind, self._ids[before], id_of, weight, weight),), int(before)
        for entity, mention in zip(*_row(self._entities_of, chunk), strict=True):
            into = Step(MENTIONED_IN, name[entity], id_of, mention, mention)
            yield from self._starts(int(entity), level, mention, (into,))
            for other, strength in zip(*_row(self._graph.related, entity), strict=True):
                through = Step(RELATED_TO, name[other], name[entity], strength, strength)
                yield from self._starts(int(other), level, mention * strength, (through, into))

    def _starts(self, entity: int, level: int, strength: float, steps: tuple[Step, ...]) -> Iterator[Way]:
        """The ways that come to an entity from a recognised one (itself) or from a chunk of `level`."""
        chunks, weights = _row(self._graph.mentions, entity)
        if level == 0 and entity in self._from_entities:
            yield strength, len(chunks), steps, None
        there = self._level[chunks] == level
        if there.any():
            best = int(np.argmax(np.where(there, weights, -1.0)))
            weight = float(weights[best])
            first = Step(MENTIONED_IN, self._ids[chunks[best]], self._graph.entities[entity], weight, weight)
            yield strength * weight, len(chunks), (first, *steps), int(chunks[best])


def _row(matrix: Matrix, row: int) -> tuple[Any, Any]:
    """Columns and values of a CSR row; values as plain floats where they are walked one by one."""
    begin, end = matrix.indptr[row], matrix.indptr[row + 1]
    return matrix.indices[begin:end], matrix.data[begin:end].astype(float)


@dataclass(frozen=True, slots=True)
class Change:
    """One parameter of a strategy with another value."""

    parameter: str
    before: object
    after: object

    def __str__(self) -> str:
        """`max_depth 1 → 3`."""
        before, after = (
            f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
            for value in (self.before, self.after)
        )
        return f"{self.parameter} {before} → {after}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """All candidates under a change, however many; `lost` is how many of the candidates without it are missing.

    `failure` is the reason why the strategy could not be run so.
    """

    change: Change
    places: Mapping[str, RankedPassage] = field(default_factory=dict)
    lost: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class HelpfulChange:
    """A change that makes a passage a candidate, the passage's rank then, and how many other candidates it loses."""

    change: Change
    place: RankedPassage
    lost: int = 0

    @property
    def order(self) -> tuple[bool, int]:
        """Limits first; those that bring it into the top 10, then the top 20, then the others."""
        return self.lost > 0, sum(self.place.rank > rank for rank in TIERS)


def changes_of(strategy: Strategy) -> Iterator[Change]:
    """List every single change to a bound, in the order of the parameters."""
    for name, spec in strategy.parameters().items():
        if name == NOT_A_LIMIT:
            continue
        before = getattr(strategy, name)
        for after in _others(before, spec):
            yield Change(name, before, after)


def _others(before: object, spec: dataclasses.Field[object]) -> list[object]:
    bounds: Bounds = spec.metadata["bounds"]
    if isinstance(before, bool):
        return [not before]
    if bounds.choices:
        return [choice for choice in bounds.choices if choice != before]
    if bounds.low is None or bounds.high is None:
        return []
    ends = dict.fromkeys((bounds.low, bounds.high))
    if isinstance(spec.default, int):
        ends = dict.fromkeys((int(bounds.low), int(bounds.high)))
    return [end for end in ends if end != before]


def outcomes_of(strategy: Strategy, batch: Batch) -> list[Outcome]:
    """Rank the batch's one question under every change that the strategy and the graph accept."""
    before = _candidates(strategy, batch)
    outcomes = []
    for change in changes_of(strategy):
        try:
            changed = type(strategy)(**{**strategy.spec(), change.parameter: change.after})
            after = _candidates(changed, batch)
        except InputError:  # refused beside the other parameters, or below what the graph was built with
            continue
        except Exception as error:  # whatever a strategy raises is this change's outcome; the others are still tried
            outcomes.append(Outcome(change, failure=f"{type(error).__name__}: {error}"))
            continue
        outcomes.append(Outcome(change, after, len(before.keys() - after.keys())))
    return outcomes


def _candidates(strategy: Strategy, batch: Batch) -> dict[str, RankedPassage]:
    """Rank only the strategy's own candidates, without fill and without a cut."""
    (ranking,) = strategy.search(batch, Counters())
    if ranking.failure is not None:
        raise ValueError(ranking.failure)
    return {place.passage: place for place in places(ranking.hits, batch.index)}


def helpful(passage: str, outcomes: Sequence[Outcome], within: int | None = None) -> tuple[HelpfulChange, ...]:
    """List the changes that make `passage` a candidate (in the top `within`), the best of each parameter.

    In the order of `HelpfulChange.order`, then of definition.
    """
    best: dict[str, HelpfulChange] = {}
    for outcome in outcomes:
        place = outcome.places.get(passage)
        if place is None or (within is not None and place.rank > within):
            continue
        helped, known = HelpfulChange(outcome.change, place, outcome.lost), best.get(outcome.change.parameter)
        if known is None or (*helped.order, place.rank) < (*known.order, known.place.rank):
            best[outcome.change.parameter] = helped
    return tuple(sorted(best.values(), key=lambda helped: helped.order))  # stable


@dataclass(frozen=True, slots=True)
class Rival:
    """A passage that is ranked above, and the component in which it leads most, with both values; None for a tie."""

    place: RankedPassage
    component: str | None
    theirs: float = 0.0
    ours: float = 0.0


@dataclass(frozen=True, slots=True)
class Fate:
    """A gold passage's fate; `changes` are the single parameter changes that would bring it in (the top k)."""

    passage: str
    kind: Kind
    place: RankedPassage | None = None
    initial_rank: int | None = None
    rivals: tuple[Rival, ...] = ()
    changes: tuple[HelpfulChange, ...] = ()
    route: Route | None = None

    @property
    def found(self) -> bool:
        """Whether it is in the top k."""
        return self.kind in ("seed", "returned", "reached", "filled")


def rivals(answer: Answer, place: RankedPassage, top: int) -> tuple[Rival, ...]:
    """List the last passages of the top `top`: those that `place` would have to beat."""
    return tuple(_rival(answer.places, other, place) for other in answer.places[max(0, top - RIVALS) : top])


def _rival(places: Sequence[RankedPassage], other: RankedPassage, ours: RankedPassage) -> Rival:
    """The component whose lead is largest, measured by the range it takes over the ranking; absent counts as 0."""
    leads = {}
    for name in sorted({*other.hit.components, *ours.hit.components}):
        values = [place.hit.components.get(name, 0.0) for place in places if place.candidate]
        spread = max(values) - min(values)
        lead = other.hit.components.get(name, 0.0) - ours.hit.components.get(name, 0.0)
        if lead > 0 and spread > 0:
            leads[name] = lead / spread
    if not leads or other.hit.score == ours.hit.score:
        return Rival(other, None)
    name = max(leads, key=lambda component: leads[component])
    return Rival(other, name, other.hit.components.get(name, 0.0), ours.hit.components.get(name, 0.0))
