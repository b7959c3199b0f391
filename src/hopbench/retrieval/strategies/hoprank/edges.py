"""The edges from some chunks, the anchors: each leads over an entity or a triple to a target chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, Mentions
from hopbench.retrieval.strategies.hoprank.questions import Questions
from hopbench.retrieval.strategies.hoprank.words import Floats, Lookup, Numbers, Relations, numbered
from hopbench.retrieval.support.arrays import expand_ranges

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
        """The sorted distinct anchors, and the position of each edge's anchor among them, (e,)."""
        return numbered(self.anchor)

    @cached_property
    def targets(self) -> tuple[Numbers, Numbers]:
        """The sorted distinct targets, and the position of each edge's target among them, (e,)."""
        return numbered(self.target)

    @property
    def mentioned(self) -> tuple[tuple[Numbers, Numbers], tuple[Numbers, Numbers]]:
        """Chunk and mention, (e,) both, at the start of each edge and at its end; NOWHERE is the mention of a title."""
        back = self.kind == REVERSE
        near, far = np.where(back, NOWHERE, self.mention), np.where(back, self.mention, self.far)
        return (self.anchor, near), (self.target, far)

    def where(self, chosen: NDArray[Any]) -> Edges:
        """Select edges."""
        return Edges(*(column[chosen] for column in self._columns()))

    def of_one(self, rows: slice, offset: int) -> Edges:
        """Select the edges of one question, with chunks in place of keys."""
        anchor, target, *others = (column[rows] for column in self._columns())
        return Edges(anchor - offset, target - offset, *others)

    def _columns(self) -> tuple[Numbers, ...]:
        return self.anchor, self.target, self.kind, self.entity, self.mention, self.far, self.fan, self.relation

    @classmethod
    def none(cls) -> Edges:
        """Return an empty table."""
        return cls(*np.zeros((8, 0), np.int64))

    @classmethod
    def joined(cls, *parts: Edges) -> Edges:
        """Concatenate several tables of edges."""
        return cls(*map(np.concatenate, zip(*(part._columns() for part in parts), strict=True)))


def edges_from(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Find all edges that leave the anchors, by key (`questions`); none leads back to its own anchor."""
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
    """Find edges whose anchor mentions the target's title."""
    entity = mentions.entity[anchors.mention]
    target, which, fan = _titled_by(entity, anchors.offset[anchors.where], mentions, in_pool)
    anchor = anchors.keys[anchors.where[which]]
    return _edges(FORWARD, anchor, target, entity[which], anchors.mention[which], fan)


def _titled_by(
    entity: Numbers, offset: Numbers, mentions: Mentions, in_pool: Lookup
) -> tuple[Numbers, Numbers, Numbers]:
    """Find the chunks that each entity titles, the position of that entity, and how many chunks it titles.

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
    """Find edges whose target mentions the anchor's title, which has at most `REVERSE_FAN` mentions."""
    begin, end = mentions.of_entity[anchors.own], mentions.of_entity[anchors.own + 1]
    few = np.flatnonzero(end - begin <= REVERSE_FAN)
    place, which = expand_ranges(begin[few], end[few])
    mention, which = mentions.by_entity[place], few[which]
    where = anchors.titled[which]
    target = mentions.chunk[mention] + anchors.offset[where]
    return _edges(REVERSE, anchors.keys[where], target, anchors.own[which], mention, (end - begin)[which])


def _shared(anchors: _Anchors, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Find edges over a shared entity of at most `SHARED_FAN` mentions, or more where the target is in the pool."""
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
    """Find edges between chunks titled by one entity: another qualifier, or another part of a long passage."""
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


TRIPLE_FAN, TRIPLE_FAN_IN_POOL = 10, 40


def triple_edges(anchors: Numbers, mentions: Mentions, relations: Relations, in_pool: Lookup) -> Edges:
    """The anchor is titled by an entity, or mentions it; a triple relates that to the target's title or to a mention.

    At most `TRIPLE_FAN` places may mention the far entity, or `TRIPLE_FAN_IN_POOL` where the target is in the pool; its
    titles are all followed.
    """
    anchor, near, mention = _near_ends(anchors, mentions)
    relation, which = expand_ranges(relations.of_entity[near], relations.of_entity[near + 1])
    anchor, mention, entity = anchor[which], mention[which], relations.other[relation]
    offset = anchor - anchor % len(mentions.own)
    titled, title = expand_ranges(mentions.titled_by[entity], mentions.titled_by[entity + 1])
    begin, end = mentions.of_entity[entity], mentions.of_entity[entity + 1]
    fan = end - begin
    few = np.flatnonzero(fan <= TRIPLE_FAN_IN_POOL)
    place, named = expand_ranges(begin[few], end[few])
    named, far = few[named], mentions.by_entity[place]
    followed = (fan[named] <= TRIPLE_FAN) | in_pool[mentions.chunk[far] + offset[named]]
    named, far = named[followed], far[followed]
    both = np.concatenate([title, named])
    edges = Edges(
        anchor[both],
        np.concatenate([mentions.titled[titled], mentions.chunk[far]]) + offset[both],
        np.full(len(both), TRIPLE),
        entity[both],
        mention[both],
        np.concatenate([np.full(len(title), NOWHERE), far]),
        np.maximum(fan[both], 1),
        relation[both],
    )
    return edges.where(edges.anchor != edges.target)


def _near_ends(anchors: Numbers, mentions: Mentions) -> tuple[Numbers, Numbers, Numbers]:
    """Anchor, entity and first mention of every entity that the anchors name; NOWHERE is the mention of a title."""
    chunks = anchors % len(mentions.own)
    place, which = expand_ranges(mentions.of_chunk[chunks], mentions.of_chunk[chunks + 1])
    pair = which * mentions.entities + mentions.entity[place]
    first = np.unique(pair, return_index=True)[1]
    own = mentions.own[chunks]
    titled = own != NOWHERE
    return (
        np.concatenate([anchors[titled], anchors[which[first]]]),
        np.concatenate([own[titled], mentions.entity[place[first]]]),
        np.concatenate([np.full(int(titled.sum()), NOWHERE), place[first]]),
    )


@dataclass(frozen=True, eq=False)
class TripleFacts:
    """Facts about e edges over triples, each `of` a question (e,).

    `wording` (e,) is the share of open words in the relation's wording.
    """

    candidates: Candidates
    relations: Relations
    edges: Edges
    of: Numbers
    wording: Floats


def triple_features(candidates: Candidates, relations: Relations, edges: Edges) -> Floats:
    """Compute the features of edges over triples, (e, 5); 0 for edges of other kinds."""
    values = np.zeros((len(edges), len(TRIPLE_FEATURES)))
    chosen = np.flatnonzero(edges.kind == TRIPLE)
    over = edges.where(chosen)
    of = over.anchor // candidates.corpus.chunks
    facts = TripleFacts(candidates, relations, over, of, _wording_share(candidates.questions, relations, over, of))
    values[chosen] = np.stack([feature(facts) for feature in TRIPLE_FEATURES], axis=1)
    return values


def _wording_share(questions: Questions, relations: Relations, edges: Edges, of: Numbers) -> Floats:
    size = len(relations.other)
    asked, which = np.unique(of * size + edges.relation, return_inverse=True)
    question, relation = np.divmod(asked, max(size, 1))
    begin, end = relations.word_start[relation], relations.word_start[relation + 1]
    covered = questions.covered(relations.wording, begin, end, question)
    return questions.open_share(covered, question)[which]


def said(facts: TripleFacts) -> Floats:
    """idf share of the open question words in the relation's wording."""
    return facts.wording


def strength(facts: TripleFacts) -> Floats:
    """The triple's confidence."""
    return facts.relations.strength[facts.edges.relation]


def from_asked(facts: TripleFacts) -> Floats:
    """1 where the question names the relation's near end."""
    edges, mentions = facts.edges, facts.candidates.corpus.mentions
    near = near_entities(edges, mentions)
    return facts.candidates.questions.names(near, facts.of).astype(np.float64)


def from_title(facts: TripleFacts) -> Floats:
    """1 where the near end is the anchor's title."""
    return np.asarray(facts.edges.mention == NOWHERE, np.float64)


def to_title(facts: TripleFacts) -> Floats:
    """1 where the far end is the target's title."""
    return np.asarray(facts.edges.far == NOWHERE, np.float64)


def near_entities(edges: Edges, mentions: Mentions) -> Numbers:
    """Return the near entity of each edge: the one mentioned in the anchor, or the anchor's title."""
    near = mentions.own[edges.anchor % len(mentions.own)]
    mentioned = edges.mention != NOWHERE
    near[mentioned] = mentions.entity[edges.mention[mentioned]]
    return near


TRIPLE_FEATURES: tuple[Callable[[TripleFacts], Floats], ...] = (said, strength, from_asked, from_title, to_title)
