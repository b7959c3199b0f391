"""Candidates linked by words: what of the title of one stands in another, and which rare words both have.

A link over an entity needs both passages to spell a name that the graph knows. "He played college football at Iowa
State" leads to *Iowa State Cyclones football*, and a passage on Harvard, which is in Massachusetts, to *History of
Massachusetts*, by the words of a title that the question does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.pairs import PARTNERS
from hopbench.retrieval.strategies.hoprank.question import UNKNOWN, ReadQuestion
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.arithmetic import ln, shares

RARE = 30  # chunks that have a word, at most
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class WordLinks:
    """The links by words of k candidates with the first p of them, their partners; 0 with itself.

    Shares are of the idf of a title's words, stop words aside. `title` (k, p) is the share of the candidate's title
    that stands in the partner, `explained` that in the partner or in the question, `asked` (k,) that in the question;
    `new` is Σ idf of the title's words that the partner has and the question lacks / ln(n + 1); `holds` is the share of
    the partner's title that stands in the candidate. `rare` is Σ 1/√(df − 1) of the words beyond the question that
    both have and 2 to `RARE` chunks.

    `told` (u,) is how close each of the u sentences of partners comes to the question, its title beside it, by idf
    shares, and `partner` (u,) whose it is; `title_told`, `new_told` and `together_told` (k, u) are `title` and `new` of
    the sentence, and how close candidate and sentence come together. `holds_told` (p, k) is the best of the candidate's
    sentences: the share of the partner's title in it times how close it comes to the question.
    """

    title: Floats
    explained: Floats
    asked: Floats
    new: Floats
    holds: Floats
    rare: Floats
    told: Floats
    partner: Numbers
    title_told: Floats
    new_told: Floats
    together_told: Floats
    holds_told: Floats

    @classmethod
    def of(cls, corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness) -> WordLinks:
        """The links of the listed chunks whose closeness to the question this is."""
        titles = _Titles.of(corpus, question, closeness)
        read, first = closeness.read, closeness.read.first
        count = min(PARTNERS, len(first) - 1)
        with_title = np.maximum(closeness.sentence, closeness.sentence[first[:-1]][read.chunk])
        near = question.share(with_title)
        chunk = titles.in_chunk
        title, holds = titles.share @ chunk[:count].T, chunk @ titles.share[:count].T
        asked = titles.share @ titles.known
        explained = titles.share @ np.maximum(chunk[:count], titles.known).T
        new = titles.new @ chunk[:count].T
        for values in (title, holds, new):
            np.fill_diagonal(values[:count], 0.0)
        np.fill_diagonal(explained[:count], asked[:count])
        partner = read.chunk[: first[count]]
        sentence = titles.inside[: first[count]]
        other = partner != np.arange(len(first) - 1)[:, None]
        in_sentences = (titles.share[:count] @ titles.inside.T) * (read.chunk != np.arange(count)[:, None]) * near
        return cls(
            title=title,
            explained=explained,
            asked=asked,
            new=new,
            holds=holds,
            rare=_rare(corpus, question, closeness, count),
            told=near[: first[count]],
            partner=partner,
            title_told=(titles.share @ sentence.T) * other,
            new_told=(titles.new @ sentence.T) * other,
            together_told=question.together(closeness.chunk, with_title[: first[count]]),
            holds_told=read.best(in_sentences.T).T,
        )


@dataclass(frozen=True, eq=False)
class _Titles:
    """The v words of the k listed titles, stop words aside.

    `inside` (s, v) is 1 where a listed sentence has the word, `in_chunk` (k, v) where a chunk has it, and `known` (v,)
    where the question has it; `share` (k, v) is the idf share of the word in each title, and `new` (k, v) its
    idf / ln(n + 1) where the question lacks it: 0 where the title does. Shares and idf are multiples of 2⁻⁴⁰, so that
    their sums are exact.
    """

    inside: Floats
    in_chunk: Floats
    known: Floats
    share: Floats
    new: Floats

    @classmethod
    def of(cls, corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness) -> _Titles:
        words, read = corpus.words, closeness.read
        chosen = read.in_title & ~words.stop[read.distinct]
        named, inside = read.distinct[chosen], read.having(chosen)
        title = inside[read.first[:-1]]
        known = question.which(named) != UNKNOWN
        idf = shares(words.idf[named], ln(corpus.chunks + 1.0))
        whole = title @ idf
        share = shares(title * idf, whole[:, None] + TINY)
        return cls(inside, read.chunks_having(chosen), known.astype(np.float64), share, title * idf * ~known)


def _rare(corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness, count: int) -> Floats:
    words, read = corpus.words, closeness.read
    frequency = words.frequency[read.distinct]
    beyond = ~words.stop[read.distinct] & (question.which(read.distinct) == UNKNOWN)
    chosen = (frequency > 1) & (frequency <= RARE) & beyond
    has = read.chunks_having(chosen)
    weight = shares(np.ones(has.shape[1]), np.sqrt(frequency[chosen] - 1.0))
    both = (has * weight) @ has[:count].T
    np.fill_diagonal(both[:count], 0.0)
    return np.asarray(both)
