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
        """The links of the listed chunks whose linking words these are."""
        chunk, count = words.in_chunk, words.partners
        title, holds = words.share @ chunk[:count].T, chunk @ words.share[:count].T
        asked = words.share @ words.known
        explained = words.share @ np.maximum(chunk[:count], words.known).T
        new = words.new @ chunk[:count].T
        rare = (words.rare * words.rarity) @ words.rare[:count].T
        for values in (title, holds, new, rare):
            np.fill_diagonal(values[:count], 0.0)
        np.fill_diagonal(explained[:count], asked[:count])
        return cls(title, explained, asked, new, holds, rare)


@dataclass(frozen=True, eq=False)
class SentenceLinks:
    """The links by words of k candidates with the u sentences of their p partners; 0 with its own.

    `told` (u,) is how close each sentence comes to the question, its title beside it, by idf shares, and `partner` (u,)
    whose it is; `title_told`, `new_told` and `together_told` (k, u) are `title` and `new` of the sentence, and how
    close candidate and sentence come together. `holds_told` (p, k) is the best of the candidate's sentences: the share
    of the partner's title in it times how close it comes to the question.
    """

    told: Floats
    partner: Numbers
    title_told: Floats
    new_told: Floats
    together_told: Floats
    holds_told: Floats

    @classmethod
    def of(cls, question: ReadQuestion, closeness: Closeness, words: LinkingWords) -> SentenceLinks:
        """The links of the listed chunks whose closeness to the question and linking words these are."""
        read, first, count = closeness.read, closeness.read.first, words.partners
        partner = read.chunk[: first[count]]
        sentence = words.inside[: first[count]]
        other = partner != np.arange(len(first) - 1)[:, None]
        elsewhere = read.chunk != np.arange(count)[:, None]
        in_sentences = (words.share[:count] @ words.inside.T) * elsewhere * words.told
        return cls(
            told=words.told[: first[count]],
            partner=partner,
            title_told=(words.share @ sentence.T) * other,
            new_told=(words.new @ sentence.T) * other,
            together_told=question.together(closeness.chunk, words.with_title[: first[count]]),
            holds_told=read.best(in_sentences.T).T,
        )


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

    @property
    def partners(self) -> int:
        """How many of the chunks are partners of all, p."""
        return min(PARTNERS, len(self.in_chunk))

    @classmethod
    def of(cls, corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness) -> LinkingWords:
        """Those of the listed chunks."""
        words, read = corpus.words, closeness.read
        chosen = read.in_title & ~words.stop[read.distinct]
        named, inside = read.distinct[chosen], read.having(chosen)
        title = inside[read.first[:-1]]
        known = question.which(named) != UNKNOWN
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

    def of_some(self, chunks: Numbers, sentences: Numbers) -> LinkingWords:
        """Those of some of the chunks and their sentences, named by their places here, in their order."""
        of_chunk = {name: getattr(self, name)[chunks] for name in ("in_chunk", "share", "new", "rare")}
        of_sentence = {name: getattr(self, name)[sentences] for name in ("inside", "with_title", "told")}
        return LinkingWords(**of_chunk, **of_sentence, known=self.known, rarity=self.rarity)


def _rare(corpus: CorpusIndex, question: ReadQuestion, closeness: Closeness) -> tuple[Floats, Floats]:
    """Which chunks have each of the rare words, (k, x), and 1/√(df − 1) of these, (x,)."""
    words, read = corpus.words, closeness.read
    frequency = words.frequency[read.distinct]
    beyond = ~words.stop[read.distinct] & (question.which(read.distinct) == UNKNOWN)
    chosen = (frequency > 1) & (frequency <= RARE) & beyond
    has = read.chunks_having(chosen)
    return has, shares(np.ones(has.shape[1]), np.sqrt(frequency[chosen] - 1.0))
