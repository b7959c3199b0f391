"""The links between listed candidates: closeness in meaning to the question, pairs, and shared words.

Evidence of two hops is a pair of passages that cover the question between them: one that covers little by itself is
known by its partner. Closeness is measured by WordLlama's static word vectors, whatever embeds the passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex, Texts
from hopbench.retrieval.strategies.hoprank.questions import UNKNOWN, Questions, ReadQuestion, in_batches, parts_of
from hopbench.retrieval.strategies.hoprank.words import (
    DIMENSION,
    Flags,
    Floats,
    Having,
    ListedWords,
    Numbers,
    grouped,
    weighted_vectors,
    word_cosines,
    word_vectors,
)
from hopbench.retrieval.support.arithmetic import ln, shares
from hopbench.retrieval.support.arrays import distinct, expand_ranges, rows_of

CLOSENESS_STEPS = (
    1024  # closeness is a multiple of 1/1024: its products with shares of a whole are exact (`arithmetic`)
)
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
        return cls(read, sentence, read.best(sentence), *_of_sentences(corpus.texts, read, of_both))


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
            vectors = rows_of(corpus.texts.word_vectors, read.distinct[part])
            found = word_cosines(vectors, np.concatenate([own, both]))
            alike[part, : len(own)], of_both[part] = found[:, : len(own)], found[:, len(own) :]
    return alike, of_both


def _near(questions: Questions, read: ListedWords, alike: NDArray[np.float32]) -> tuple[NDArray[np.int32], Floats]:
    """For the words read (t,) a row of the second array each, UNKNOWN where no word of the question is near.

    Its rows (u, w) are cosines with the question's words; 0 below LEAST, 1 for the same word. Those of the distinct
    words that are read are `alike` (m, w).
    """
    near = distinct(np.flatnonzero(alike >= MIN_CLOSENESS) // alike.shape[1])
    values = (np.rint(alike.take(near, axis=0) * CLOSENESS_STEPS) / CLOSENESS_STEPS).astype(np.float64)
    values[values < MIN_CLOSENESS] = 0.0
    row = np.full(len(alike), UNKNOWN, np.int32)
    row[near] = np.arange(len(near))
    same = read.distinct[near, None] == questions.numbers.take(read.asked[near], axis=0)
    return row[read.word], np.minimum(np.maximum(values, same), 1.0)


def _of_sentences(texts: Texts, read: ListedWords, cosines_: NDArray[np.float32]) -> Iterator[Floats]:
    """The cosines of sentences, (s,), with vectors with which the distinct words have these (m, n), for each of n.

    A sentence's vector is the sum of its words' by their weights. So is its product with another: these sums are exact.
    """
    lengths = texts.sentence_lengths[read.sentences]
    lengths[lengths == 0.0] = 1.0  # no words, or stop words alone
    weights = texts.word_weights[read.distinct]
    for column in cosines_.T:
        yield np.bincount(read.owner, (weights * column)[read.word], len(lengths)) / lengths


def question_vectors(corpus: CorpusIndex, questions: Sequence[ReadQuestion]) -> list[NDArray[np.int16]]:
    """Return the vectors of each question's words, (w, 256), embedding those that no chunk has in one batch."""
    numbers = np.concatenate([np.zeros(0, np.int64), *(question.numbers for question in questions)])
    words = list(chain.from_iterable(question.words for question in questions))
    known = numbers != UNKNOWN
    vectors = np.zeros((len(known), DIMENSION), np.int16)
    vectors[known] = rows_of(corpus.texts.word_vectors, numbers[known])
    if not known.all():
        vectors[~known] = word_vectors([words[place] for place in np.flatnonzero(~known).tolist()])
    ends = np.cumsum([len(question.words) for question in questions])
    return np.split(vectors, ends[:-1])


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
        """Pair each chunk of n lists, (n · k,), with each of its list.

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
        """Whether an edge links the two, (k, p)."""
        return self.edge > LINKED

    def best(self, values: Floats, where: Flags) -> Floats:
        """Return the largest value (k, p) where a condition holds, at least 0, (k,)."""
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
    """Compute how close each chunk's title and best sentence come to the question's words, (k, w)."""
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


MAX_RARE_FREQUENCY = 30  # chunks that have a word, at most
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class WordLinks:
    """The links by words of k candidates with p of them, their partners; 0 with itself.

    Shares are of the idf of a title's words, stop words aside. `title` (k, p) is the share of the candidate's title
    that stands in the partner, `explained` that in the partner or in the question, `asked` (k,) that in the question;
    `new` is Σ idf of the title's words that the partner has and the question lacks / ln(n + 1); `holds` is the share of
    the partner's title that stands in the candidate. `rare` is Σ 1/√(df − 1) of the words beyond the question that
    both have and 2 to `RARE` chunks. All have an axis more, the first: of lists that are read side by side.
    """

    title: Floats
    explained: Floats
    asked: Floats
    new: Floats
    holds: Floats
    rare: Floats

    @classmethod
    def of(cls, words: LinkingWords) -> WordLinks:
        """The links of each of the listed chunks whose linking words these are with each of its list."""
        titles, (lists, size) = words.titles, words.shape
        place, of = words.in_chunk.of_words(titles.word)
        cells = titles.chunk[of] * size + words.in_chunk.text[place] % size
        asked = _sums(titles.chunk, titles.share * titles.known, lists * size).reshape(lists, size)
        explained = asked[..., None] + _squares(cells, (titles.share * ~titles.known)[of], lists, size)
        title, new = (_squares(cells, values[of], lists, size) for values in (titles.share, titles.new))
        rare = words.rare
        place, of = rare.of_words(rare.word)
        cells = rare.text[of] * size + rare.text[place] % size
        both = _squares(cells, words.rarity[rare.word[of]], lists, size)
        itself = np.arange(size)
        for values in (title, new, both):
            values[:, itself, itself] = 0.0
        explained[:, itself, itself] = asked
        return cls(title, explained, asked, new, title.swapaxes(1, 2), both)

    def of_some(self, places: Numbers) -> WordLinks:
        """Some of them in their order, (…, r), the first of which are the partners of all of their list."""
        return WordLinks(*with_partners([getattr(self, column.name) for column in fields(self)], places))


@dataclass(frozen=True, eq=False)
class SentenceLinks:
    """The c links of candidates' titles with sentences of other candidates, in which a word of the title stands.

    `titled` (c,) is the candidate and `told_by` (c,) the one whose sentence it is. `title` and `new` (c,) are as in
    `WordLinks`, but of the sentence; `told` (c,) is how close that comes to the question, its title beside it, by idf
    shares, and `together` (c,) how close the candidate and it come together.
    """

    titled: Numbers
    told_by: Numbers
    title: Floats
    new: Floats
    told: Floats
    together: Floats

    @classmethod
    def of(cls, questions: Questions, closeness: Closeness, words: LinkingWords) -> SentenceLinks:
        """Those of the listed chunks whose closeness to the questions and linking words these are."""
        titles, read = words.titles, closeness.read
        place, of = words.inside.of_words(titles.word)
        told_by = read.chunk[words.inside.text[place]]
        others = np.flatnonzero(titles.chunk[of] != told_by)
        of, sentences = of[others], max(len(read.sentences), 1)
        cells, order, cell = grouped(titles.chunk[of] * sentences + words.inside.text[place[others]])
        titled, sentence = np.divmod(cells, sentences)
        together = np.zeros(len(cells))
        for part in in_batches(len(cells), closeness.chunk.shape[1]):
            close = np.maximum(
                closeness.chunk.take(titled[part], axis=0), words.with_title.take(sentence[part], axis=0)
            )
            together[part] = questions.share(close, read.of_sentence[sentence[part]])
        share, new = (_sums(cell, values[of[order]], len(cells)) for values in (titles.share, titles.new))
        return cls(titled, read.chunk[sentence], share, new, words.told[sentence], together)


class TitleWords(NamedTuple):
    """The n words of titles, stop words aside, each once a title: by `word`, a number among v, and by `chunk` (n,).

    `known` (n,) tells those that the question has, `share` (n,) is each one's share of the idf of its title, and `new`
    (n,) its idf / ln(n + 1) where the question lacks it.
    """

    word: Numbers
    chunk: Numbers
    known: Flags
    share: Floats
    new: Floats


@dataclass(frozen=True, eq=False)
class LinkingWords:
    """What may link listed chunks with others of their list: the v words of their `titles`, and x rare words.

    `shape` is how many lists are read, and how many chunks each of them has, list after list.
    `inside` and `in_chunk` tell which listed sentences and chunks have which of the v. `rare` tells which chunks have
    which of the x, none of them the question's, of `rarity` (x,). `with_title` (s, w) is how close each sentence comes
    to the question's words, its title beside it, and `told` (s,) that by idf shares. Shares, rarities and idf are
    multiples of 2⁻⁴⁰, so that their sums are exact.
    """

    shape: tuple[int, int]
    titles: TitleWords
    inside: Having
    in_chunk: Having
    rare: Having
    rarity: Floats
    with_title: Floats
    told: Floats

    @classmethod
    def of(
        cls, corpus: CorpusIndex, questions: Questions, closeness: Closeness, shape: tuple[int, int]
    ) -> LinkingWords:
        """Those of the chunks of so many lists, of so many each."""
        read = closeness.read
        inside = read.having(read.in_title)
        with_title = np.maximum(closeness.sentence, closeness.sentence.take(read.first[read.chunk], axis=0))
        return cls(
            shape,
            _titles(corpus, questions, read, inside),
            inside,
            read.in_chunks(inside),
            *_rare(corpus, questions, read),
            with_title,
            questions.share(with_title, read.of_sentence),
        )


def _titles(corpus: CorpusIndex, questions: Questions, read: ListedWords, inside: Having) -> TitleWords:
    """Collect the words of titles; `inside` tells which sentences have them."""
    named, asked = read.distinct[read.in_title], read.asked[read.in_title]
    chunk = read.chunk[inside.text]
    of_title = np.flatnonzero(inside.text == read.first[chunk])
    word, chunk = inside.word[of_title], chunk[of_title]
    idf = shares(corpus.words.idf[named], ln(corpus.chunks + 1.0))[word]
    known = questions.asks(named, asked)[word]
    whole = _sums(chunk, idf, len(read.first) - 1)
    return TitleWords(word, chunk, known, shares(idf, whole[chunk] + TINY), idf * ~known)


def _rare(corpus: CorpusIndex, questions: Questions, read: ListedWords) -> tuple[Having, Floats]:
    """Which chunks have each of the x rare words, and 1/√(df − 1) of these, (x,)."""
    frequency = corpus.words.frequency[read.distinct]
    chosen = (frequency > 1) & (frequency <= MAX_RARE_FREQUENCY) & ~questions.asks(read.distinct, read.asked)
    rarity = np.sqrt(frequency[chosen] - 1.0)
    return read.in_chunks(read.having(chosen)), shares(np.ones(len(rarity)), rarity)


def _sums(of: Numbers, values: Floats, count: int) -> Floats:
    """Sum values by group, (count,): exact in any order."""
    return np.bincount(of, values, count).astype(np.float64, copy=False)  # whole numbers where there are none


def _squares(cells: Numbers, values: Floats, lists: int, size: int) -> Floats:
    """Sum values by cell of consecutive squares, (lists, size, size)."""
    return _sums(cells, values, lists * size * size).reshape(lists, size, size)
