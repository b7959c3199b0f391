"""The best paths into chunks: their values, P(anchor) · P(edge), their features, and their steps for the reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES, facts_of
from hopbench.retrieval.strategies.hoprank.edges import (
    KINDS,
    TRIPLE,
    TRIPLE_FEATURES,
    Edges,
    edges_from,
    near_entities,
    triple_edges,
    triple_features,
)
from hopbench.retrieval.strategies.hoprank.questions import parts_of
from hopbench.retrieval.strategies.hoprank.words import Floats, Lookup, Numbers, columns
from hopbench.retrieval.support.arithmetic import exp, ln, log, summed, weighted_sum
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.types import Step


@dataclass(frozen=True, eq=False)
class EdgeModel:
    """A logistic model of one kind of edge: P(target is evidence) = σ(weights · features + bias)."""

    weights: Floats
    bias: float

    def logit(self, features: Floats) -> Floats:
        """Compute the argument of σ for features (e, f), of which the model knows the first."""
        return weighted_sum(features[:, : len(self.weights)], self.weights) + self.bias


SURE = 0.999999
SMALL = 1e-3
LOG_SMALL = ln(SMALL)


def path_features(
    kind: Numbers, anchor: Numbers, target: Numbers, value: Floats, size: int, *, triples: bool = False
) -> Floats:
    """Compute per candidate the best path by kind, of any kind, and noisy-or over anchors; then ln(x + 0.001) of each.

    Edges (e,) are of a `kind`, from one of a question's anchors, counted from 0, to one of `size` candidates. Noisy-or
    is 1 − Π(1 − v), v the best path from each anchor. Where the graph has triples, the best path x over one and
    ln(1 + x/.001) follow; it is no part of the others.
    """
    if triples:
        plain, stated = np.flatnonzero(kind != TRIPLE), np.flatnonzero(kind == TRIPLE)
        best = best_in_cells(target[stated], np.zeros(len(stated), np.int64), value[stated], (size, 1))
        others = path_features(kind[plain], anchor[plain], target[plain], value[plain], size)
        return np.concatenate([others, best, log(1.0 + best / SMALL)], axis=1)
    by_kind = best_in_cells(target, kind, value, (size, TRIPLE))
    best = best_in_cells(target, anchor, value, (size, int(anchor.max(initial=-1)) + 1))
    several = 1.0 - np.multiply.reduce(1.0 - np.minimum(best, SURE), axis=1)
    values = np.column_stack([by_kind, by_kind.max(axis=1), several])
    logs = np.full(values.shape, LOG_SMALL)
    there = np.nonzero(values)  # few: most chunks are reached by edges of one kind, if at all
    logs[there] = log(values[there] + SMALL)
    return np.concatenate([values, logs], axis=1)


def best_in_cells(row: Numbers, column: Numbers, value: Floats, shape: tuple[int, int]) -> Floats:
    """Find the largest value in each cell, 0 without any, by cell numbers: NumPy is ten times as fast as with pairs."""
    cells = np.zeros(shape[0] * shape[1])
    np.maximum.at(cells, row * shape[1] + column, value)
    return cells.reshape(shape)


OVER_TRIPLES = ("path_triple", "log_path_triple")
PATH_FEATURES = (
    *(prefix + name for prefix in ("path_", "log_path_") for name in (*KINDS[:TRIPLE], "any", "several")),
    *OVER_TRIPLES,
)


FREE_ANCHORS = 4  # anchors that do not compete with each other
MAX_EXPONENT = 700.0  # e^−700 is still a number, and nothing beside 1
ALONE = -9.0  # the log-mass of the other candidates where there are none


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths into c chunks, sorted, the pool and all that the anchors' edges lead to; of several questions, keys.

    `features` are (c, 12), with triples (c, 14). `edges` are the edges of the anchors, with their `edge_features`
    (e, 17), with triples (e, 22), P(edge) in `probability`, P(anchor) in `anchor_probability` and `value`, the product
    of both, all (e,); `best` (c,) is the number of the best edge into each chunk, NOWHERE where there is none.
    """

    chunks: Numbers
    features: Floats
    edges: Edges
    edge_features: Floats
    probability: Floats
    anchor_probability: Floats
    value: Floats
    best: Numbers

    def of_each(self, chunks: int, count: int) -> list[Paths]:
        """Split by question, `count` of them, in a corpus of so many `chunks`."""
        rows, edges = (parts_of(keys // chunks, count) for keys in (self.chunks, self.edges.anchor))
        offsets = range(0, count * chunks, chunks)
        return [self._of_one(*one) for one in zip(rows, edges, offsets, strict=True)]

    def _of_one(self, rows: slice, edges: slice, offset: int) -> Paths:
        best = self.best[rows]
        return Paths(
            self.chunks[rows] - offset,
            self.features[rows],
            self.edges.of_one(edges, offset),
            self.edge_features[edges],
            self.probability[edges],
            self.anchor_probability[edges],
            self.value[edges],
            np.where(best == NOWHERE, NOWHERE, best - edges.start),
        )


@dataclass(frozen=True, eq=False)
class Ranked:
    """Chunks (c,), sorted, with their scores (c,): `features` (c, f) @ `weights` (f,). Of several questions, keys."""

    chunks: Numbers
    features: Floats
    weights: Floats

    @cached_property
    def scores(self) -> Floats:
        """The linear score."""
        return weighted_sum(self.features, self.weights)

    def of_each(self, chunks: int, count: int) -> list[Ranked]:
        """Split by question, `count` of them, in a corpus of so many `chunks`."""
        parts = parts_of(self.chunks // chunks, count)
        found = []
        for number, part in enumerate(parts):
            one = Ranked(self.chunks[part] - number * chunks, self.features[part], self.weights)
            vars(one)["scores"] = self.scores[part]  # as if computed
            found.append(one)
        return found


Passed = Sequence[tuple[Ranked, Paths | None]]


class EdgeTable:
    """The edges of every requested anchor with their features, each computed once."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._asked = np.zeros(0, np.int64)
        self.edges = Edges.none()
        more = 0 if candidates.corpus.relations is None else len(TRIPLE_FEATURES)
        self.features: Floats = np.zeros((0, len(EDGE_FEATURES) + more))

    def leaving(self, anchors: Numbers) -> tuple[Edges, Floats]:
        """Return the edges leaving anchors by question, and their features, (e, 17), with triples (e, 22)."""
        new = anchors[~Lookup.marks(np.sort(self._asked))[anchors]]
        if len(new):
            self._asked = np.concatenate([self._asked, new])
            edges, values = self._read(new)
            self.edges = Edges.joined(self.edges, edges)
            self.features = np.concatenate([self.features, values])
        chosen = np.flatnonzero(Lookup.marks(np.sort(anchors))[self.edges.anchor])
        chosen = chosen[(self.edges.anchor[chosen] // self._candidates.corpus.chunks).argsort(kind="stable")]
        return self.edges.where(chosen), self.features.take(chosen, axis=0)

    def _read(self, anchors: Numbers) -> tuple[Edges, Floats]:
        candidates, corpus = self._candidates, self._candidates.corpus
        edges = edges_from(anchors, corpus.mentions, candidates.in_pool)
        if corpus.relations is not None:
            edges = Edges.joined(edges, triple_edges(anchors, corpus.mentions, corpus.relations, candidates.in_pool))
        facts = facts_of(candidates, edges)
        values = columns([feature(facts) for feature in EDGE_FEATURES])
        if corpus.relations is None:
            return edges, values
        return edges, np.concatenate([values, triple_features(candidates, corpus.relations, edges)], axis=1)


def best_anchors(scores: Floats, parts: Sequence[slice], anchors: int) -> tuple[Numbers, Floats]:
    """Find the best of each part of the scores, and σ(z − logsumexp of z over its ranks ≥ 5) of each."""
    orders = [np.argsort(-scores[part], kind="stable") + part.start for part in parts]
    mass = _log_masses([scores[order[FREE_ANCHORS:]] for order in orders])
    first = [order[:anchors] for order in orders]
    best = np.concatenate(first)
    return best, sigmoid(scores[best] - mass.repeat([*map(len, first)]))


def _log_masses(parts: Sequence[Floats]) -> Floats:
    """Compute ln Σ e^z of each descending part, `ALONE` where one is empty."""
    masses, some = np.full(len(parts), ALONE), [number for number, part in enumerate(parts) if len(part)]
    if some:
        top = np.array([parts[number][0] for number in some])
        below = np.concatenate([parts[number] - first for number, first in zip(some, top, strict=True)])
        ends = np.cumsum([len(parts[number]) for number in some])
        powers = np.split(exp(np.maximum(below, -MAX_EXPONENT)), ends[:-1])
        masses[some] = top + log(np.array([summed(part) for part in powers]))
    return masses


def sigmoid(x: Floats) -> Floats:
    """1/(1 + e^−x), its argument clipped to ±30."""
    return np.asarray(1.0 / (1.0 + exp(-np.clip(x, -30.0, 30.0))))


def follow(
    candidates: Candidates, reached: EdgeTable, ranked: Ranked, models: tuple[EdgeModel, ...], anchors: int
) -> Paths:
    """Follow paths from the best chunks of a ranking; their targets become candidates."""
    size, questions = candidates.corpus.chunks, len(candidates.questions)
    parts = parts_of(ranked.chunks // size, questions)
    first, surely = best_anchors(ranked.scores, parts, anchors)
    starting = ranked.chunks[first]
    edges, features = reached.leaving(starting)
    logits = np.zeros(len(edges))
    for kind in distinct(edges.kind):
        chosen = np.flatnonzero(edges.kind == kind)
        logits[chosen] = models[kind].logit(features.take(chosen, axis=0))
    (leaving, anchor), (led_to, place) = edges.anchors, edges.targets
    before = Lookup.of(starting, surely)[leaving][anchor]
    probability = sigmoid(logits)
    value = before * probability
    chunks = distinct(np.concatenate([candidates.pool.chunks, led_to]))
    target = chunks.searchsorted(led_to)[place]
    best = np.full(len(chunks), NOWHERE, np.int64)
    order = len(value) - 1 - value[::-1].argsort(kind="stable")
    best[target[order]] = order  # ascending by value: the best edge is written last, the first among equals
    of_anchor = leaving // size
    column = (np.arange(len(leaving)) - of_anchor.searchsorted(of_anchor))[anchor]
    stated = candidates.corpus.relations is not None
    described = path_features(edges.kind, column, target, value, len(chunks), triples=stated)
    return Paths(chunks, described, edges, features, probability, before, value, best)


UNSTATED = -1.0  # the strength of a triple where there is none


@dataclass(frozen=True, eq=False)
class Hops:
    """h hops, each over the best edge into a chunk, and which of them lead to each hit, first to last.

    `ends` (h, 4) are the anchor's row, those of the entity or of a triple's near and far end, and the chunk's; `values`
    (h, 5) are the weights of the mentions in anchor and chunk, the triple's strength or `UNSTATED`, P(anchor) and the
    path's value.
    """

    ends: Numbers
    values: Floats
    ways: Sequence[Sequence[int]]

    @classmethod
    def to(cls, hits: Numbers, passes: Sequence[Paths], corpus: CorpusIndex, seeds: Numbers) -> Hops:
        """The hops to hits, by the paths of each pass: from a seed, or as far back as there is an edge."""
        found = list(_back_from(hits, passes, corpus, seeds))
        ends = np.concatenate([np.zeros((0, 4), np.int64), *(part for part, _ in found)])
        values = np.concatenate([np.zeros((0, 5)), *(part for _, part in found)])
        anchors = ends[:, 0].tolist()
        ways: dict[int, tuple[int, ...]] = {}
        behind = len(ends)
        for part, _ in reversed(found):
            behind, earlier, ways = behind - len(part), ways, {}
            for number, (anchor, _, _, chunk) in enumerate(part.tolist(), behind):
                before = earlier.get(anchor, ())
                if chunk in [anchors[one] for one in before]:
                    before = ()  # a way back and forth explains nothing
                ways[chunk] = *before, number
        return cls(ends, values, [ways.get(chunk, ()) for chunk in hits.tolist()])

    def steps(self, ids: Mapping[int, str], names: Sequence[str]) -> list[tuple[Step, ...]]:
        """The steps to each hit, with the `ids` of chunks and the `names` of entities by their rows."""
        known = {row: names[row] for row in set(self.ends[:, 1:3].ravel().tolist())}
        rows = zip(self.ends.tolist(), self.values.tolist(), strict=True)
        hops = [list(_steps(ids, known, *row)) for row in rows]
        return [tuple(step for number in way for step in hops[number]) for way in self.ways]


def _back_from(
    hits: Numbers, passes: Sequence[Paths], corpus: CorpusIndex, seeds: Numbers
) -> Iterator[tuple[Numbers, Floats]]:
    """`ends` and `values` of each pass, the last one first: into hits, then into the anchors that are no seeds."""
    wanted = hits
    for paths in reversed(passes):
        ends, values = _into(wanted, paths, corpus)
        yield ends, values
        anchors = distinct(ends[:, 0])
        wanted = anchors[(anchors[:, None] != seeds).all(axis=1)]


def _into(chunks: Numbers, paths: Paths, corpus: CorpusIndex) -> tuple[Numbers, Floats]:
    """`ends` and `values` of the best edges of a pass into some chunks; nothing where no edge leads."""
    place = np.minimum(paths.chunks.searchsorted(chunks), len(paths.chunks) - 1)
    best = np.where(paths.chunks[place] == chunks, paths.best[place], NOWHERE)
    best = best[best != NOWHERE]
    edges, mentions = paths.edges.where(best), corpus.mentions
    strength = np.full(len(best), UNSTATED)
    if corpus.relations is not None:
        stated = edges.kind == TRIPLE
        strength[stated] = corpus.relations.strength[edges.relation[stated]]
    weights = (mentions.weight_of(*ends) for ends in edges.mentioned)
    values = columns([*weights, strength, paths.anchor_probability[best], paths.value[best]])
    ends = np.stack([edges.anchor, near_entities(edges, mentions), edges.entity, edges.target], axis=1)
    return ends, values.round(DECIMALS)


def _steps(
    ids: Mapping[int, str], names: Mapping[int, str], ends: Sequence[int], values: Sequence[float]
) -> Iterator[Step]:
    """Anchor to entity to chunk; over a triple, from its near end to the far one between."""
    anchor, near, far, chunk = ends
    near_weight, far_weight, strength, probability, value = values
    yield Step(MENTIONED_IN, ids[anchor], names[near], near_weight, probability)
    if strength != UNSTATED:
        yield Step(RELATED_TO, names[near], names[far], strength, probability)
    yield Step(MENTIONED_IN, names[far], ids[chunk], far_weight, value)
