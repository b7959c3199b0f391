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
from hopbench.retrieval.strategies.hoprank.questions import Questions
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.csr import expand_ranges

PARTNERS = 20
LINKED = 0.05  # P(edge)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each of k candidates with each of p, its partners; all have an axis more, the first: lists side by side.

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
        cls, corpus: CorpusIndex, questions: Questions, chunks: Numbers, closeness: Closeness, edge: Floats
    ) -> Pairs:
        """Each of the chunks of n lists, (n · k,), with each of its list.

        `edge` (n, k, k) is P(edge) of the best edge from the one to the other.
        """
        close, told, of = closeness.chunk, _title_and_best(questions, closeness), closeness.read.of
        lists, size = edge.shape[:2]
        others = ~np.eye(size, dtype=bool)
        together, open_together, of_sentences = np.empty((3, *edge.shape))
        for one, number in enumerate(of[::size].tolist()):
            question, rows = questions[number], slice(one * size, (one + 1) * size)
            near, best = close[rows, : len(question.words)], told[rows, : len(question.words)]
            together[one], open_together[one] = question.together_and_open(near, near)
            of_sentences[one] = question.together(best, best)
        return cls(
            own=questions.share(close, of).reshape(lists, size),
            open_own=questions.open_share(close, of).reshape(lists, size),
            together=together,
            open_together=open_together,
            of_sentences=of_sentences,
            edge=np.maximum(edge, edge.swapaxes(1, 2)) * others,
            titled=_titled(corpus, chunks, of, size) & others,
            others=np.broadcast_to(others, edge.shape),
        )

    def of_some(self, places: Numbers) -> Pairs:
        """Some of them in their order, (…, r), the first of which are the partners of all of their list."""
        return Pairs(*with_partners([getattr(self, column.name) for column in fields(self)], places))

    @property
    def linked(self) -> Flags:
        """Whether there is an edge between the two, (k, p)."""
        return self.edge > LINKED

    def best(self, values: Floats, where: Flags) -> Floats:
        """The largest of the values (k, p) where something holds, at least 0, (k,)."""
        return np.asarray(np.maximum.reduce(values * where, axis=-1, initial=0.0))


def with_partners(known: Sequence[NDArray[Any]], places: Numbers) -> Iterator[NDArray[Any]]:
    """What is known of each (n, k), or of each with each (n, k, k), of some: (…, r), or (…, r, p) with the first.

    The candidates of all lists are numbered one after the other.
    """
    size = known[0].shape[1]
    # Looked up by the number of the cell in a third of the time that pairs take.
    cells = places[..., None] * size + places[..., None, :PARTNERS] % size
    return (values.take(places if values.ndim == 2 else cells) for values in known)


def _title_and_best(questions: Questions, closeness: Closeness) -> Floats:
    """How close the question's words come to those of each chunk's title and best sentence, (k, w)."""
    share = questions.share(closeness.sentence, closeness.read.of_sentence)
    titles = closeness.read.first[:-1]
    order = np.lexsort((-share, closeness.read.chunk))  # stable: the first of equal ones
    best, title = (closeness.sentence.take(rows, axis=0) for rows in (order[titles], titles))
    return np.asarray(np.maximum(best, title))


def _titled(corpus: CorpusIndex, chunks: Numbers, of: Numbers, size: int) -> Flags:
    """Whether one of two chunks of a list mentions the title of the other, (n, k, k); each is read `of` a question."""
    mentions = corpus.mentions
    mention, owner = expand_ranges(mentions.of_chunk[chunks], mentions.of_chunk[chunks + 1])
    titled = np.flatnonzero(mentions.own[chunks] != NOWHERE)
    entities = mentions.entities
    own, entity = mentions.own[chunks][titled] + of[titled] * entities, mentions.entity[mention] + of[owner] * entities
    order = np.argsort(own, kind="stable")
    low, high = (own[order].searchsorted(entity, side) for side in ("left", "right"))
    place, which = expand_ranges(low, high)
    cells = np.zeros((len(chunks), size), bool)
    cells[owner[which], titled[order[place]] % size] = True
    names = cells.reshape(-1, size, size)
    return np.asarray(names | names.swapaxes(1, 2))
