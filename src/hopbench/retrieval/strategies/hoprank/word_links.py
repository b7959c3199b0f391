"""Candidates linked by words: what of the title of one stands in another, and which rare words both have.

A link over an entity needs both passages to spell a name that the graph knows. "He played college football at Iowa
State" leads to *Iowa State Cyclones football*, and a passage on Harvard, which is in Massachusetts, to *History of
Massachusetts*, by the words of a title that the question does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.listed_words import Having, ListedWords
from hopbench.retrieval.strategies.hoprank.pairs import with_partners
from hopbench.retrieval.strategies.hoprank.question import in_parts
from hopbench.retrieval.strategies.hoprank.questions import Questions
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, grouped
from hopbench.retrieval.support.arithmetic import ln, shares

RARE = 30  # chunks that have a word, at most
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
        for part in in_parts(len(cells), closeness.chunk.shape[1]):
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
    """The words of titles; `inside` tells which sentences have the words that stand in one."""
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
    chosen = (frequency > 1) & (frequency <= RARE) & ~questions.asks(read.distinct, read.asked)
    rarity = np.sqrt(frequency[chosen] - 1.0)
    return read.in_chunks(read.having(chosen)), shares(np.ones(len(rarity)), rarity)


def _sums(of: Numbers, values: Floats, count: int) -> Floats:
    """The sum of the values of each of so many, (count,): exact in any order."""
    return np.bincount(of, values, count).astype(np.float64, copy=False)  # whole numbers where there are none


def _squares(cells: Numbers, values: Floats, lists: int, size: int) -> Floats:
    """The sums of values by cell of squares, one after the other, (lists, size, size)."""
    return _sums(cells, values, lists * size * size).reshape(lists, size, size)
