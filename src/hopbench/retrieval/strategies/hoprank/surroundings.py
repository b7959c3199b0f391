"""What stands around the mentions that edges rest on."""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edges import Edges
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, numbered
from hopbench.retrieval.support.distinct import distinct

BEFORE, AFTER = 6, 4  # words


class Surroundings:
    """Shares of a question's open words around the mentions of some edges, each `of` a question."""

    def __init__(self, candidates: Candidates, edges: Edges, of: Numbers) -> None:
        mentions, words, questions = candidates.corpus.mentions, candidates.corpus.words, candidates.questions
        self._of, self._mentions, size = of, len(mentions.chunk), max(len(words.sentence_start) - 1, 1)
        used = np.concatenate([self._keys(edges.mention), self._keys(edges.far)])
        used = distinct(used[used != NOWHERE])
        question, mention = np.divmod(used, max(self._mentions, 1))
        placed = np.flatnonzero(mentions.start[mention] != NOWHERE)
        self._used, question, mention = used[placed], question[placed], mention[placed]
        start, behind = mentions.start[mention], mentions.start[mention] + mentions.length[mention]
        home = question * size + candidates.corpus.texts.sentence[mention]
        sentence, which = numbered(home)
        begin, end = words.of_sentences(sentence % size)
        low, high = np.maximum(start - BEFORE, begin[which]), np.minimum(behind + AFTER, end[which])
        starts, ends = np.concatenate([begin, low, behind]), np.concatenate([end, start, high])
        asking = np.concatenate([sentence // size, question, question])
        covered = questions.covered(words.numbers, starts, ends, asking)
        before, after = np.split(covered[len(begin) :], 2)
        self._sentence = questions.open_share(covered[: len(begin)], asking[: len(begin)])[which]
        self._window = questions.open_share(before | after, question)

    def _keys(self, mention: Numbers) -> Numbers:
        """A mention's number for each question; NOWHERE for none."""
        return np.where(mention != NOWHERE, self._of * self._mentions + mention, NOWHERE)

    def window(self, mention: Numbers) -> Floats:
        """In the words before and after each mention, 0 for none."""
        return self._found(mention, self._window)

    def sentence(self, mention: Numbers) -> Floats:
        """In the sentence of each mention, 0 for none."""
        return self._found(mention, self._sentence)

    def _found(self, mention: Numbers, values: Floats) -> Floats:
        return np.asarray(Lookup(self._used, values, otherwise=0.0)[self._keys(mention)])
