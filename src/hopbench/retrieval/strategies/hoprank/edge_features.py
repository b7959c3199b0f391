"""The seventeen features of an edge, each a function of facts about e edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE
from hopbench.retrieval.strategies.hoprank.edges import Edges
from hopbench.retrieval.strategies.hoprank.questions import parts_of
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Lookup, Numbers, numbered
from hopbench.retrieval.support.arithmetic import ln
from hopbench.retrieval.support.arrays import distinct

TINY_LENGTH = 1e-9
MIN_REMAINDER = 1e-6  # of the squared length of a question, beside what an anchor says of it


def edge_cosines(candidates: Candidates, edges: Edges) -> tuple[Floats, Floats]:
    """Compute each target's cosine with the question's residual after its anchor, and with the anchor itself."""
    vectors, chunks, count = candidates.corpus.vectors, candidates.corpus.chunks, len(candidates.questions)
    (anchors, anchor), (targets, target) = edges.anchors, edges.targets
    starts, ends = (parts_of(keys // chunks, count) for keys in (anchors, targets))
    from_rows, into_rows = anchors % chunks, targets % chunks
    found = [
        _of_one_question(vectors.take(from_rows[of], axis=0), vectors.take(into_rows[to], axis=0), question)
        for of, to, question in zip(starts, ends, candidates.vectors, strict=True)
    ]
    # One matrix of anchors and targets after the other: where each edge's cell is.
    width = np.array([rows.stop - rows.start for rows in ends], np.int64)
    height = np.array([rows.stop - rows.start for rows in starts], np.int64)
    first = (width * height).cumsum() - width * height
    of = edges.anchor // chunks
    row, column = anchor - (height.cumsum() - height)[of], target - (width.cumsum() - width)[of]
    cell = first[of] + row * width[of] + column
    residual, alike = (np.concatenate([one.ravel() for one in values]) for values in zip(*found, strict=True))
    return residual[cell], alike[cell]


def _of_one_question(*vectors: Vectors) -> tuple[Floats, Floats]:
    """Compute both cosines, (a, t), from the vectors of anchors (a, d), targets (t, d) and the question (d,)."""
    anchors, targets, question = (one.astype(np.float64) for one in vectors)
    # The products are exact (`arithmetic`), so what is left of the question is never made, but its cosines are:
    # (q − (a·q)a)·t = q·t − (a·q)(a·t), and its length is √(q·q − (a·q)²) for an anchor of length 1.
    of_anchor, of_target, alike = anchors @ question, targets @ question, anchors @ targets.T
    # An anchor that says the same as the question leaves nothing but the rounding of vectors.
    square = question @ question - of_anchor * of_anchor
    left = np.sqrt(np.where(square < MIN_REMAINDER, np.inf, square)) + TINY_LENGTH  # as the weights were learned
    residual = (of_target - of_anchor[:, None] * alike) / left[:, None]
    return residual.round(COSINE_DECIMALS), alike.round(COSINE_DECIMALS)


BEFORE, AFTER = 6, 4  # words


class Surroundings:
    """Shares of a question's open words around the mentions of some edges, each `of` a question."""

    def __init__(self, candidates: Candidates, edges: Edges, of: Numbers) -> None:
        mentions, words, questions = candidates.corpus.mentions, candidates.corpus.words, candidates.questions
        self._of, self._mentions, size = of, len(mentions.chunk), max(len(words.sentence_start) - 1, 1)
        used = np.concatenate([self._keys(edges.mention), self._keys(edges.far)])
        used = distinct(used[used != NOWHERE])
        question, mention = np.divmod(used, max(self._mentions, 1))
        placed = np.flatnonzero(mentions.start[mention] != NOWHERE)
        self._used, question, mention = used[placed], question[placed], mention[placed]
        start, behind = mentions.start[mention], mentions.start[mention] + mentions.length[mention]
        home = question * size + candidates.corpus.texts.sentence[mention]
        sentence, which = numbered(home)
        begin, end = words.of_sentences(sentence % size)
        low, high = np.maximum(start - BEFORE, begin[which]), np.minimum(behind + AFTER, end[which])
        starts, ends = np.concatenate([begin, low, behind]), np.concatenate([end, start, high])
        asking = np.concatenate([sentence // size, question, question])
        covered = questions.covered(words.numbers, starts, ends, asking)
        before, after = np.split(covered[len(begin) :], 2)
        self._sentence = questions.open_share(covered[: len(begin)], asking[: len(begin)])[which]
        self._window = questions.open_share(before | after, question)

    def _keys(self, mention: Numbers) -> Numbers:
        """Number mentions by question; NOWHERE stays."""
        return np.where(mention != NOWHERE, self._of * self._mentions + mention, NOWHERE)

    def window(self, mention: Numbers) -> Floats:
        """Return the share in the words before and after each mention, 0 for none."""
        return self._found(mention, self._window)

    def sentence(self, mention: Numbers) -> Floats:
        """Return the share in the sentence of each mention, 0 for none."""
        return self._found(mention, self._sentence)

    def _found(self, mention: Numbers, values: Floats) -> Floats:
        return np.asarray(Lookup(self._used, values, otherwise=0.0)[self._keys(mention)])


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
    """Look up a column of the mentions; `otherwise` for NOWHERE."""
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
