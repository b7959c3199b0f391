"""Facts about the best candidates of the last pass side by side, from which the features of trees are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.edges import KINDS, TRIPLE
from hopbench.retrieval.strategies.hoprank.links import (
    PARTNERS,
    Closeness,
    LinkingWords,
    Pairs,
    SentenceLinks,
    WordLinks,
)
from hopbench.retrieval.strategies.hoprank.paths import sigmoid
from hopbench.retrieval.strategies.hoprank.questions import Questions, ReadQuestion
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, ListedWords, Numbers


@dataclass(frozen=True, eq=False)
class Chains:
    """Each of k candidates with the best of all pairs of partners, a partner with itself among them, (…, k) both.

    A chain counts how close all three come to the question together, by idf shares, times the better of the
    candidate's links to the two; then `onward` times the link between the two, and `sure` times the product of their σ.
    A link is the share of the title of one in the other, or what their rare words count, at most 1, times σ.
    """

    onward: Floats
    sure: Floats

    @classmethod
    def of(cls, questions: Sequence[ReadQuestion], close: Floats, links: WordLinks, sure: Floats) -> Chains:
        """Find the chains of the candidates of lists, each of a question.

        `close` (…, k, w) is how close they come to the question's words; `sure` (…, p) is σ of the partners.
        """
        link = np.maximum(np.maximum(links.title, links.holds), np.minimum(links.rare, 1.0)) * sure[..., None, :]
        found = np.empty((2, len(questions), close.shape[-2]))
        axes = close.ndim - 2  # those of lists
        lists = (values.reshape(len(questions), *values.shape[axes:]) for values in (close, link, sure))
        for number, (question, near, between, surely) in enumerate(zip(questions, *lists, strict=True)):
            found[:, number] = _best(question, near[:, : len(question.words)], between, surely)
        return cls(*found.reshape(2, *close.shape[:-1]))


def _best(question: ReadQuestion, close: Floats, link: Floats, sure: Floats) -> tuple[Floats, Floats]:
    """Find the best chains of one list's candidates, (k,) both, from their links with partners (k, p)."""
    one, other = _two_of(len(sure))
    links = link.T.copy()  # with pairs as rows, which are copied faster than columns
    linked = question.together(np.maximum(close.take(one, axis=0), close.take(other, axis=0)), close)
    linked *= np.maximum(links.take(one, axis=0), links.take(other, axis=0))
    onward, both = np.maximum(link[one, other], link[other, one]), sure[one] * sure[other]
    return (linked * onward[:, None]).max(axis=0, initial=0.0), (linked * both[:, None]).max(axis=0, initial=0.0)


@cache
def _two_of(count: int) -> tuple[Numbers, Numbers]:
    """Number the first and the second of each pair of partners, including a partner with itself."""
    return np.triu_indices(count)


@dataclass(frozen=True, eq=False)
class Reading:
    """The chunks of n lists that trees read, r of each, (n · r,), and the links of each with each of its list.

    `known` are features of them, (n · r,), computed by now.
    """

    corpus: CorpusIndex
    questions: Questions
    chunks: Numbers
    closeness: Closeness
    pairs: Pairs
    word_links: WordLinks
    sentence_links: SentenceLinks
    known: dict[str, Floats] = field(default_factory=dict)

    @property
    def words(self) -> ListedWords:
        """The words of the chunks, sentence by sentence."""
        return self.closeness.read

    @classmethod
    def of(
        cls,
        corpus: CorpusIndex,
        questions: Questions,
        asked: Sequence[NDArray[np.int16]],
        chunks: Numbers,
        of: Numbers,
        edge: Floats,
    ) -> Reading:
        """Read the chunks (n, r) of n lists, each `of` a question (n,), ascending.

        `asked` are the vectors of each question's words, (w, 256); `edge` (n, r, r) is P(edge) of the best edge from
        one chunk to another.
        """
        lists, size = chunks.shape
        read = chunks.ravel()
        words = ListedWords.read(corpus.words, read, of.repeat(size))
        closeness = Closeness.of(corpus, questions, words, asked)
        linking = LinkingWords.of(corpus, questions, closeness, (lists, size))
        return cls(
            corpus,
            questions,
            read,
            closeness,
            Pairs.of(corpus, questions, read, closeness, edge),
            WordLinks.of(linking),
            SentenceLinks.of(questions, closeness, linking),
        )


_OF_LISTED = (
    "chunks",
    "first_score",
    "pool_score",
    "base",
    "paths",
    "covers",
    "anchor",
    "own",
    "best",
    "best_anchor",
    "best_edge",
)
TOP = 4
PATHS = tuple(f"path_{name}" for name in (*KINDS[:TRIPLE], "any", "several"))


@dataclass(frozen=True, eq=False, kw_only=True)
class ListFacts:
    """Facts about n lists, each the k best candidates of a question, best first, of which trees read the first r.

    All arrays have an axis more than is said here, the first: that of the lists. One list by itself (`one`) has none.

    `score` (k,) is what they are ordered by, `first_score` and `pool_score` (k,) are those of the first pass and of the
    pool; `base` (k, 12) and `paths` (k, 6) are features of the linear score. `anchor` (k,) tells the anchors of the
    last pass that lead to another candidate, `own` (k,) is the entity each is titled by.
    `edge` (k, k) is P(edge) of the best edge from the one to the other, `best` (k, 17) the features of the best edge
    into each, `best_anchor` and `best_edge` (k,) its P(anchor) and P(edge): 0 where there is none. `cosine` (r,) and
    `alike` (r, r) are the cosines of those that are read with the question and with each other.
    `of` () is the list's question and `covers` (k, w) are its words in each candidate. Those that are read stand at
    these `places` (r,) of the `reading`, which all lists share. `known` are features that others need as well.
    """

    chunks: Numbers
    score: Floats
    first_score: Floats
    pool_score: Floats
    base: Floats
    paths: Floats
    anchor: Flags
    own: Numbers
    edge: Floats
    best: Floats
    best_anchor: Floats
    best_edge: Floats
    cosine: Floats
    alike: Floats
    of: Numbers
    covers: Flags
    reading: Reading
    places: Numbers
    known: dict[str, Floats] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """The number of a list's candidates that trees read, r."""
        return int(self.places.shape[-1])

    @cached_property
    def sure(self) -> Floats:
        """σ(score − fifth best score) of each, (k,)."""
        fifth = min(4, self.score.shape[-1] - 1)
        return sigmoid(self.score - self.score[..., fifth, None])

    @property
    def partners_sure(self) -> Floats:
        """The same of the first `PARTNERS`, (1, p): a factor of what stands in columns of partners."""
        return self.sure[..., None, :PARTNERS]

    @property
    def above(self) -> Flags:
        """Whether the column's candidate stands above the row's, (k, k), the same for all lists."""
        return _below_diagonal(self.score.shape[-1])

    @cached_property
    def close(self) -> Floats:
        """How close each that is read comes to the question's words, (n, r, w)."""
        return self.reading.closeness.chunk.take(self.places, axis=0)

    @cached_property
    def pairs(self) -> Pairs:
        """Each that is read with each of the very first."""
        return self.reading.pairs.of_some(self.places)

    @cached_property
    def word_links(self) -> WordLinks:
        """The links by words of each that is read with the very first."""
        return self.reading.word_links.of_some(self.places)

    @property
    def sentence_links(self) -> SentenceLinks:
        """Those of all that were read; they name candidates by their places in the reading."""
        return self.reading.sentence_links

    @cached_property
    def sure_partners(self) -> Floats:
        """σ of the very first by their places in the reading, 0 of all others there."""
        return self._at(self.places[..., :PARTNERS], self.sure[..., : min(PARTNERS, self.read)])

    @cached_property
    def partners(self) -> Floats:
        """1 for the very first by their places in the reading, 0 for all others there."""
        return self._at(self.places[..., :PARTNERS], 1.0)

    @cached_property
    def first(self) -> Floats:
        """1 for the first of each list by their places in the reading, 0 for all others there."""
        return self._at(self.places[..., 0], 1.0)

    def _at(self, places: Numbers, values: Floats | float) -> Floats:
        found = np.zeros(len(self.reading.chunks))
        found[places] = values
        return found

    def best_link(self, of: Numbers, values: Floats) -> Floats:
        """Return the best value of each read candidate's links, (n, r), 0 without any; `of` are reading places."""
        best = np.zeros(len(self.reading.chunks))
        np.maximum.at(best, of, values)
        return best[self.places]

    def share(self, covered: Flags | Floats) -> Floats:
        """Compute Σ idf of covered words (n, r, w) / Σ idf of all, (n, r); a word may be covered in part."""
        return self._of_rows(covered, self.reading.questions.share)

    def open_share(self, covered: Flags | Floats) -> Floats:
        """Compute `share` over the words outside linked entities."""
        return self._of_rows(covered, self.reading.questions.open_share)

    def _of_rows(self, covered: Flags | Floats, share: Callable[[Flags | Floats, Numbers], Floats]) -> Floats:
        of = np.broadcast_to(self.of[..., None], covered.shape[:-1]).ravel()
        return np.asarray(share(covered.reshape(len(of), covered.shape[-1]), of).reshape(covered.shape[:-1]))

    @cached_property
    def chains(self) -> Chains:
        """Each that is read with pairs of the very first."""
        questions = [self.reading.questions[number] for number in self.of.ravel().tolist()]
        return Chains.of(questions, self.close, self.word_links, self.sure[..., : min(PARTNERS, self.read)])

    @cached_property
    def new_words(self) -> Flags:
        """The question's words in each that is read and in none of the first four above it, (n, r, w)."""
        covers = self.covers[..., : self.read, :]
        first = covers[..., None, :TOP, :]
        known = (self.above[: self.read, :TOP][:, : first.shape[-2], None] & first).any(axis=-2)
        return np.asarray(covers & ~known)

    def reordered(self, score: Floats, read: int) -> ListFacts:
        """Reorder the candidates by another score (n, k); the first `read` must have been read."""
        order = (-score).argsort(axis=-1, kind="stable")
        first = order[..., :read]
        changed: dict[str, Any] = {name: _along(getattr(self, name), order) for name in _OF_LISTED}
        changed |= {name: _along(getattr(self, name), first) for name in ("cosine", "places")}
        changed |= {"edge": _both_ways(self.edge, order), "alike": _both_ways(self.alike, first)}
        return replace(self, **changed, score=_along(score, order), known={})

    def one(self, number: int) -> ListFacts:
        """Return one list, without the axis of lists."""
        arrays = (*_OF_LISTED, "score", "edge", "cosine", "alike", "of", "places")
        own: dict[str, Any] = {name: getattr(self, name)[number] for name in arrays}
        return replace(self, **own, known={})


@cache
def _below_diagonal(size: int) -> Flags:
    return np.tri(size, k=-1, dtype=bool)


def _along(values: NDArray[Any], order: Numbers) -> NDArray[Any]:
    """Take values of lists (n, k, …) in an order of each, (n, r)."""
    (*lists, size), each = values.shape[: order.ndim], values.shape[order.ndim :]
    rows = values.reshape(math.prod(lists) * size, *each)  # -1 cannot be told where there are no words
    return np.asarray(rows.take(_begins(order, size) + order, axis=0))


def _both_ways(values: Floats, order: Numbers) -> Floats:
    """Values of each with each of lists (n, k, k) in an order of each, (n, r): by the number of the cell."""
    size = values.shape[-1]
    cells = _begins(order, size * size)[..., None] + order[..., None] * size + order[..., None, :]
    return np.asarray(values.take(cells))


def _begins(order: Numbers, size: int) -> Numbers:
    """Compute where consecutive lists of a size begin, (n, 1)."""
    return np.arange(order[..., 0].size).reshape(order[..., :1].shape) * size
