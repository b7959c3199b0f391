"""Candidates two by two: what of the question both cover together, and what links them.

Evidence of two hops is a pair of passages that cover the question between them. A passage that covers little by itself
is known by its partner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.question import ReadQuestion
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.csr import expand_ranges

PARTNERS = 20
LINKED = 0.05  # P(edge)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each of k candidates with each of p, its partners; of several lists all have an axis more, the first.

    `together` (k, p) is the idf share of the question's words that both cover, as far as their words are close,
    `open_together` that of the open ones, `of_sentences` that of the title and the best sentence of each; `own` and
    `open_own` (k,) are what each covers alone. `edge` (k, p) is P(edge) of the best edge either way, `titled` (k, p)
    whether one mentions the other's title. `others` (k, p) is false for a candidate with itself.
    """

    own: Floats
    open_own: Floats
    together: Floats
    open_together: Floats
    of_sentences: Floats
    edge: Floats
    titled: Flags
    others: Flags

    @classmethod
    def of(
        cls, corpus: CorpusIndex, question: ReadQuestion, chunks: Numbers, closeness: Closeness, edge: Floats
    ) -> Pairs:
        """Each of some chunks with each; `edge` (k, k) is P(edge) of the best edge from the one to the other."""
        close, told = closeness.chunk, _title_and_best(question, closeness)
        others = ~np.eye(len(chunks), dtype=bool)
        together, open_together = question.together_and_open(close, close)
        return cls(
            own=question.share(close),
            open_own=question.open_share(close),
            together=together,
            open_together=open_together,
            of_sentences=question.together(told, told),
            edge=np.maximum(edge, edge.T) * others,
            titled=_titled(corpus, chunks) & others,
            others=others,
        )

    def of_some(self, places: Numbers) -> Pairs:
        """Some of them in their order, the first of which are the partners of all."""
        return Pairs(*with_partners([getattr(self, column.name) for column in fields(self)], places))

    @property
    def linked(self) -> Flags:
        """Whether there is an edge between the two, (k, p)."""
        return self.edge > LINKED

    def best(self, values: Floats, where: Flags) -> Floats:
        """The largest of the values (k, p) where something holds, at least 0, (k,)."""
        return np.asarray(np.maximum.reduce(values * where, axis=-1, initial=0.0))


def with_partners(known: Sequence[NDArray[Any]], places: Numbers) -> Iterator[NDArray[Any]]:
    """What is known of each (k,), or of each with each (k, k), of some: (r,), or (r, p) with the first of them."""
    cells = places[:, None] * len(known[0]) + places[:PARTNERS]  # looked up in a third of the time that pairs take
    return (values.take(places if values.ndim == 1 else cells) for values in known)


def _title_and_best(question: ReadQuestion, closeness: Closeness) -> Floats:
    """How close the question's words come to those of each chunk's title and best sentence, (k, w)."""
    share = question.share(closeness.sentence)
    titles = closeness.read.first[:-1]
    order = np.lexsort((-share, closeness.read.chunk))  # stable: the first of equal ones
    return np.asarray(np.maximum(closeness.sentence[order[titles]], closeness.sentence[titles]))


def _titled(corpus: CorpusIndex, chunks: Numbers) -> Flags:
    """Whether one of two chunks mentions the title of the other, (k, k)."""
    mentions = corpus.mentions
    mention, owner = expand_ranges(mentions.of_chunk[chunks], mentions.of_chunk[chunks + 1])
    own = mentions.own[chunks]
    order = np.argsort(own, kind="stable")
    entity = mentions.entity[mention]
    low, high = (own[order].searchsorted(entity, side) for side in ("left", "right"))
    place, which = expand_ranges(low, high)
    names = np.zeros((len(chunks), len(chunks)), bool)
    names[owner[which], order[place]] = own[order[place]] != NOWHERE
    return np.asarray(names | names.T)
