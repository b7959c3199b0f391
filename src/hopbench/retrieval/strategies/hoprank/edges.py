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
from hopbench.retrieval.strategies.hoprank.words import Numbers, numbered
from hopbench.retrieval.support.csr import expand_ranges

FORWARD, REVERSE, SHARED, SAME_TITLE, TRIPLE = range(5)
KINDS = ("forward", "reverse", "shared", "same_title", "triple")
REVERSE_FAN = 60
SHARED_FAN, SHARED_FAN_IN_POOL = 40, 300
TITLE_FAN = 300


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges, one row each, all (e,); anchors and targets are keys (`questions`).

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
        return numbered(self.anchor)

    @cached_property
    def targets(self) -> tuple[Numbers, Numbers]:
        """The distinct targets, sorted, and which of them each edge leads to, (e,)."""
        return numbered(self.target)

    @property
    def mentioned(self) -> tuple[tuple[Numbers, Numbers], tuple[Numbers, Numbers]]:
        """Chunk and mention, (e,) both, at the start of each edge and at its end; NOWHERE is the mention of a title."""
        back = self.kind == REVERSE
        near, far = np.where(back, NOWHERE, self.mention), np.where(back, self.mention, self.far)
        return (self.anchor, near), (self.target, far)

    def where(self, chosen: NDArray[Any]) -> Edges:
        """Some of the edges."""
        return Edges(*(column[chosen] for column in self._columns()))

    def of_one(self, rows: slice, offset: int) -> Edges:
        """The edges of a question, between chunks."""
        anchor, target, *others = (column[rows] for column in self._columns())
        return Edges(anchor - offset, target - offset, *others)

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


def edges_from(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """All edges that leave the anchors, by key (`questions`); none leads back to its own anchor."""
    starts = _Anchors.of(anchors, mentions)
    edges = Edges.joined(
        _forward(starts, mentions, in_pool),
        _reverse(starts, mentions),
        _shared(starts, mentions, in_pool),
        _same_title(starts, mentions, in_pool),
    )
    return edges.where(edges.anchor != edges.target)


@dataclass(frozen=True, eq=False)
class _Anchors:
    """The `keys` (k,) of anchors; a key less its chunk's number is its question's `offset` (k,).

    `mention` (t,) are their mentions and `where` (t,) which of the anchors they are in; `titled` (k',) are those that
    have a title entity, and `own` (k',) is that.
    """

    keys: Numbers
    offset: Numbers
    mention: Numbers
    where: Numbers
    titled: Numbers
    own: Numbers

    @classmethod
    def of(cls, keys: Numbers, mentions: Mentions) -> _Anchors:
        chunks = keys % len(mentions.own)
        mention, where = expand_ranges(mentions.of_chunk[chunks], mentions.of_chunk[chunks + 1])
        own = mentions.own[chunks]
        titled = np.flatnonzero(own != NOWHERE)
        return cls(keys, keys - chunks, mention, where, titled, own[titled])


def _forward(anchors: _Anchors, mentions: Mentions, in_pool: Lookup) -> Edges:
    """The anchor mentions the title of the target."""
    entity = mentions.entity[anchors.mention]
    target, which, fan = _titled_by(entity, anchors.offset[anchors.where], mentions, in_pool)
    anchor = anchors.keys[anchors.where[which]]
    return _edges(FORWARD, anchor, target, entity[which], anchors.mention[which], fan)


def _titled_by(
    entity: Numbers, offset: Numbers, mentions: Mentions, in_pool: Lookup
) -> tuple[Numbers, Numbers, Numbers]:
    """The chunks that each entity is the title of, which entity that is, and how many there are of it.

    Of more than `TITLE_FAN`, those in the pool: minutes of a thousand meetings under one title, parts of a long book.
    """
    begin, end = mentions.titled_by[entity], mentions.titled_by[entity + 1]
    place, which = expand_ranges(begin, end)
    target, fan = mentions.titled[place] + offset[which], (end - begin)[which]
    if not (fan > TITLE_FAN).any():
        return target, which, fan
    followed = (fan <= TITLE_FAN) | in_pool[target]
    return target[followed], which[followed], fan[followed]


def _reverse(anchors: _Anchors, mentions: Mentions) -> Edges:
    """The target mentions the title of the anchor, which at most `REVERSE_FAN` places do."""
    begin, end = mentions.of_entity[anchors.own], mentions.of_entity[anchors.own + 1]
    few = np.flatnonzero(end - begin <= REVERSE_FAN)
    place, which = expand_ranges(begin[few], end[few])
    mention, which = mentions.by_entity[place], few[which]
    where = anchors.titled[which]
    target = mentions.chunk[mention] + anchors.offset[where]
    return _edges(REVERSE, anchors.keys[where], target, anchors.own[which], mention, (end - begin)[which])


def _shared(anchors: _Anchors, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Both mention an entity that at most `SHARED_FAN` places name, or more where the target is in the pool."""
    entity = mentions.entity[anchors.mention]
    begin, end = mentions.of_entity[entity], mentions.of_entity[entity + 1]
    few = np.flatnonzero((end - begin > 1) & (end - begin <= SHARED_FAN_IN_POOL))
    place, which = expand_ranges(begin[few], end[few])
    far, which = mentions.by_entity[place], few[which]
    target = mentions.chunk[far] + anchors.offset[anchors.where[which]]
    followed = np.flatnonzero(((end - begin)[which] <= SHARED_FAN) | in_pool[target])
    target, far, which = target[followed], far[followed], which[followed]
    anchor, fan = anchors.keys[anchors.where[which]], (end - begin)[which]
    return _edges(SHARED, anchor, target, entity[which], anchors.mention[which], fan, far)


def _same_title(anchors: _Anchors, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Both are titled by the same entity: another qualifier, or another part of a long passage."""
    target, which, fan = _titled_by(anchors.own, anchors.offset[anchors.titled], mentions, in_pool)
    anchor = anchors.keys[anchors.titled[which]]
    return _edges(SAME_TITLE, anchor, target, anchors.own[which], np.full(len(target), NOWHERE), fan)


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
