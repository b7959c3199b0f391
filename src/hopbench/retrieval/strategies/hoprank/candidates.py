"""The candidate chunks of questions with their twelve base features: the pools, then the targets of followed edges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.exact import TopRows, cosines
from hopbench.retrieval.search.fusion import DECIMALS, RRF_K
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.questions import TINY, UNKNOWN, Questions, in_batches, parts_of, products
from hopbench.retrieval.strategies.hoprank.words import DIMENSION, Flags, Floats, Lookup, Numbers, columns, word_vectors
from hopbench.retrieval.support.arithmetic import shares
from hopbench.retrieval.support.arrays import distinct, expand_ranges, rows_of

# docs/hoprank.md has the formula of each.
BASE_FEATURES = (
    *("bm25", "dense", "link", "title_found", "coverage", "sentence", "walk"),
    *("open_coverage", "rare", "capitals", "rarities", "pair"),
)
WALK_SEEDS = 3
MAX_TITLED = 300


class Candidates:
    """The candidates of several questions side by side, a row each, by their keys (`questions`).

    `pool` are the sorted keys of the pools: the best `depth` chunks by BM25 and by cosine, `walked` by the walk, and
    linked titles (of more than `MAX_TITLED` the best by BM25). `covered` (c, w) are the words of its question in each
    candidate, and `base` (c, 12). `touched` is how many edges the walks looked at. Features of chunks outside the pool
    are scaled by the pool's scores.
    """

    def __init__(
        self, corpus: CorpusIndex, questions: Questions, batch: Batch, indices: Sequence[int], depth: int, walked: int
    ) -> None:
        """`indices` (q,) are those of the questions in the batch."""
        self.corpus, self.questions, size = corpus, questions, corpus.chunks
        self.vectors = batch.vectors[np.array(indices)]
        lexical, dense = ([ranking[index] for index in indices] for ranking in (batch.lexical, batch.dense))
        met, mass, self.touched = corpus.walk_mass(*self._walk_seeds([dense, lexical]))
        walk = met // size
        near = _best(mass, walk, walked)
        linked = _keys([np.array(list(one.chunks), np.int64) for one in questions], size)
        worth = np.array([value for one in questions for value in one.chunks.values()], np.float64)
        self._mass, self._link = Lookup(met, mass), Lookup.of(linked, worth)
        self._bm25 = [batch.index.lexical.scorer(batch.questions[index].text) for index in indices]
        self._scales = (
            np.array([one.scores.max(initial=0.0) for one in lexical]),
            np.array([one.scores[0] for one in dense]),
            np.array([one.scores[:depth][-1] for one in dense]),
            np.array([mass[rows].max(initial=0.0) for rows in parts_of(walk, len(questions))]),
        )
        searched = [_keys([one.rows[:depth] for one in ranking], size) for ranking in (lexical, dense)]
        self.pool = distinct(np.concatenate([*searched, met[near[mass[near] > 0]], self._titled()]))
        self.in_pool = Lookup.marks(self.pool)
        self.covered: Flags = np.zeros((0, questions.numbers.shape[1]), bool)
        self.base: Floats = np.zeros((0, len(BASE_FEATURES)))
        self._row = Lookup(np.zeros(0, np.int64), np.zeros(0, np.int64), otherwise=-1)
        self._both: Sequence[Floats] = ()
        self.rows(self.pool)

    def _walk_seeds(self, rankings: Sequence[Sequence[TopRows]]) -> tuple[Numbers, Floats]:
        """Put half the mass on the best chunks of RRF, half on linked entities by rarity; all on one if alone."""
        corpus = self.corpus
        keys, values = _fused(rankings, corpus.chunks)
        nodes, mass = [], []
        for number, rows in enumerate(parts_of(keys // corpus.chunks, len(self.questions))):
            linked, scores = np.array(sorted(self.questions[number].entities), np.int64), values[rows]
            rarity = corpus.rarity[linked]
            own = np.concatenate([linked, len(corpus.rarity) + keys[rows] - number * corpus.chunks])
            parts = np.concatenate([rarity / (rarity.sum() or 1.0), scores / (scores.sum() or 1.0)])
            order = own.argsort()
            nodes.append(own[order] + number * corpus.nodes)
            mass.append(parts[order] / max(parts.sum(), 1.0))
        return np.concatenate(nodes), np.concatenate(mass)

    def _titled(self) -> Numbers:
        keys, size = self._link.keys[self._link.values > 0], self.corpus.chunks
        chosen = []
        for number, rows in enumerate(parts_of(keys // size, len(self.questions))):
            one = keys[rows]
            if len(one) > MAX_TITLED:
                one = one[(-self._bm25[number](one - number * size)).argsort(kind="stable")[:MAX_TITLED]]
            chosen.append(one)
        return np.concatenate(chosen)

    @cached_property
    def word_vectors(self) -> Sequence[NDArray[np.int16]]:
        """Word vectors of each question, (w, 256); those of words that no chunk has are embedded in one batch."""
        numbers = np.concatenate([np.zeros(0, np.int64), *(question.numbers for question in self.questions)])
        words = [word for question in self.questions for word in question.words]
        known = numbers != UNKNOWN
        vectors = np.zeros((len(known), DIMENSION), np.int16)
        vectors[known] = rows_of(self.corpus.words.word_vectors, numbers[known])
        if not known.all():
            vectors[~known] = word_vectors([words[place] for place in np.flatnonzero(~known).tolist()])
        ends = np.cumsum([len(question.words) for question in self.questions])
        return np.split(vectors, ends[:-1])

    def rows(self, keys: NDArray[Any]) -> Numbers:
        """Return the rows of chunks, adding those that are not candidates yet."""
        rows = self._row[keys]
        new = distinct(keys[rows < 0])
        if len(new):
            places = np.concatenate([self._row.values, len(self.base) + np.arange(len(new))])
            self._row = Lookup.of(np.concatenate([self._row.keys, new]), places, otherwise=-1)
            covered, base = self._read(new)
            self.covered = np.concatenate([self.covered, covered])
            self.base = np.concatenate([self.base, base])
            rows = self._row[keys]
        return np.asarray(rows)

    def features(self, keys: NDArray[Any]) -> Floats:
        """Return the base features of chunks, (k, 12)."""
        rows = self.rows(keys)
        return self.base.take(rows, axis=0)

    def _read(self, keys: Numbers) -> tuple[Flags, Floats]:
        corpus, questions, words = self.corpus, self.questions, self.corpus.words
        of, chunks = np.divmod(keys, corpus.chunks)
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentence, chunk = expand_ranges(begin, end)
        of_sentence = of[chunk]
        by_sentence = questions.covered(words.numbers, *words.of_sentences(sentence), of_sentence)
        first = (end - begin).cumsum() - (end - begin)  # a chunk has a sentence at least, its title
        covered = np.logical_or.reduceat(by_sentence, first, axis=0)
        asking = list(enumerate(parts_of(of, len(questions))))
        if not self._both:  # in how many chunks of its pool two words of a question stand together
            asked = [covered[rows, : len(questions[number].words)] for number, rows in asking]
            self._both = [one.T.astype(np.float64) @ one for one in asked]
        bm25 = np.concatenate([self._bm25[number](chunks[rows]) for number, rows in asking])
        cosine = [cosines(corpus.vectors, chunks[rows], self.vectors[number]) for number, rows in asking]
        best_bm25, highest, lowest, most = (scale[of] for scale in self._scales)
        base = [
            bm25 / (best_bm25 + TINY),
            np.clip((np.concatenate(cosine) - lowest) / (highest - lowest + TINY), -1.0, 1.0),
            self._link[keys],
            self._title_found(chunks, of),
            questions.share(covered, of),
            np.maximum.reduceat(questions.share(by_sentence, of_sentence), first),
            np.sqrt(self._mass[keys] / np.where(most > 0, most, 1.0)),
            questions.open_share(covered, of),
            *self._rarities(covered, of),
        ]
        return covered, columns(base)

    def _title_found(self, chunks: Numbers, of: Numbers) -> Floats:
        words = self.corpus.words
        position, owner = expand_ranges(*words.of_sentences(words.chunk_start[chunks]))
        word = words.numbers[position]
        idf = words.idf[word] * ~words.stop[word]
        asked = self.questions.asks(word, of[owner])
        total = np.bincount(owner, idf, len(chunks))
        return np.asarray(np.bincount(owner, idf * asked, len(chunks)) / np.where(total > 0, total, 1.0))

    def _rarities(self, covered: Flags, of: Numbers) -> tuple[Floats, Floats, Floats, Floats]:
        """Compute `rare`, `capitals`, `rarities` and `pair`."""
        frequency = np.maximum(self.questions.frequency, 1)
        rare, inverse = np.zeros(len(of)), 1.0 / frequency
        for part in in_batches(*covered.shape):
            rare[part] = np.max(covered[part] * inverse.take(of[part], axis=0), axis=1, initial=0.0)
        known = shares((self.questions.frequency > 0).astype(np.float64), frequency)
        pair = np.zeros(len(of))
        asking = parts_of(of, len(self.questions))
        for question, both, rows in zip(self.questions, self._both, asking, strict=True):
            pair[rows] = _rarest_pair(covered[rows], both, *question.informative_pairs)
        return rare, self.questions.capital_share(covered, of), np.minimum(products(covered, known, of), 2.0), pair


def _rarest_pair(covered: Flags, both: Floats, first: Numbers, second: Numbers) -> Floats:
    """1/how many chunks of the pool have `both` words of the rarest pair in each of `covered` (k, w), 0 without any."""
    best = np.zeros(len(covered))
    if not len(first):
        return best
    rarity = 1.0 / np.maximum(both[first, second], 1.0)
    rarest = (-rarity).argsort(kind="stable")  # so that the first pair that a chunk has is its best
    first, second, rarity = first[rarest], second[rarest], rarity[rarest]
    for part in in_batches(len(covered), len(first)):
        has = covered[part].take(first, axis=1) & covered[part].take(second, axis=1)
        place = has.argmax(axis=1)
        best[part] = np.where(has[np.arange(len(has)), place], rarity[place], 0.0)
    return best


def _keys(rows: Sequence[NDArray[Any]], chunks: int) -> Numbers:
    return np.concatenate([one + number * chunks for number, one in enumerate(rows)])


def _best(values: Floats, of: Numbers, most: int) -> NDArray[np.intp]:
    """Find the positions of each question's best values, best first; among equal ones the first counts."""
    order = np.lexsort((-values, of))
    rank = np.arange(len(of)) - of.searchsorted(of)
    return order[rank < most]


def _fused(rankings: Sequence[Sequence[TopRows]], chunks: int) -> tuple[Numbers, Floats]:
    """Fuse rankings by RRF: the best `WALK_SEEDS` chunks of each question, scored as in `hybrid_rankings`."""
    rows = np.concatenate([_keys([one.rows for one in ranking], chunks) for ranking in rankings])
    keys = distinct(rows)
    places = np.concatenate([np.arange(len(one.rows)) for ranking in rankings for one in ranking])
    values = np.bincount(keys.searchsorted(rows), 1.0 / (RRF_K + 1 + places), len(keys))
    scores = np.asarray(values.round(DECIMALS), np.float64)
    best = _best(scores, keys // chunks, WALK_SEEDS)
    return keys[best], scores[best]
