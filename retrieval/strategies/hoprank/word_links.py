"""Candidates linked by words: what of the title of one stands in another, and which rare words both have.

A link over an entity needs both passages to spell a name that the graph knows. "He played college football at Iowa
State" leads to *Iowa State Cyclones football*, and a passage on Harvard, which is in Massachusetts, to *History of
Massachusetts*, by the words of a title that the question does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.pairs import with_partners
from hopbench.retrieval.strategies.hoprank.question import ReadQuestion, in_parts
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
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
    both have and 2 to `RARE` chunks. Of several lists all have an axis more, the first.
    """

    title: Floats
    explained: Floats
    asked: Floats
    new: Floats
    holds: Floats
    rare: Floats

    @classmethod
    def of(cls, words: LinkingWords) -> WordLinks:
        """The links of each of the listed chunks whose linking words these are with each."""
        chunk = words.in_chunk
        title, new = words.share @ chunk.T, words.new @ chunk.T
        asked = words.share @ words.known
        explained = words.share @ np.maximum(chunk, words.known).T
        rare = (words.rare * words.rarity) @ words.rare.T
        for values in (title, new, rare):
            np.fill_diagonal(values, 0.0)
        np.fill_diagonal(explained, asked)
        return cls(title, explained, asked, new, title.T, rare)

    def of_some(self, places: Numbers) -> WordLinks:
        """Some of them in their order, the first of which are the partners of all."""
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
    def of(cls, question: ReadQuestion, closeness: Closeness, words: LinkingWords) -> SentenceLinks:
        """Those of the listed chunks whose closeness to the question and linking words these are."""
        share, new = words.share @ words.inside.T, words.new @ words.inside.T
        cells = np.flatnonzero(share > 0)  # about one in forty
        titled, sentence = np.divmod(cells, max(share.shape[1], 1))
        told_by = closeness.read.chunk[sentence]
        other = np.flatnonzero(titled != told_by)
        cells, titled, sentence, told_by = cells[other], titled[other], sentence[other], told_by[other]
        together = np.zeros(len(cells))
        for part in in_parts(len(cells), closeness.chunk.shape[1]):
            close = np.maximum(closeness.chunk[titled[part]], words.with_title[sentence[part]])
            together[part] = question.share(close)
        return cls(titled, told_by, share.take(cells), new.take(cells), words.told[sentence], together)


@dataclass(frozen=True, eq=False)
class LinkingWords:
    """What may link k listed chunks with others: the v words of their titles, stop words aside, and x rare words.

    `inside` (s, v) is 1 where a listed sentence has the word, `in_chunk` (k, v) where a chunk has it, and `known` (v,)
    where the question has it; `share` (k, v) is the idf share of the word in each title, and `new` (k, v) its
    idf / ln(n + 1) where the question lacks it: 0 where the title does. `rare` (k, x) is 1 where a chunk has the
    word, which is not the question's, of `rarity` (x,). `with_title` (s, w) is how close each sentence comes to the
    question's words, its title beside it, and `told` (s,) that by idf shares. Shares, rarities and idf are multiples of
    2⁻⁴⁰, so that their sums are exact.
    """

    inside: Floats
    in_chunk: Floats
    known: Floats
    share: Floats
    new: Floats
    rare: Floats
    rarity: Floats
    with_title: Floats
    told: Floats

    @classmethod
    def of(cls, corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness) -> LinkingWords:
        """Those of the listed chunks."""
        words, read = corpus.words, closeness.read
        chosen = read.in_title & ~words.stop[read.distinct]
        named, inside = read.distinct[chosen], read.having(chosen)
        title = inside[read.first[:-1]]
        known = question.asks(named)
        idf = shares(words.idf[named], ln(corpus.chunks + 1.0))
        whole = title @ idf
        with_title = np.maximum(closeness.sentence, closeness.sentence[read.first[:-1]][read.chunk])
        return cls(
            inside,
            read.chunks_having(chosen),
            known.astype(np.float64),
            shares(title * idf, whole[:, None] + TINY),
            title * idf * ~known,
            *_rare(corpus, question, closeness),
            with_title,
            question.share(with_title),
        )


def _rare(corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness) -> tuple[Floats, Floats]:
    """Which chunks have each of the rare words, (k, x), and 1/√(df − 1) of these, (x,)."""
    words, read = corpus.words, closeness.read
    frequency = words.frequency[read.distinct]
    beyond = ~words.stop[read.distinct] & ~question.asks(read.distinct)
    chosen = (frequency > 1) & (frequency <= RARE) & beyond
    has = read.chunks_having(chosen)
    return has, shares(np.ones(has.shape[1]), np.sqrt(frequency[chosen] - 1.0))
