"""The links between listed candidates: closeness in meaning to the question, pairs, and shared words.

Evidence of two hops is a pair of passages that cover the question between them: one that covers little by itself is
known by its partner. Closeness is measured by WordLlama's static word vectors, whatever embeds the passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex
from hopbench.retrieval.strategies.hoprank.paths import sigmoid
from hopbench.retrieval.strategies.hoprank.questions import UNKNOWN, Questions, in_batches, parts_of
from hopbench.retrieval.strategies.hoprank.words import (
    Flags,
    Floats,
    ListedWords,
    Numbers,
    grouped,
    weighted_vectors,
    word_cosines,
)
from hopbench.retrieval.support.arithmetic import ln, shares
from hopbench.retrieval.support.arrays import distinct, expand_ranges, rows_of

# Closeness is a multiple of 1/1024: its products with shares of a whole are exact (`arithmetic`).
CLOSENESS_STEPS = 1024
MIN_CLOSENESS = 0.35  # words further apart have nothing to do with each other


@dataclass(frozen=True, eq=False)
class Closeness:
    """How close each of the question's w words comes to a word of each of s sentences, and of each of k chunks: 0..1.

    `read` are the words of the sentences, each read for one of several questions (`Questions`); `sentence` is (s, w),
    its rows chunk by chunk; `chunk` is (k, w).
    `dense` and `dense_open` (s,) are the cosines of sentences with all of the question's words, and with the open ones.
    """

    read: ListedWords
    sentence: Floats
    chunk: Floats
    dense: Floats
    dense_open: Floats

    @classmethod
    def of(
        cls, corpus: CorpusIndex, questions: Questions, read: ListedWords, asked: Sequence[NDArray[np.int16]]
    ) -> Closeness:
        """The questions' words, whose vectors (w, 256) each are `asked`, against those of the chunks read for them."""
        alike, of_both = _cosines(corpus, questions, read, asked)
        row, near = _near(questions, read, alike)
        met = np.flatnonzero(row != UNKNOWN)
        sentence = np.zeros((len(read.sentences), questions.numbers.shape[1]))
        if len(met):
            of_sentence = read.owner[met]
            begins = np.flatnonzero(np.diff(of_sentence, prepend=-1))
            sentence[of_sentence[begins]] = np.maximum.reduceat(near[row[met]], begins)
        # A sentence's vector is the sum of its words' by their weights. So is its product with another: exact sums.
        lengths = corpus.words.sentence_lengths[read.sentences]
        lengths[lengths == 0.0] = 1.0  # no words, or stop words alone
        weights = corpus.words.weights[read.distinct]
        dense, dense_open = (
            np.bincount(read.owner, (weights * column)[read.word], len(lengths)) / lengths for column in of_both.T
        )
        return cls(read, sentence, read.best(sentence), dense, dense_open)


def _cosines(
    corpus: CorpusIndex, questions: Questions, read: ListedWords, asked: Sequence[NDArray[np.int16]]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute cosines of the m distinct words with their question's words, (m, w), and with two sums of these.

    The sums, (m, 2), are those of all words by idf and of the open ones.
    """
    alike = np.zeros((len(read.distinct), questions.numbers.shape[1]), np.float32)
    of_both = np.zeros((len(alike), 2), np.float32)
    for question, own, part in zip(questions, asked, parts_of(read.asked, len(questions)), strict=True):
        if part.start < part.stop:
            both = weighted_vectors(own, np.array([question.idf, question.open_idf]))
            vectors = rows_of(corpus.words.word_vectors, read.distinct[part])
            found = word_cosines(vectors, np.concatenate([own, both]))
            alike[part, : len(own)], of_both[part] = found[:, : len(own)], found[:, len(own) :]
    return alike, of_both


def _near(questions: Questions, read: ListedWords, alike: NDArray[np.float32]) -> tuple[NDArray[np.int32], Floats]:
    """For the words read (t,) a row of the second array each, UNKNOWN where no word of the question is near.

    Its rows (u, w) are cosines with the question's words; 0 below `MIN_CLOSENESS`, 1 for the same word. Those of the
    distinct words that are read are `alike` (m, w).
    """
    near = distinct(np.flatnonzero(alike >= MIN_CLOSENESS) // alike.shape[1])
    values = (np.rint(alike.take(near, axis=0) * CLOSENESS_STEPS) / CLOSENESS_STEPS).astype(np.float64)
    values[values < MIN_CLOSENESS] = 0.0
    row = np.full(len(alike), UNKNOWN, np.int32)
    row[near] = np.arange(len(near))
    same = read.distinct[near, None] == questions.numbers.take(read.asked[near], axis=0)
    return row[read.word], np.minimum(np.maximum(values, same), 1.0)


PARTNERS = 20
TOP = 4
LINKED = 0.05  # P(edge)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each of r candidates with each of p, its partners; all have an axis more, the first: lists side by side.

    `together` (r, p) is the idf share of the question's words that both cover, as far as their words are close,
    `open_together` that of the open ones, `of_sentences` that of the title and the best sentence of each; `own` and
    `open_own` (r,) are what each covers alone. `edge` (r, p) is P(edge) of the best edge either way, `titled` (r, p)
    whether one mentions the other's title. `others` (r, p) is false for a candidate with itself.
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
        """Pair each chunk of n lists, (n · r,), with the first of its list.

        `edge` (n, r, r) is P(edge) of the best edge from the one to the other.
        """
        read, of = closeness.read, closeness.read.of
        lists, size = edge.shape[:2]
        share = questions.share(closeness.sentence, read.of_sentence)
        order = np.lexsort((-share, read.chunk))  # stable: the first of equal ones
        titles = read.first[:-1]
        shown = np.maximum(*(closeness.sentence.take(rows, axis=0) for rows in (order[titles], titles)))
        others = ~np.eye(size, dtype=bool)[:, :PARTNERS]
        together, open_together, of_sentences = np.empty((3, lists, *others.shape))
        for one, number in enumerate(of[::size].tolist()):
            question, rows = questions[number], slice(one * size, (one + 1) * size)
            near, best = (values[rows, : len(question.words)] for values in (closeness.chunk, shown))
            together[one], open_together[one] = question.together(near, near[:PARTNERS])
            of_sentences[one] = question.together(best, best[:PARTNERS])[0]
        return cls(
            own=questions.share(closeness.chunk, of).reshape(lists, size),
            open_own=questions.open_share(closeness.chunk, of).reshape(lists, size),
            together=together,
            open_together=open_together,
            of_sentences=of_sentences,
            edge=np.maximum(edge, edge.swapaxes(1, 2))[..., :PARTNERS] * others,
            titled=_titled(corpus, chunks, of, size)[..., :PARTNERS] & others,
            others=others,
        )

    @property
    def linked(self) -> Flags:
        """Whether an edge links the two, (r, p)."""
        return self.edge > LINKED


def _titled(corpus: CorpusIndex, chunks: Numbers, of: Numbers, size: int) -> Flags:
    """Whether one of two chunks of a list mentions the title of the other, (n, r, r); each is read `of` a question."""
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


MAX_RARE_FREQUENCY = 30  # chunks that have a word, at most
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class WordLinks:
    """The links by words of r candidates with p of them, their partners, 0 with itself; and of titles with sentences.

    Shares are of the idf of a title's words, stop words aside. `title` (r, p) is the share of the candidate's title
    that stands in the partner, `explained` that in the partner or in the question, `asked` (r,) that in the question;
    `new` is Σ idf of the title's words that the partner has and the question lacks / ln(n + 1); `holds` is the share of
    the partner's title that stands in the candidate. `rare` is Σ 1/√(df − 1) of the words beyond the question that
    both have and 2 to `MAX_RARE_FREQUENCY` chunks. These have an axis more, the first: lists side by side.

    Of c pairs of a candidate with another one's sentence in which a word of its title stands: `titled` (c,) is the
    candidate and `stated_by` (c,) the other, numbered list after list; `stated_title` and `stated_new` (c,) are as
    above, but of the sentence; `relevance` (c,) is how close that comes to the question, its title beside it, by idf
    shares, and `joint_relevance` (c,) how close the candidate and it come together.
    """

    title: Floats
    explained: Floats
    asked: Floats
    new: Floats
    holds: Floats
    rare: Floats
    titled: Numbers
    stated_by: Numbers
    stated_title: Floats
    stated_new: Floats
    relevance: Floats
    joint_relevance: Floats

    @classmethod
    def of(cls, corpus: CorpusIndex, questions: Questions, closeness: Closeness, shape: tuple[int, int]) -> WordLinks:
        """Link the chunks of n lists of r each, (n, r), by their words. All sums are exact: of multiples of 2⁻⁴⁰."""
        read, (lists, size) = closeness.read, shape
        inside = read.having(read.in_title)  # which sentences have which words of titles
        chunk = read.chunk[inside.values]
        of_title = np.flatnonzero(inside.values == read.first[chunk])
        word, chunk = inside.owner[of_title], chunk[of_title]
        named = read.distinct[read.in_title]
        idf = shares(corpus.words.idf[named], ln(corpus.chunks + 1.0))[word]
        known = questions.asks(named, read.asked[read.in_title])[word]
        share = shares(idf, _sums(chunk, idf, lists * size)[chunk] + TINY)

        in_chunks = read.in_chunks(inside)
        place, of = expand_ranges(in_chunks.start[word], in_chunks.start[word + 1])
        cells = chunk[of] * size + in_chunks.values[place] % size
        asked = _sums(chunk, share * known, lists * size).reshape(lists, size)
        title, unknown, new = (
            _squares(cells, values[of], lists, size) for values in (share, share * ~known, idf * ~known)
        )
        explained, rare, itself = asked[..., None] + unknown, _rare(corpus, questions, read, shape), np.arange(size)
        title[:, itself, itself] = new[:, itself, itself] = rare[:, itself, itself] = 0.0
        explained[:, itself, itself] = asked

        with_title = np.maximum(closeness.sentence, closeness.sentence.take(read.first[read.chunk], axis=0))
        place, of = expand_ranges(inside.start[word], inside.start[word + 1])
        others = np.flatnonzero(chunk[of] != read.chunk[inside.values[place]])
        of, sentences = of[others], max(len(read.sentences), 1)
        cells, order, cell = grouped(chunk[of] * sentences + inside.values[place[others]])
        titled, sentence = np.divmod(cells, sentences)
        joint = np.zeros(len(cells))
        for part in in_batches(len(cells), closeness.chunk.shape[1]):
            near = closeness.chunk.take(titled[part], axis=0), with_title.take(sentence[part], axis=0)
            joint[part] = questions.share(np.maximum(*near), read.of_sentence[sentence[part]])
        stated, stated_new = (_sums(cell, values[of[order]], len(cells)) for values in (share, idf * ~known))
        relevance = questions.share(with_title, read.of_sentence)[sentence]
        return cls(
            title=title[..., :PARTNERS],
            explained=explained[..., :PARTNERS],
            asked=asked,
            new=new[..., :PARTNERS],
            holds=title.swapaxes(1, 2)[..., :PARTNERS],
            rare=rare[..., :PARTNERS],
            titled=titled,
            stated_by=read.chunk[sentence],
            stated_title=stated,
            stated_new=stated_new,
            relevance=relevance,
            joint_relevance=joint,
        )


def _rare(corpus: CorpusIndex, questions: Questions, read: ListedWords, shape: tuple[int, int]) -> Floats:
    """Σ 1/√(df − 1) of the rare words that two chunks of a list share, (n, r, r)."""
    frequency, size = corpus.words.frequency[read.distinct], shape[1]
    chosen = (frequency > 1) & (frequency <= MAX_RARE_FREQUENCY) & ~questions.asks(read.distinct, read.asked)
    rarity = shares(np.ones(int(chosen.sum())), np.sqrt(frequency[chosen] - 1.0))
    rare = read.in_chunks(read.having(chosen))
    word = rare.owner
    place, of = expand_ranges(rare.start[word], rare.start[word + 1])
    return _squares(rare.values[of] * size + rare.values[place] % size, rarity[word[of]], *shape)


def _sums(of: Numbers, values: Floats, count: int) -> Floats:
    """Sum values by group, (count,): exact in any order."""
    return np.bincount(of, values, count).astype(np.float64, copy=False)  # whole numbers where there are none


def _squares(cells: Numbers, values: Floats, lists: int, size: int) -> Floats:
    """Sum values by cell of consecutive squares, (lists, size, size)."""
    return _sums(cells, values, lists * size * size).reshape(lists, size, size)


@dataclass(frozen=True, eq=False, kw_only=True)
class ListFacts:
    """Facts about n lists, each the k best candidates of a question, best first, of which trees read the first r.

    `score` (n, k) is what they are ordered by, `first_score` and `pool_score` those of the first pass and of the pool;
    `base` (n, k, 12) and `paths` (n, k, 6) are features of the linear score. `anchor` (n, k) tells the anchors of the
    last pass that lead to another candidate, `own` (n, k) is the entity each is titled by. `edge` (n, k, k) is P(edge)
    of the best edge from the one to the other, `best` (n, k, 17) the features of the best edge into each, `best_anchor`
    and `best_edge` (n, k) its P(anchor) and P(edge): 0 where there is none. `cosine` (n, r) and `alike` (n, r, r) are
    the cosines of those that are read with the question and with each other. `of` (n,) are the lists' questions and
    `covers` (n, k, w) their words in each candidate.
    """

    candidates: Candidates
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
    closeness: Closeness
    pairs: Pairs
    links: WordLinks

    @property
    def shape(self) -> tuple[int, int]:
        """How many lists there are, and how many candidates of each trees read, (n, r)."""
        return self.cosine.shape[0], self.cosine.shape[1]

    @cached_property
    def sure(self) -> Floats:
        """σ(score − fifth best score) of each, (n, k)."""
        return sigmoid(self.lead(4))

    @property
    def above(self) -> Flags:
        """Whether the column's candidate stands above the row's, (k, k), the same for all lists."""
        return np.tri(self.chunks.shape[1], k=-1, dtype=bool)

    @cached_property
    def close(self) -> Floats:
        """How close each that is read comes to the question's words, (n, r, w)."""
        return self.closeness.chunk.reshape(*self.shape, self.covers.shape[2])  # -1 fails where there are no words

    def lead(self, rank: int) -> Floats:
        """Subtract the score at a rank from 0, or the last one."""
        return np.asarray(self.score - self.score[:, min(rank, self.score.shape[1] - 1), None])

    def share(self, covered: Flags | Floats, *, of_open: bool = False) -> Floats:
        """Compute Σ idf of covered words (n, r, w), wholly or in part, / Σ idf of all, or of the open ones, (n, r)."""
        questions = self.candidates.questions
        share = questions.open_share if of_open else questions.share
        of = self.closeness.read.of
        return share(covered.reshape(len(of), covered.shape[-1]), of).reshape(self.shape)

    def new_words(self) -> Flags:
        """The question's words in each that is read and in none of the first four above it, (n, r, w)."""
        covers = self.covers[:, : self.shape[1]]
        first = covers[:, None, :TOP]
        known = (self.above[: self.shape[1], :TOP][:, : first.shape[2], None] & first).any(axis=2)
        return np.asarray(covers & ~known)

    def of_partners(self, values: Floats, where: Flags | bool = True, *, sure: bool = False) -> Floats:
        """Find the best of partners' values (n, r, p) where a condition holds, 0 without, times σ if `sure`, (n, r)."""
        factor = self.sure[:, None, : values.shape[2]] if sure else 1.0
        return np.asarray(np.maximum.reduce(values * factor * where, axis=2, initial=0.0))

    def stated(self, of: Numbers, values: Floats, by: Numbers, *, sure: bool = True, first: bool = False) -> Floats:
        """Find the best value of each candidate's links with sentences, (n, r), 0 without any.

        Only those `by` partners count, or by the `first` candidate alone, times σ if `sure`.
        """
        factor, partners = np.zeros(self.shape), 1 if first else PARTNERS
        factor[:, :partners] = self.sure[:, : factor.shape[1]][:, :partners] if sure else 1.0
        best = np.zeros(factor.size)
        np.maximum.at(best, of, values * factor.ravel()[by])
        return best.reshape(factor.shape)
