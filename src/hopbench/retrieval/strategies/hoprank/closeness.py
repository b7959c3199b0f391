"""How close a question's words are in meaning to those of its candidates, by WordLlama's static word vectors.

"Who founded it?" is answered by "established in 1912 by": no word in common. The vectors are those of the bundled
model, whatever embeds the passages: they need no context, so the words of a corpus are embedded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex, Texts
from hopbench.retrieval.strategies.hoprank.listed_words import ListedWords
from hopbench.retrieval.strategies.hoprank.question import UNKNOWN, ReadQuestion
from hopbench.retrieval.strategies.hoprank.questions import Questions, parts_of
from hopbench.retrieval.strategies.hoprank.word_vectors import (
    DIMENSION,
    cosines,
    weighed,
    word_vectors,
)
from hopbench.retrieval.strategies.hoprank.words import Floats
from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.support.mapped_arrays import rows_of

STEPS = 1024  # closeness is a multiple of 1/1024: its products with shares of a whole are exact (`arithmetic`)
LEAST = 0.35  # words further apart have nothing to do with each other


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
    """Cosines of the m distinct words that are read with their question's words, (m, w), and with two sums of these.

    The sums, (m, 2), are those of all words by idf and of the open ones.
    """
    alike = np.zeros((len(read.distinct), questions.numbers.shape[1]), np.float32)
    of_both = np.zeros((len(alike), 2), np.float32)
    for question, own, part in zip(questions, asked, parts_of(read.asked, len(questions)), strict=True):
        if part.start < part.stop:
            both = weighed(own, np.array([question.idf, question.open_idf]))
            vectors = rows_of(corpus.texts.word_vectors, read.distinct[part])
            found = cosines(vectors, np.concatenate([own, both]))
            alike[part, : len(own)], of_both[part] = found[:, : len(own)], found[:, len(own) :]
    return alike, of_both


def _near(questions: Questions, read: ListedWords, alike: NDArray[np.float32]) -> tuple[NDArray[np.int32], Floats]:
    """For the words read (t,) a row of the second array each, UNKNOWN where no word of the question is near.

    Its rows (u, w) are cosines with the question's words; 0 below LEAST, 1 for the same word. Those of the distinct
    words that are read are `alike` (m, w).
    """
    near = distinct(np.flatnonzero(alike >= LEAST) // alike.shape[1])
    values = (np.rint(alike.take(near, axis=0) * STEPS) / STEPS).astype(np.float64)
    values[values < LEAST] = 0.0
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
    """The vectors of each question's words, (w, 256); those that no chunk has are embedded together."""
    numbers = np.concatenate([np.zeros(0, np.int64), *(question.numbers for question in questions)])
    words = list(chain.from_iterable(question.words for question in questions))
    known = numbers != UNKNOWN
    vectors = np.zeros((len(known), DIMENSION), np.int16)
    vectors[known] = rows_of(corpus.texts.word_vectors, numbers[known])
    if not known.all():
        vectors[~known] = word_vectors([words[place] for place in np.flatnonzero(~known).tolist()])
    ends = np.cumsum([len(question.words) for question in questions])
    return np.split(vectors, ends[:-1])
