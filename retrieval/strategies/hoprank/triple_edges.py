"""Edges over a relation that a triple states: the anchor names one end, the target the other; with their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edges import TRIPLE, Edges
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE, Mentions
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
    titled, title = expand_ranges(mentions.titled_by[entity], mentions.titled_by[entity + 1])
    begin, end = mentions.of_entity[entity], mentions.of_entity[entity + 1]
    fan = end - begin
    few = np.flatnonzero(fan <= TRIPLE_FAN_IN_POOL)
    place, named = expand_ranges(begin[few], end[few])
    named, far = few[named], mentions.by_entity[place]
    followed = (fan[named] <= TRIPLE_FAN) | in_pool[mentions.chunk[far]]
    named, far = named[followed], far[followed]
    both = np.concatenate([title, named])
    edges = Edges(
        anchor[both],
        np.concatenate([mentions.titled[titled], mentions.chunk[far]]),
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
    place, which = expand_ranges(mentions.of_chunk[anchors], mentions.of_chunk[anchors + 1])
    pair = which * mentions.entities + mentions.entity[place]
    first = np.unique(pair, return_index=True)[1]
    own = mentions.own[anchors]
    titled = own != NOWHERE
    return (
        np.concatenate([anchors[titled], anchors[which[first]]]),
        np.concatenate([own[titled], mentions.entity[place[first]]]),
        np.concatenate([np.full(int(titled.sum()), NOWHERE), place[first]]),
    )


@dataclass(frozen=True, eq=False)
class TripleFacts:
    """Facts about e edges over triples: their `wording` (e,), the share of open words in the relation's wording."""

    candidates: Candidates
    relations: Relations
    edges: Edges
    wording: Floats


def triple_features(candidates: Candidates, relations: Relations, edges: Edges) -> Floats:
    """The features that only edges over triples have, (e, 5); 0 for edges of other kinds."""
    values = np.zeros((len(edges), len(TRIPLE_FEATURES)))
    chosen = np.flatnonzero(edges.kind == TRIPLE)
    facts = TripleFacts(
        candidates, relations, edges.where(chosen), _wording_share(candidates, relations, edges.relation[chosen])
    )
    values[chosen] = np.stack([feature(facts) for feature in TRIPLE_FEATURES], axis=1)
    return values


def _wording_share(candidates: Candidates, relations: Relations, relation: Numbers) -> Floats:
    distinct, which = np.unique(relation, return_inverse=True)
    place, owner = expand_ranges(relations.word_start[distinct], relations.word_start[distinct + 1])
    numbers = candidates.question.numbers
    covered = np.zeros((len(distinct), len(numbers)), bool)
    row, column = np.nonzero(relations.wording[place][:, None] == numbers)
    covered[owner[row], column] = True
    return candidates.question.open_share(covered)[which]


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
    return np.isin(near, list(facts.candidates.question.entities)).astype(np.float64)


def from_title(facts: TripleFacts) -> Floats:
    """1 where the near end is the anchor's title."""
    return np.asarray(facts.edges.mention == NOWHERE, np.float64)


def to_title(facts: TripleFacts) -> Floats:
    """1 where the far end is the target's title."""
    return np.asarray(facts.edges.far == NOWHERE, np.float64)


def near_entities(edges: Edges, mentions: Mentions) -> Numbers:
    """The near entity of each edge: the one mentioned in the anchor, or the anchor's title."""
    near = mentions.own[edges.anchor]
    mentioned = edges.mention != NOWHERE
    near[mentioned] = mentions.entity[edges.mention[mentioned]]
    return near


TRIPLE_FEATURES: tuple[Callable[[TripleFacts], Floats], ...] = (said, strength, from_asked, from_title, to_title)
