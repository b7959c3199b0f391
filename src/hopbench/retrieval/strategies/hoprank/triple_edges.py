"""Edges over a relation that a triple states: the anchor names one end, the target the other; with their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edges import TRIPLE, Edges
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE, Mentions
from hopbench.retrieval.strategies.hoprank.questions import Questions
from hopbench.retrieval.strategies.hoprank.relations import Relations
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.csr import expand_ranges

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
    """The features that only edges over triples have, (e, 5); 0 for edges of other kinds."""
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
    """The near entity of each edge: the one mentioned in the anchor, or the anchor's title."""
    near = mentions.own[edges.anchor % len(mentions.own)]
    mentioned = edges.mention != NOWHERE
    near[mentioned] = mentions.entity[edges.mention[mentioned]]
    return near


TRIPLE_FEATURES: tuple[Callable[[TripleFacts], Floats], ...] = (said, strength, from_asked, from_title, to_title)
