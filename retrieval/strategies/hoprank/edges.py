"""The edges from some chunks, the anchors: each leads over an entity to a target chunk, in one of four ways.

A fifth, over a triple, is in `triple_edges`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE, Mentions
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, distinct
from hopbench.retrieval.support.arithmetic import weighted_sum
from hopbench.retrieval.support.csr import expand_ranges

FORWARD, REVERSE, SHARED, SAME_TITLE, TRIPLE = range(5)
KINDS = ("forward", "reverse", "shared", "same_title", "triple")
REVERSE_FAN = 60
SHARED_FAN, SHARED_FAN_IN_POOL = 40, 300
TITLE_FAN = 300


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges, one row each, all (e,).

    `kind` counts `KINDS`; `mention` is the mention the edge rests on (in the anchor; for `reverse` in the target;
    NOWHERE for `same_title`), `far` the target's own mention of a shared entity, else NOWHERE; `fan` is among how many
    mentions, or titles for `forward` and `same_title`, the entity leads; `relation` the triple's number
    in `Relations`, else NOWHERE.
    """

    anchor: Numbers
    target: Numbers
    kind: Numbers
    entity: Numbers
    mention: Numbers
    far: Numbers
    fan: Numbers
    relation: Numbers

    def __len__(self) -> int:
        return len(self.anchor)

    @cached_property
    def anchors(self) -> tuple[Numbers, Numbers]:
        """The distinct anchors, sorted, and which of them each edge leaves, (e,)."""
        return _places(self.anchor)

    @cached_property
    def targets(self) -> tuple[Numbers, Numbers]:
        """The distinct targets, sorted, and which of them each edge leads to, (e,)."""
        return _places(self.target)

    def where(self, chosen: NDArray[Any]) -> Edges:
        """Some of the edges."""
        return Edges(*(column[chosen] for column in self._columns()))

    def _columns(self) -> tuple[Numbers, ...]:
        return self.anchor, self.target, self.kind, self.entity, self.mention, self.far, self.fan, self.relation

    @classmethod
    def none(cls) -> Edges:
        """No edge."""
        return cls(*np.zeros((8, 0), np.int64))

    @classmethod
    def joined(cls, *parts: Edges) -> Edges:
        """Edges of several parts, in their order."""
        return cls(*map(np.concatenate, zip(*(part._columns() for part in parts), strict=True)))


def _places(chunks: Numbers) -> tuple[Numbers, Numbers]:
    different = distinct(chunks)
    return different, different.searchsorted(chunks)


def edges_from(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """All edges that leave the anchors; none leads back to its own anchor."""
    edges = Edges.joined(
        _forward(anchors, mentions, in_pool),
        _reverse(anchors, mentions),
        _shared(anchors, mentions, in_pool),
        _same_title(anchors, mentions, in_pool),
    )
    return edges.where(edges.anchor != edges.target)


def _own_mentions(anchors: Numbers, mentions: Mentions) -> Numbers:
    return expand_ranges(mentions.of_chunk[anchors], mentions.of_chunk[anchors + 1])[0]


def _forward(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """The anchor mentions the title of the target."""
    mention = _own_mentions(anchors, mentions)
    entity = mentions.entity[mention]
    target, which, fan = _titled_by(entity, mentions, in_pool)
    return _edges(FORWARD, mentions.chunk[mention][which], target, entity[which], mention[which], fan)


def _titled_by(entity: Numbers, mentions: Mentions, in_pool: Lookup) -> tuple[Numbers, Numbers, Numbers]:
    """The chunks that each entity is the title of, which entity that is, and how many there are of it.

    Of more than `TITLE_FAN`, those in the pool: minutes of a thousand meetings under one title, parts of a long book.
    """
    begin, end = mentions.titled_by[entity], mentions.titled_by[entity + 1]
    place, which = expand_ranges(begin, end)
    target, fan = mentions.titled[place], (end - begin)[which]
    if not (fan > TITLE_FAN).any():
        return target, which, fan
    followed = (fan <= TITLE_FAN) | in_pool[target]
    return target[followed], which[followed], fan[followed]


def _titled(anchors: Numbers, mentions: Mentions) -> tuple[Numbers, Numbers]:
    """The anchors that have a title entity, and it."""
    entity = mentions.own[anchors]
    return anchors[entity != NOWHERE], entity[entity != NOWHERE]


def _reverse(anchors: Numbers, mentions: Mentions) -> Edges:
    """The target mentions the title of the anchor, which at most `REVERSE_FAN` places do."""
    anchors, entity = _titled(anchors, mentions)
    begin, end = mentions.of_entity[entity], mentions.of_entity[entity + 1]
    few = end - begin <= REVERSE_FAN
    place, which = expand_ranges(begin[few], end[few])
    mention = mentions.by_entity[place]
    fan = (end - begin)[few][which]
    return _edges(REVERSE, anchors[few][which], mentions.chunk[mention], entity[few][which], mention, fan)


def _shared(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Both mention an entity that at most `SHARED_FAN` places name, or more where the target is in the pool."""
    mention = _own_mentions(anchors, mentions)
    entity = mentions.entity[mention]
    begin, end = mentions.of_entity[entity], mentions.of_entity[entity + 1]
    few = (end - begin > 1) & (end - begin <= SHARED_FAN_IN_POOL)
    place, which = expand_ranges(begin[few], end[few])
    far = mentions.by_entity[place]
    fan = (end - begin)[few][which]
    followed = (fan <= SHARED_FAN) | in_pool[mentions.chunk[far]]
    near, far = mention[few][which][followed], far[followed]
    return _edges(SHARED, mentions.chunk[near], mentions.chunk[far], mentions.entity[near], near, fan[followed], far)


def _same_title(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Both are titled by the same entity: another qualifier, or another part of a long passage."""
    anchors, entity = _titled(anchors, mentions)
    target, which, fan = _titled_by(entity, mentions, in_pool)
    return _edges(SAME_TITLE, anchors[which], target, entity[which], np.full(len(target), NOWHERE), fan)


def _edges(
    kind: int,
    anchor: Numbers,
    target: Numbers,
    entity: Numbers,
    mention: Numbers,
    fan: Numbers,
    far: Numbers | None = None,
) -> Edges:
    nothing = np.full(len(anchor), NOWHERE)
    number = np.full(len(anchor), kind)
    return Edges(anchor, target, number, entity, mention, nothing if far is None else far, fan, nothing)


@dataclass(frozen=True, eq=False)
class EdgeModel:
    """A logistic model of one kind of edge: P(target is evidence) = σ(weights · features + bias)."""

    weights: Floats
    bias: float

    def logit(self, features: Floats) -> Floats:
        """The argument of σ for features (e, f), of which the model knows the first."""
        return weighted_sum(features[:, : len(self.weights)], self.weights) + self.bias
