"""What an edge says of its target: seventeen numbers, each a function of facts about e edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edge_cosines import edge_cosines
from hopbench.retrieval.strategies.hoprank.edges import Edges
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.surroundings import Surroundings
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.arithmetic import ln


@dataclass(frozen=True, eq=False)
class EdgeFacts:
    """Facts about e edges, each `of` a question, all (e,) but the word flags.

    `anchor_covers` and `target_covers` (e, w) are the question words in both chunks; `window`, `sentence` and their
    `far_` twins are shares of open words around the mentions; `place` counts a mention within its chunk from 0, `count`
    is how many there are.
    """

    candidates: Candidates
    edges: Edges
    of: Numbers
    anchor_covers: Flags
    target_covers: Flags
    target: Numbers
    window: Floats
    sentence: Floats
    far_window: Floats
    far_sentence: Floats
    place: Floats
    count: Floats
    residual: Floats
    alike: Floats


def facts_of(candidates: Candidates, edges: Edges) -> EdgeFacts:
    """Look up what the features of edges are computed from; targets become candidates."""
    mentions = candidates.corpus.mentions
    anchor, target = (candidates.rows(chunks)[place] for chunks, place in (edges.anchors, edges.targets))
    of = edges.anchor // candidates.corpus.chunks
    around = Surroundings(candidates, edges, of)
    residual, alike = edge_cosines(candidates, edges)
    return EdgeFacts(
        candidates=candidates,
        edges=edges,
        of=of,
        anchor_covers=candidates.covered.take(anchor, axis=0),
        target_covers=candidates.covered.take(target, axis=0),
        target=target,
        window=around.window(edges.mention),
        sentence=around.sentence(edges.mention),
        far_window=around.window(edges.far),
        far_sentence=around.sentence(edges.far),
        place=_of_mention(edges.mention, mentions.place, 0.0),
        count=_of_mention(edges.mention, mentions.count, 1.0),
        residual=residual,
        alike=alike,
    )


def window(facts: EdgeFacts) -> Floats:
    """idf share of the open question words within 6 words before and 4 after the mention, in its sentence."""
    return facts.window


def sentence(facts: EdgeFacts) -> Floats:
    """idf share of the open question words in the mention's sentence."""
    return facts.sentence


def early(facts: EdgeFacts) -> Floats:
    """1/(1 + place of the mention among its chunk's)."""
    return np.asarray(1.0 / (1.0 + facts.place))


def focus(facts: EdgeFacts) -> Floats:
    """1/√(mentions in that chunk)."""
    return np.asarray(1.0 / np.sqrt(facts.count))


def gain(facts: EdgeFacts) -> Floats:
    """idf share of the open question words that the target has and the anchor lacks."""
    return facts.candidates.questions.open_share(facts.target_covers & ~facts.anchor_covers, facts.of)


def together(facts: EdgeFacts) -> Floats:
    """idf share of the question's words that anchor and target have together."""
    return facts.candidates.questions.share(facts.target_covers | facts.anchor_covers, facts.of)


def rarity(facts: EdgeFacts) -> Floats:
    """(ln((n + 1)/df) + 1)/(ln(n + 1) + 1) of the entity."""
    corpus = facts.candidates.corpus
    return np.asarray(corpus.rarity[facts.edges.entity] / (ln(corpus.chunks + 1.0) + 1.0))


def asked(facts: EdgeFacts) -> Floats:
    """1 where the question names the entity."""
    return facts.candidates.questions.names(facts.edges.entity, facts.of).astype(np.float64)


def target_dense(facts: EdgeFacts) -> Floats:
    """The target's base feature `dense`."""
    return np.asarray(facts.candidates.base[facts.target, 1])


def target_bm25(facts: EdgeFacts) -> Floats:
    """The target's base feature `bm25`."""
    return np.asarray(facts.candidates.base[facts.target, 0])


def narrow(facts: EdgeFacts) -> Floats:
    """1/√fan: among how many mentions, or titles, the entity leads."""
    return np.asarray(1.0 / np.sqrt(facts.edges.fan))


def trust(facts: EdgeFacts) -> Floats:
    """The weight of the MENTIONED_IN edge, 1 where the edge rests on the anchor's title."""
    return _of_mention(facts.edges.mention, facts.candidates.corpus.mentions.weight, 1.0)


def far_window(facts: EdgeFacts) -> Floats:
    """`window` of the target's mention, for `shared` and `triple`."""
    return facts.far_window


def far_sentence(facts: EdgeFacts) -> Floats:
    """`sentence` of the target's mention, for `shared` and `triple`."""
    return facts.far_sentence


def in_title(facts: EdgeFacts) -> Floats:
    """1 where the mention (for `shared` and `triple` the target's) stands in a title."""
    corpus = facts.candidates.corpus
    deciding = np.where(facts.edges.far != NOWHERE, facts.edges.far, facts.edges.mention)
    return _of_mention(deciding, corpus.texts.in_title, 0.0)


def residual(facts: EdgeFacts) -> Floats:
    """Cosine of the target with the question minus its projection on the anchor."""
    return facts.residual


def alike(facts: EdgeFacts) -> Floats:
    """Cosine of target and anchor."""
    return facts.alike


def _of_mention(mention: Numbers, values: NDArray[Any], otherwise: float) -> NDArray[Any]:
    """A column of the mentions, `otherwise` for NOWHERE."""
    if not len(values):
        return np.full(len(mention), otherwise, values.dtype)
    return np.where(mention != NOWHERE, values[mention], otherwise)


EDGE_FEATURES: tuple[Callable[[EdgeFacts], Floats], ...] = (
    window,
    sentence,
    early,
    focus,
    gain,
    together,
    rarity,
    asked,
    target_dense,
    target_bm25,
    narrow,
    trust,
    far_window,
    far_sentence,
    in_title,
    residual,
    alike,
)
