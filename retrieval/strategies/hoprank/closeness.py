"""How close a question's words are in meaning to those of its candidates, by WordLlama's static word vectors.

"Who founded it?" is answered by "established in 1912 by": no word in common. The vectors are those of the bundled
model, whatever embeds the passages: they need no context, so the words of a corpus are embedded once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.listed_words import ListedWords
from hopbench.retrieval.strategies.hoprank.question import UNKNOWN, ReadQuestion
from hopbench.retrieval.strategies.hoprank.word_vectors import DIMENSION, cosines, weighed, word_vectors
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers

STEPS = 1024  # closeness is a multiple of 1/1024: its products with shares of a whole are exact (`arithmetic`)
LEAST = 0.35  # words further apart have nothing to do with each other


@dataclass(frozen=True, eq=False)
class Closeness:
    """How close each of the question's w words comes to a word of each of s sentences, and of each of k chunks: 0..1.

    `read` are the words of the sentences; `sentence` is (s, w), its rows chunk by chunk; `chunk` is (k, w).
    `dense` and `dense_open` (s,) are the cosines of sentences with all of the question's words, and with the open ones.
    """

    read: ListedWords
    sentence: Floats
    chunk: Floats
    dense: Floats
    dense_open: Floats

    @classmethod
    def of(cls, corpus: CorpusIndex, question: ReadQuestion, chunks: Numbers) -> Closeness:
        """The question's words against those of some chunks."""
        read = ListedWords.of(corpus.words, chunks)
        asked = _vectors_of(corpus, question)
        row, near = _alike(corpus, question, asked, read)
        met = np.flatnonzero(row != UNKNOWN)
        sentence = np.zeros((len(read.sentences), len(question.numbers)))
        if len(met):
            of_sentence = read.owner[met]
            begins = np.flatnonzero(np.diff(of_sentence, prepend=-1))
            sentence[of_sentence[begins]] = np.maximum.reduceat(near[row[met]], begins)
        dense = cosines(corpus.texts.sentence_vectors(read.sentences), _weighed(question, asked))
        return cls(read, sentence, read.best(sentence), *dense.T.astype(np.float64))


def _alike(
    corpus: CorpusIndex, question: ReadQuestion, asked: NDArray[np.int16], read: ListedWords
) -> tuple[NDArray[np.int32], Floats]:
    """For the words read (t,) a row of the second array each, UNKNOWN where no word of the question is near.

    Its rows (u, w) are cosines with the question's words; 0 below LEAST, 1 for the same word. Stop words are near none.
    """
    met = read.distinct
    telling = np.flatnonzero(~corpus.words.stop[met])
    alike = cosines(corpus.texts.word_vectors[met[telling]], asked)
    near = np.flatnonzero(alike.max(axis=1, initial=0.0) >= LEAST)
    values = (np.rint(alike[near] * STEPS) / STEPS).astype(np.float64)
    values[values < LEAST] = 0.0
    row = np.full(len(met), UNKNOWN, np.int32)
    row[telling[near]] = np.arange(len(near))
    same = met[telling[near], None] == question.numbers
    return row[read.word], np.minimum(np.maximum(values, same), 1.0)


def _weighed(question: ReadQuestion, asked: NDArray[np.int16]) -> NDArray[np.int16]:
    """Two vectors, (2, 256): the question's words by their idf, and the open ones."""
    return weighed(asked, np.array([question.idf, question.open_idf]))


def _vectors_of(corpus: CorpusIndex, question: ReadQuestion) -> NDArray[np.int16]:
    """The vectors of the question's words, (w, 256)."""
    known = question.numbers != UNKNOWN
    vectors = np.zeros((len(known), DIMENSION), np.int16)
    vectors[known] = corpus.texts.word_vectors[question.numbers[known]]
    if not known.all():
        vectors[~known] = word_vectors([question.words[place] for place in np.flatnonzero(~known).tolist()])
    return vectors
