"""What is read of the best candidates of the last pass: how close they come to the question, and what links them.

Nothing here depends on their order, so first and second trees share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.listed_words import ListedWords
from hopbench.retrieval.strategies.hoprank.pairs import Pairs
from hopbench.retrieval.strategies.hoprank.questions import Questions
from hopbench.retrieval.strategies.hoprank.word_links import LinkingWords, SentenceLinks, WordLinks
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers


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
