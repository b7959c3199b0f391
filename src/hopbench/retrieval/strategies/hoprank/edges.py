"""The edges from some chunks, the anchors, over an entity or a triple to a target chunk; and their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import BASE_FEATURES, Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, Mentions
from hopbench.retrieval.strategies.hoprank.questions import parts_of
from hopbench.retrieval.strategies.hoprank.words import Floats, Lookup, Numbers, Relations, columns, numbered
from hopbench.retrieval.support.arithmetic import ln
from hopbench.retrieval.support.arrays import distinct, expand_ranges

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

    def where(self, chosen: NDArray[Any]) -> Edges:
        """Select edges."""
        return Edges(*(column[chosen] for column in self.columns()))

    def of_one(self, rows: slice, offset: int) -> Edges:
        """Select the edges of one question, with chunks in place of keys."""
        anchor, target, *others = (column[rows] for column in self.columns())
        return Edges(anchor - offset, target - offset, *others)

    def columns(self) -> tuple[Numbers, ...]:
        """All columns, in the order of the fields."""
        return self.anchor, self.target, self.kind, self.entity, self.mention, self.far, self.fan, self.relation

    @classmethod
    def none(cls) -> Edges:
        """Return an empty table."""
        return cls(*np.zeros((8, 0), np.int64))

    @classmethod
    def joined(cls, *parts: Edges) -> Edges:
        """Concatenate several tables of edges."""
        return cls(*map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))


def edges_from(anchors: Numbers, mentions: Mentions, in_pool: Lookup) -> Edges:
    """Find all edges that leave the anchors, by key (`questions`); none leads back to its own anchor."""
    chunks = anchors % len(mentions.own)
    offset = anchors - chunks
    mention, where = expand_ranges(mentions.of_chunk[chunks], mentions.of_chunk[chunks + 1])
    entity = mentions.entity[mention]
    own = mentions.own[chunks]
    titled = np.flatnonzero(own != NOWHERE)
    own = own[titled]

    target, which, fan = _titled_by(entity, offset[where], mentions, in_pool)
    forward = _edges(FORWARD, anchors[where[which]], target, entity[which], mention[which], fan)

    begin, end = mentions.of_entity[own], mentions.of_entity[own + 1]
    few = np.flatnonzero(end - begin <= REVERSE_FAN)
    place, which = expand_ranges(begin[few], end[few])
    back, which = mentions.by_entity[place], few[which]
    target, fan = mentions.chunk[back] + offset[titled[which]], (end - begin)[which]
    reverse = _edges(REVERSE, anchors[titled[which]], target, own[which], back, fan)

    begin, end = mentions.of_entity[entity], mentions.of_entity[entity + 1]
    few = np.flatnonzero((end - begin > 1) & (end - begin <= SHARED_FAN_IN_POOL))
    place, which = expand_ranges(begin[few], end[few])
    far, which = mentions.by_entity[place], few[which]
    target = mentions.chunk[far] + offset[where[which]]
    followed = np.flatnonzero(((end - begin)[which] <= SHARED_FAN) | in_pool[target])
    target, far, which = target[followed], far[followed], which[followed]
    anchor, fan = anchors[where[which]], (end - begin)[which]
    shared = _edges(SHARED, anchor, target, entity[which], mention[which], fan, far)

    target, which, fan = _titled_by(own, offset[titled], mentions, in_pool)  # other qualifiers, parts of long passages
    nothing = np.full(len(target), NOWHERE)
    same_title = _edges(SAME_TITLE, anchors[titled[which]], target, own[which], nothing, fan)
    edges = Edges.joined(forward, reverse, shared, same_title)
    return edges.where(edges.anchor != edges.target)


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


def near_entities(edges: Edges, mentions: Mentions) -> Numbers:
    """Return the near entity of each edge: the one mentioned in the anchor, or the anchor's title."""
    near = mentions.own[edges.anchor % len(mentions.own)]
    mentioned = edges.mention != NOWHERE
    near[mentioned] = mentions.entity[edges.mention[mentioned]]
    return near


# docs/hoprank.md has the formula of each.
EDGE_FEATURES = (
    *("window", "sentence", "early", "focus", "gain", "together", "rarity", "asked", "target_dense", "target_bm25"),
    *("narrow", "trust", "far_window", "far_sentence", "in_title", "residual", "alike"),
)
TRIPLE_FEATURES = ("said", "strength", "from_asked", "from_title", "to_title")
BEFORE, AFTER = 6, 4  # words around a mention
TINY_LENGTH = 1e-9
MIN_REMAINDER = 1e-6  # of the squared length of a question, beside what an anchor says of it


def edge_features(candidates: Candidates, edges: Edges) -> Floats:
    """Compute the features of edges, (e, 17), with triples (e, 22); targets become candidates."""
    corpus, mentions, questions = candidates.corpus, candidates.corpus.mentions, candidates.questions
    (anchors, anchor), (targets, target) = edges.anchors, edges.targets
    from_row, into_row = candidates.rows(anchors)[anchor], candidates.rows(targets)[target]
    of = edges.anchor // corpus.chunks
    in_anchor, in_target = (candidates.covered.take(rows, axis=0) for rows in (from_row, into_row))
    (window, sentence), (far_window, far_sentence) = _around(candidates, of, edges.mention, edges.far)
    values = [
        window,
        sentence,
        1.0 / (1.0 + _of_mention(edges.mention, mentions.place, 0.0)),
        1.0 / np.sqrt(_of_mention(edges.mention, mentions.count, 1.0)),
        questions.open_share(in_target & ~in_anchor, of),
        questions.share(in_target | in_anchor, of),
        corpus.rarity[edges.entity] / (ln(corpus.chunks + 1.0) + 1.0),
        questions.names(edges.entity, of).astype(np.float64),
        candidates.base[into_row, BASE_FEATURES.index("dense")],
        candidates.base[into_row, BASE_FEATURES.index("bm25")],
        1.0 / np.sqrt(edges.fan),
        _of_mention(edges.mention, mentions.weight, 1.0),
        far_window,
        far_sentence,
        _of_mention(np.where(edges.far != NOWHERE, edges.far, edges.mention), mentions.in_title, 0.0),
        *_edge_cosines(candidates, edges),
    ]
    if corpus.relations is not None:
        values += _triple_features(candidates, corpus.relations, edges, of)
    return columns(values)


def _of_mention(mention: Numbers, values: NDArray[Any], otherwise: float) -> NDArray[Any]:
    """Look up a column of the mentions; `otherwise` for NOWHERE."""
    if not len(values):
        return np.full(len(mention), otherwise, values.dtype)
    return np.where(mention != NOWHERE, values[mention], otherwise)


def _around(candidates: Candidates, of: Numbers, *mentions: Numbers) -> Iterator[tuple[Floats, Floats]]:
    """Compute shares of open words in the window of each mention `of` a question and in its sentence, 0 for none."""
    known, words, questions = candidates.corpus.mentions, candidates.corpus.words, candidates.questions
    count, size = len(known.chunk), max(len(words.sentence_start) - 1, 1)
    keys = [np.where(mention != NOWHERE, of * count + mention, NOWHERE) for mention in mentions]
    used = distinct(np.concatenate(keys))
    used = used[used != NOWHERE]
    used = used[known.start[used % max(count, 1)] != NOWHERE]
    question, mention = np.divmod(used, max(count, 1))
    start, behind = known.start[mention], known.start[mention] + known.length[mention]
    sentence, which = numbered(question * size + known.sentence[mention])
    begin, end = words.of_sentences(sentence % size)
    low, high = np.maximum(start - BEFORE, begin[which]), np.minimum(behind + AFTER, end[which])
    starts, ends = np.concatenate([begin, low, behind]), np.concatenate([end, start, high])
    asking = np.concatenate([sentence // size, question, question])
    covered = questions.covered(words.numbers, starts, ends, asking)
    before, after = np.split(covered[len(begin) :], 2)
    in_sentence = questions.open_share(covered[: len(begin)], asking[: len(begin)])[which]
    in_window = questions.open_share(before | after, question)
    for each in keys:
        window, whole = (np.asarray(Lookup(used, values, 0.0)[each]) for values in (in_window, in_sentence))
        yield window, whole


def _edge_cosines(candidates: Candidates, edges: Edges) -> tuple[Floats, Floats]:
    """Compute each target's cosine with the question's residual after its anchor, and with the anchor itself."""
    vectors, chunks, count = candidates.corpus.vectors, candidates.corpus.chunks, len(candidates.questions)
    (anchors, anchor), (targets, target) = edges.anchors, edges.targets
    starts, ends = (parts_of(keys // chunks, count) for keys in (anchors, targets))
    cosines = []
    for out_of, into, vector in zip(starts, ends, candidates.vectors, strict=True):
        rows = anchors[out_of] % chunks, targets[into] % chunks
        sources, goals = (vectors.take(one, axis=0).astype(np.float64) for one in rows)
        question = vector.astype(np.float64)
        # The products are exact (`arithmetic`), so what is left of the question is never made, but its cosines are:
        # (q − (a·q)a)·t = q·t − (a·q)(a·t), and its length is √(q·q − (a·q)²) for an anchor of length 1.
        of_anchor, of_target, alike = sources @ question, goals @ question, sources @ goals.T
        # An anchor that says the same as the question leaves nothing but the rounding of vectors.
        square = question @ question - of_anchor * of_anchor
        left = np.sqrt(np.where(square < MIN_REMAINDER, np.inf, square)) + TINY_LENGTH  # as the weights were learned
        residual = (of_target - of_anchor[:, None] * alike) / left[:, None]
        cosines.append((residual.round(COSINE_DECIMALS).ravel(), alike.round(COSINE_DECIMALS).ravel()))
    # One matrix of anchors and targets after the other: where each edge's cell is.
    width, height = (np.array([rows.stop - rows.start for rows in each], np.int64) for each in (ends, starts))
    first = (width * height).cumsum() - width * height
    of = edges.anchor // chunks
    row, column = anchor - (height.cumsum() - height)[of], target - (width.cumsum() - width)[of]
    cell = first[of] + row * width[of] + column
    residuals, likes = (np.concatenate(values) for values in zip(*cosines, strict=True))
    return residuals[cell], likes[cell]


def _triple_features(candidates: Candidates, relations: Relations, edges: Edges, of: Numbers) -> list[Floats]:
    """Compute the features of edges over triples, five of (e,); 0 for edges of other kinds."""
    questions, size = candidates.questions, max(len(relations.other), 1)
    chosen = np.flatnonzero(edges.kind == TRIPLE)
    over, of = edges.where(chosen), of[chosen]
    asked, which = np.unique(of * size + over.relation, return_inverse=True)
    question, relation = np.divmod(asked, size)
    begin, end = relations.word_start[relation], relations.word_start[relation + 1]
    covered = questions.covered(relations.wording, begin, end, question)
    values = np.zeros((len(TRIPLE_FEATURES), len(edges)))
    values[:, chosen] = [
        questions.open_share(covered, question)[which],
        relations.strength[over.relation],
        questions.names(near_entities(over, candidates.corpus.mentions), of),
        over.mention == NOWHERE,
        over.far == NOWHERE,
    ]
    return list(values)
