"""What is read of the best candidates of the last pass: how close they come to the question, and what links them.

Nothing here depends on their order, so first and second trees share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.listed_words import ListedWords
from hopbench.retrieval.strategies.hoprank.pairs import Pairs
from hopbench.retrieval.strategies.hoprank.question import ReadQuestion
from hopbench.retrieval.strategies.hoprank.word_links import LinkingWords, SentenceLinks, WordLinks
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers


@dataclass(frozen=True, eq=False)
class Reading:
    """The r chunks that trees read, and the links of each with each; `known` are features, (r,), computed by now."""

    corpus: CorpusIndex
    question: ReadQuestion
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
        cls, corpus: CorpusIndex, question: ReadQuestion, chunks: Numbers, edge: Floats, asked: NDArray[np.int16]
    ) -> Reading:
        """Read some chunks; `edge` (r, r) is P(edge) of the best edge from the one to the other.

        `asked` (w, 256) are the vectors of the question's words.
        """
        closeness = Closeness.of(corpus, question, chunks, asked)
        linking = LinkingWords.of(corpus, question, closeness)
        return cls(
            corpus,
            question,
            chunks,
            closeness,
            Pairs.of(corpus, question, chunks, closeness, edge),
            WordLinks.of(linking),
            SentenceLinks.of(question, closeness, linking),
        )
