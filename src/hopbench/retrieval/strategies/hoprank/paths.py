"""Paths from the best chunks over their edges, what they are worth, and the rankings of pool and passes by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES, Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex
from hopbench.retrieval.strategies.hoprank.edges import (
    EDGE_FEATURES,
    KINDS,
    REVERSE,
    TRIPLE,
    TRIPLE_FEATURES,
    Edges,
    edge_features,
    edges_from,
    near_entities,
    triple_edges,
)
from hopbench.retrieval.strategies.hoprank.questions import parts_of
from hopbench.retrieval.strategies.hoprank.words import Floats, Lookup, Numbers, columns
from hopbench.retrieval.support.arithmetic import exp, ln, log, summed, weighted_sum
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.types import Step

SURE = 0.999999
SMALL = 1e-3
LOG_SMALL = ln(SMALL)
OVER_TRIPLES = ("path_triple", "log_path_triple")
PATHS = tuple(f"path_{name}" for name in (*KINDS[:TRIPLE], "any", "several"))
PATH_FEATURES = (*PATHS, *(f"log_{name}" for name in PATHS), *OVER_TRIPLES)
SCORE_FEATURES = (*BASE_FEATURES, *PATH_FEATURES)
FREE_ANCHORS = 4  # anchors that do not compete with each other
MAX_EXPONENT = 700.0  # e^−700 is still a number, and nothing beside 1
ALONE = -9.0  # the log-mass of the other candidates where there are none


def path_features(
    kind: Numbers, anchor: Numbers, target: Numbers, value: Floats, size: int, *, triples: bool = False
) -> Floats:
    """Compute per candidate the best path by kind, of any kind, and noisy-or over anchors; then ln(x + 0.001) of each.

    Edges (e,) are of a `kind`, from one of a question's anchors, counted from 0, to one of `size` candidates. Noisy-or
    is 1 − Π(1 − v), v the best path from each anchor. Where the graph has triples, the best path x over one and
    ln(1 + x/.001) follow; it is no part of the others.
    """
    plain = kind != TRIPLE
    by_kind = best_in_cells(target, kind, value, (size, TRIPLE + 1))
    over_triples = by_kind[:, TRIPLE:]
    by_kind = by_kind[:, :TRIPLE]
    shape = (size, int(anchor[plain].max(initial=-1)) + 1)
    best = best_in_cells(target[plain], anchor[plain], value[plain], shape)
    several = 1.0 - np.multiply.reduce(1.0 - np.minimum(best, SURE), axis=1)
    values = np.column_stack([by_kind, by_kind.max(axis=1), several])
    logs = np.full(values.shape, LOG_SMALL)
    there = np.nonzero(values)  # few: most chunks are reached by edges of one kind, if at all
    logs[there] = log(values[there] + SMALL)
    more = (over_triples, log(1.0 + over_triples / SMALL)) if triples else ()
    return np.concatenate([values, logs, *more], axis=1)


def best_in_cells(row: Numbers, column: Numbers, value: Floats, shape: tuple[int, int]) -> Floats:
    """Find the largest value in each cell, 0 without any, by cell numbers: NumPy is ten times as fast as with pairs."""
    cells = np.zeros(shape[0] * shape[1])
    np.maximum.at(cells, row * shape[1] + column, value)
    return cells.reshape(shape)


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

    def of_each(self, chunks: int, count: int) -> Iterator[Paths]:
        """Split by question, `count` of them, in a corpus of so many `chunks`."""
        parts = (parts_of(keys // chunks, count) for keys in (self.chunks, self.edges.anchor))
        for number, (rows, edges) in enumerate(zip(*parts, strict=True)):
            best, offset = self.best[rows], number * chunks
            yield Paths(
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

    def of_each(self, chunks: int, count: int) -> Iterator[Ranked]:
        """Split by question, `count` of them, in a corpus of so many `chunks`."""
        for number, part in enumerate(parts_of(self.chunks // chunks, count)):
            one = Ranked(self.chunks[part] - number * chunks, self.features[part], self.weights)
            vars(one)["scores"] = self.scores[part]  # as if computed
            yield one


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
            corpus, in_pool = self._candidates.corpus, self._candidates.in_pool
            edges = edges_from(new, corpus.mentions, in_pool)
            if corpus.relations is not None:
                edges = Edges.joined(edges, triple_edges(new, corpus.mentions, corpus.relations, in_pool))
            self.edges = Edges.joined(self.edges, edges)
            self.features = np.concatenate([self.features, edge_features(self._candidates, edges)])
        chosen = np.flatnonzero(Lookup.marks(np.sort(anchors))[self.edges.anchor])
        chosen = chosen[(self.edges.anchor[chosen] // self._candidates.corpus.chunks).argsort(kind="stable")]
        return self.edges.where(chosen), self.features.take(chosen, axis=0)


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


def follow(candidates: Candidates, reached: EdgeTable, ranked: Ranked, models: Sequence[Floats], anchors: int) -> Paths:
    """Follow paths from the best chunks of a ranking; their targets become candidates.

    The logistic `models` of kinds of edges have P(target is evidence) = σ(weights · features + bias), the bias last.
    """
    size, questions = candidates.corpus.chunks, len(candidates.questions)
    parts = parts_of(ranked.chunks // size, questions)
    first, surely = best_anchors(ranked.scores, parts, anchors)
    starting = ranked.chunks[first]
    edges, features = reached.leaving(starting)
    logits = np.zeros(len(edges))
    for kind in distinct(edges.kind):
        chosen = np.flatnonzero(edges.kind == kind)
        model = models[kind]
        logits[chosen] = weighted_sum(features.take(chosen, axis=0)[:, : len(model) - 1], model[:-1]) + model[-1]
    (leaving, anchor), (led_to, place) = edges.anchors, edges.targets
    before = Lookup.of(starting, surely)[leaving][anchor]
    probability = sigmoid(logits)
    value = before * probability
    chunks = distinct(np.concatenate([candidates.pool, led_to]))
    target = chunks.searchsorted(led_to)[place]
    best = np.full(len(chunks), NOWHERE, np.int64)
    order = len(value) - 1 - value[::-1].argsort(kind="stable")
    best[target[order]] = order  # ascending by value: the best edge is written last, the first among equals
    of_anchor = leaving // size
    column = (np.arange(len(leaving)) - of_anchor.searchsorted(of_anchor))[anchor]
    stated = candidates.corpus.relations is not None
    described = path_features(edges.kind, column, target, value, len(chunks), triples=stated)
    return Paths(chunks, described, edges, features, probability, before, value, best)


def pool_ranking(candidates: Candidates, weights: Floats) -> Ranked:
    """Rank the pool by its base features alone."""
    return Ranked(candidates.pool, candidates.features(candidates.pool), weights)


def with_paths(candidates: Candidates, paths: Paths) -> Floats:
    """Join base and path features of the chunks of paths, (c, 24), with triples (c, 26)."""
    return np.concatenate([candidates.features(paths.chunks), paths.features], axis=1)


def of_each(candidates: Candidates, passed: Passed) -> list[Passed]:
    """Split passes by question, with chunks in place of keys."""
    size = candidates.corpus.chunks, len(candidates.questions)
    by_pass = [
        zip(ranked.of_each(*size), [None] * size[1] if paths is None else paths.of_each(*size), strict=True)
        for ranked, paths in passed
    ]
    return list(zip(*by_pass, strict=True))


def listed(passed: Passed, size: int) -> dict[str, NDArray[Any]]:
    """Describe the best of a question's last pass, which must have followed paths: columns of `links.ListFacts`."""
    (pool, _), (first, _), (last, paths) = passed[0], passed[1], passed[-1]
    if paths is None:
        raise ValueError("trees order candidates of a pass over paths; this one followed none")
    order = np.argsort(-last.scores, kind="stable")[:size]
    chunks, into = last.chunks[order], paths.best[order]
    place = Lookup.of(chunks, np.arange(len(chunks)), otherwise=NOWHERE)
    source, target = place[paths.edges.anchor], place[paths.edges.target]
    inside = np.flatnonzero((source != NOWHERE) & (target != NOWHERE))
    anchor = np.zeros(len(chunks), bool)
    anchor[source[source != NOWHERE]] = True
    return {
        "chunks": chunks,
        "score": last.scores[order],
        "first_score": _aligned(first, chunks),
        "pool_score": _aligned(pool, chunks),
        "paths": paths.features[order, : len(PATHS)],
        "edge": best_in_cells(source[inside], target[inside], paths.probability[inside], (len(chunks), len(chunks))),
        "anchor": anchor,
        "best": _of_best(paths.edge_features[:, : len(EDGE_FEATURES)], into),
        "best_anchor": _of_best(paths.anchor_probability, into),
        "best_edge": _of_best(paths.probability, into),
    }


def _of_best(values: Floats, into: Numbers) -> Floats:
    """Take the values of edges, 0 where there is none."""
    result = np.zeros((len(into), *values.shape[1:]))
    result[into != NOWHERE] = values[into[into != NOWHERE]]
    return result


def _aligned(ranked: Ranked, chunks: Numbers) -> Floats:
    """Return the scores of chunks in another ranking, one below its last for those it lacks."""
    place = np.minimum(ranked.chunks.searchsorted(chunks), len(ranked.chunks) - 1)
    return np.where(ranked.chunks[place] == chunks, ranked.scores[place], ranked.scores.min() - 1.0)


UNSTATED = -1.0  # the strength of a triple where there is none


def hops_to(
    hits: Numbers, passes: Sequence[Paths], corpus: CorpusIndex, seeds: Numbers
) -> tuple[Numbers, Floats, Sequence[Sequence[int]]]:
    """Find the h hops to hits, each over the best edge into a chunk: from a seed, or as far back as there is an edge.

    First (h, 4): the anchor's row, those of the entity or of a triple's near and far end, and the chunk's. Then (h, 5):
    the weights of the mentions in anchor and chunk, the triple's strength or `UNSTATED`, P(anchor) and the path's
    value. Then the hops that lead to each hit, first to last.
    """
    ends, values, wanted = [np.zeros((0, 4), np.int64)], [np.zeros((0, 5))], hits
    for paths in reversed(passes):
        own_ends, own_values = _hops_into(wanted, paths, corpus)
        ends.append(own_ends)
        values.append(own_values)
        anchors = distinct(own_ends[:, 0])
        wanted = anchors[(anchors[:, None] != seeds).all(axis=1)]
    all_ends = np.concatenate(ends)
    anchor_of, behind = all_ends[:, 0].tolist(), len(all_ends)
    ways: dict[int, tuple[int, ...]] = {}
    for part in reversed(ends[1:]):
        behind, earlier, ways = behind - len(part), ways, {}
        for hop, (anchor, _, _, chunk) in enumerate(part.tolist(), behind):
            before = earlier.get(anchor, ())
            if chunk in [anchor_of[one] for one in before]:
                before = ()  # a way back and forth explains nothing
            ways[chunk] = *before, hop
    return all_ends, np.concatenate(values), [ways.get(chunk, ()) for chunk in hits.tolist()]


def _hops_into(chunks: Numbers, paths: Paths, corpus: CorpusIndex) -> tuple[Numbers, Floats]:
    """The hops over the best edges of a pass into some chunks; nothing where no edge leads."""
    place = np.minimum(paths.chunks.searchsorted(chunks), len(paths.chunks) - 1)
    best = np.where(paths.chunks[place] == chunks, paths.best[place], NOWHERE)
    best = best[best != NOWHERE]
    edges, mentions = paths.edges.where(best), corpus.mentions
    strength = np.full(len(best), UNSTATED)
    if corpus.relations is not None:
        stated = edges.kind == TRIPLE
        strength[stated] = corpus.relations.strength[edges.relation[stated]]
    back = edges.kind == REVERSE
    near = mentions.weight_of(edges.anchor, np.where(back, NOWHERE, edges.mention))
    far = mentions.weight_of(edges.target, np.where(back, edges.mention, edges.far))
    values = columns([near, far, strength, paths.anchor_probability[best], paths.value[best]])
    ends = np.stack([edges.anchor, near_entities(edges, mentions), edges.entity, edges.target], axis=1)
    return ends, values.round(DECIMALS)


def steps_of(
    ids: Mapping[int, str], names: Sequence[str], ends: Sequence[int], values: Sequence[float]
) -> Iterator[Step]:
    """Spell a hop: anchor to entity to chunk; over a triple, from its near end to the far one between."""
    anchor, near, far, chunk = ends
    near_weight, far_weight, strength, probability, value = values
    yield Step(MENTIONED_IN, ids[anchor], names[near], near_weight, probability)
    if strength != UNSTATED:
        yield Step(RELATED_TO, names[near], names[far], strength, probability)
    yield Step(MENTIONED_IN, names[far], ids[chunk], far_weight, value)
