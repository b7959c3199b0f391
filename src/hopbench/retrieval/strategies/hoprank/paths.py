"""Values of the best paths into chunks, P(anchor) · P(edge)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES, facts_of
from hopbench.retrieval.strategies.hoprank.edge_model import EdgeModel
from hopbench.retrieval.strategies.hoprank.edges import Edges, edges_from
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.path_features import path_features
from hopbench.retrieval.strategies.hoprank.questions import parts_of
from hopbench.retrieval.strategies.hoprank.triple_edges import TRIPLE_FEATURES, triple_edges, triple_features
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, columns
from hopbench.retrieval.support.arithmetic import exp, log, summed, weighted_sum
from hopbench.retrieval.support.distinct import distinct

TOP = 4  # anchors that do not compete with each other
LEAST_EXPONENT = 700.0  # e^−700 is still a number, and nothing beside 1
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
        """Those of each of so many questions, in a corpus of so many chunks."""
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
        """The ranking of each of so many questions, in a corpus of so many chunks."""
        parts = parts_of(self.chunks // chunks, count)
        found = []
        for number, part in enumerate(parts):
            one = Ranked(self.chunks[part] - number * chunks, self.features[part], self.weights)
            vars(one)["scores"] = self.scores[part]  # as if computed
            found.append(one)
        return found


Passed = Sequence[tuple[Ranked, Paths | None]]


class EdgeTable:
    """The edges of every anchor that was asked for, with their features, each computed once."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._asked = np.zeros(0, np.int64)
        self.edges = Edges.none()
        more = 0 if candidates.corpus.relations is None else len(TRIPLE_FEATURES)
        self.features: Floats = np.zeros((0, len(EDGE_FEATURES) + more))

    def leaving(self, anchors: Numbers) -> tuple[Edges, Floats]:
        """The edges that leave the anchors, question by question, and their features, (e, 17), (e, 22) with triples."""
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
    """The best of each part of the scores, part by part, and σ(z − logsumexp of z over its ranks ≥ 5) of each."""
    orders = [np.argsort(-scores[part], kind="stable") + part.start for part in parts]
    mass = _log_masses([scores[order[TOP:]] for order in orders])
    first = [order[:anchors] for order in orders]
    best = np.concatenate(first)
    return best, sigmoid(scores[best] - mass.repeat([*map(len, first)]))


def _log_masses(parts: Sequence[Floats]) -> Floats:
    """ln Σ e^z of each part, which descend, `ALONE` where one is empty."""
    masses, some = np.full(len(parts), ALONE), [number for number, part in enumerate(parts) if len(part)]
    if some:
        top = np.array([parts[number][0] for number in some])
        below = np.concatenate([parts[number] - first for number, first in zip(some, top, strict=True)])
        ends = np.cumsum([len(parts[number]) for number in some])
        powers = np.split(exp(np.maximum(below, -LEAST_EXPONENT)), ends[:-1])
        masses[some] = top + log(np.array([summed(part) for part in powers]))
    return masses


def sigmoid(x: Floats) -> Floats:
    """1/(1 + e^−x), its argument clipped to ±30."""
    return np.asarray(1.0 / (1.0 + exp(-np.clip(x, -30.0, 30.0))))


def follow(
    candidates: Candidates, reached: EdgeTable, ranked: Ranked, models: tuple[EdgeModel, ...], anchors: int
) -> Paths:
    """Paths from the best chunks of a ranking; their targets become candidates."""
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
