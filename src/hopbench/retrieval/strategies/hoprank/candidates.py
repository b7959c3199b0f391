"""The candidate chunks of questions with their twelve base features: the pools, then the targets of followed edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.exact import TopRows, cosines
from hopbench.retrieval.search.fusion import DECIMALS, RRF_K
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.links import question_vectors
from hopbench.retrieval.strategies.hoprank.questions import TINY, Questions, in_batches, parts_of, products
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Lookup, Numbers, columns
from hopbench.retrieval.support.arithmetic import shares
from hopbench.retrieval.support.arrays import distinct, expand_ranges


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of the scores of q questions, (q,).

    The best BM25, the first and last cosine of the pool, the largest mass.
    """

    bm25: Floats
    first_cosine: Floats
    last_cosine: Floats
    mass: Floats


@dataclass(frozen=True, eq=False)
class ChunkFacts:
    """Facts about k chunks, all (k,) but `covered` (k, w): which of the words of the question it is `of` each contains.

    `together` is for each question, (w, w), in how many chunks of its pool two of its words stand together.
    """

    questions: Questions
    of: Numbers
    scales: Scales
    bm25: Floats
    cosine: Floats
    mass: Floats
    link: Floats
    covered: Flags
    best_sentence: Floats
    title_found: Floats
    together: Sequence[Floats]


def bm25(facts: ChunkFacts) -> Floats:
    """BM25 / the best BM25."""
    return facts.bm25 / (facts.scales.bm25 + TINY)[facts.of]


def dense(facts: ChunkFacts) -> Floats:
    """(cosine − c₅₀)/(c₁ − c₅₀), clipped to −1..1; c₁ and c₅₀ are the pool's first and last cosine."""
    first, last = facts.scales.first_cosine[facts.of], facts.scales.last_cosine[facts.of]
    return np.clip((facts.cosine - last) / (first - last + TINY), -1.0, 1.0)


def link(facts: ChunkFacts) -> Floats:
    """idf share of the question's words that name its title × the linker's trust / √(its chunks; 1 if qualified)."""
    return facts.link


def title_found(facts: ChunkFacts) -> Floats:
    """idf share of the title's words that stand in the question."""
    return facts.title_found


def coverage(facts: ChunkFacts) -> Floats:
    """idf share of the question's words that stand in the chunk."""
    return facts.questions.share(facts.covered, facts.of)


def sentence(facts: ChunkFacts) -> Floats:
    """The same for the chunk's best sentence; the title is one."""
    return facts.best_sentence


def walk(facts: ChunkFacts) -> Floats:
    """√(the walk's mass / its largest mass)."""
    return np.sqrt(facts.mass / np.where(facts.scales.mass > 0, facts.scales.mass, 1.0)[facts.of])


def open_coverage(facts: ChunkFacts) -> Floats:
    """idf share of the words outside linked entities that stand in the chunk."""
    return facts.questions.open_share(facts.covered, facts.of)


def rare(facts: ChunkFacts) -> Floats:
    """1/df of the rarest question word in the chunk, 0 without any."""
    inverse = 1.0 / np.maximum(facts.questions.frequency, 1)
    parts = in_batches(*facts.covered.shape)
    best = [np.max(facts.covered[part] * inverse.take(facts.of[part], axis=0), axis=1, initial=0.0) for part in parts]
    return np.concatenate([np.zeros(0), *best])


def capitals(facts: ChunkFacts) -> Floats:
    """idf share of the question's capitalised words that stand in the chunk."""
    return facts.questions.capital_share(facts.covered, facts.of)


def rarities(facts: ChunkFacts) -> Floats:
    """Σ 1/df of the question words in the chunk, at most 2."""
    frequency = facts.questions.frequency
    inverse = shares((frequency > 0).astype(np.float64), np.maximum(frequency, 1))
    return np.minimum(products(facts.covered, inverse, facts.of), 2.0)


def pair(facts: ChunkFacts) -> Floats:
    """1/how many chunks of the pool have both of the rarest pair in the chunk, of question words with idf > 3."""
    best, asking = np.zeros(len(facts.of)), parts_of(facts.of, len(facts.questions))
    for question, together, rows in zip(facts.questions, facts.together, asking, strict=True):
        first, second = question.telling_pairs
        if not len(first):
            continue
        rarity = 1.0 / np.maximum(together[first, second], 1.0)
        rarest = (-rarity).argsort(kind="stable")  # so that the first pair that a chunk has is its best
        first, second, rarity = first[rarest], second[rarest], rarity[rarest]
        covered = facts.covered[rows]
        for part in in_batches(len(covered), len(first)):
            both = covered[part].take(first, axis=1) & covered[part].take(second, axis=1)
            found = both.argmax(axis=1)
            best[rows][part] = np.where(both[np.arange(len(both)), found], rarity[found], 0.0)
    return best


BASE_FEATURES: tuple[Callable[[ChunkFacts], Floats], ...] = (
    bm25,
    dense,
    link,
    title_found,
    coverage,
    sentence,
    walk,
    open_coverage,
    rare,
    capitals,
    rarities,
    pair,
)


WALK_SEEDS = 3
MAX_TITLED = 300


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """The pools of several questions: `chunks`, sorted, and of any chunk the walk's `mass` and a title's `link`.

    These are by key (`questions`). `bm25` has each question's scores of any chunks. `touched` is how many edges the
    walks looked at.
    """

    chunks: Numbers
    bm25: Sequence[Callable[[Numbers], Floats]]
    mass: Lookup
    link: Lookup
    scales: Scales
    touched: int


def candidate_pool(
    corpus: CorpusIndex,
    questions: Questions,
    batch: Batch,
    numbers: Sequence[int],
    *,
    depth: int = 50,
    walked: int = 40,
) -> CandidatePool:
    """Collect the pools of questions: `depth` chunks by BM25 and by cosine, `walked` by the walk, and linked titles.

    Of more than `MOST_TITLED` of these, the best by BM25.
    """
    lexical, dense = ([ranking[number] for number in numbers] for ranking in (batch.lexical, batch.dense))
    met, held, touched = corpus.walk.mass(*_walk_seeds(corpus, questions, dense, lexical))
    walk = met // corpus.chunks
    near = _best(held, walk, walked)
    link = _links(corpus, questions)
    bm25 = [batch.index.lexical.scorer(batch.questions[number].text) for number in numbers]
    found = [_keys([one.rows[:depth] for one in ranking], corpus.chunks) for ranking in (lexical, dense)]
    scales = Scales(
        bm25=np.array([one.scores.max(initial=0.0) for one in lexical]),
        first_cosine=np.array([one.scores[0] for one in dense]),
        last_cosine=np.array([one.scores[:depth][-1] for one in dense]),
        mass=np.array([held[rows].max(initial=0.0) for rows in parts_of(walk, len(questions))]),
    )
    chunks = distinct(np.concatenate([*found, met[near[held[near] > 0]], _titled(link, bm25, corpus.chunks)]))
    return CandidatePool(chunks, bm25, Lookup(met, held), link, scales, touched)


def _keys(rows: Sequence[NDArray[np.intp]], chunks: int) -> Numbers:
    """Concatenate the chunks of questions as keys."""
    return np.concatenate([one + number * chunks for number, one in enumerate(rows)])


def _best(values: Floats, of: Numbers, most: int) -> NDArray[np.intp]:
    """Find the positions of each question's best values, best first; among equal ones the first counts."""
    order = np.lexsort((-values, of))
    rank = np.arange(len(of)) - of.searchsorted(of)
    return order[rank < most]


def _links(corpus: CorpusIndex, questions: Questions) -> Lookup:
    """Score each linked chunk by the question words that name its title."""
    keys = _keys([np.array(list(one.chunks), np.int64) for one in questions], corpus.chunks)
    return Lookup.of(keys, np.array([worth for one in questions for worth in one.chunks.values()], np.float64))


def _titled(link: Lookup, bm25: Sequence[Callable[[Numbers], Floats]], chunks: int) -> Numbers:
    """Select the chunks whose titles questions name, at most the `MAX_TITLED` best by BM25 for each question."""
    keys = link.keys[link.values > 0]
    kept = []
    for number, rows in enumerate(parts_of(keys // chunks, len(bm25))):
        one = keys[rows]
        if len(one) > MAX_TITLED:
            one = one[(-bm25[number](one - number * chunks)).argsort(kind="stable")[:MAX_TITLED]]
        kept.append(one)
    return np.concatenate(kept)


def _fused(rankings: Sequence[Sequence[TopRows]], chunks: int) -> tuple[Numbers, Floats]:
    """Fuse rankings by RRF: the best `WALK_SEEDS` chunks of each question, scored as in `hybrid_rankings`."""
    rows = np.concatenate([_keys([one.rows for one in ranking], chunks) for ranking in rankings])
    keys = distinct(rows)
    places = np.concatenate([np.arange(len(one.rows)) for ranking in rankings for one in ranking])
    shares = np.bincount(keys.searchsorted(rows), 1.0 / (RRF_K + 1 + places), len(keys))
    scores = np.asarray(shares.round(DECIMALS), np.float64)
    best = _best(scores, keys // chunks, WALK_SEEDS)
    return keys[best], scores[best]


def _walk_seeds(corpus: CorpusIndex, questions: Questions, *rankings: Sequence[TopRows]) -> tuple[Numbers, Floats]:
    """Put half the mass on the best chunks of RRF, half on linked entities by rarity; all on one without the other."""
    keys, values = _fused(rankings, corpus.chunks)
    nodes, held = [], []
    for number, rows in enumerate(parts_of(keys // corpus.chunks, len(questions))):
        linked, scores = np.array(sorted(questions[number].entities), np.int64), values[rows]
        rarity = corpus.rarity[linked]
        own = np.concatenate([linked, corpus.walk.entities + keys[rows] - number * corpus.chunks])
        shares = np.concatenate([rarity / (rarity.sum() or 1.0), scores / (scores.sum() or 1.0)])
        order = own.argsort()
        nodes.append(own[order] + number * corpus.walk.nodes)
        held.append(shares[order] / max(shares.sum(), 1.0))
    return np.concatenate(nodes), np.concatenate(held)


class Candidates:
    """The candidates of several questions side by side, a row each, by their keys (`questions`).

    `covered` (c, w) are the words of its question in each, and `base` (c, 12). The pool comes first: what its chunks
    have in common, features of all others are measured against.
    """

    def __init__(self, corpus: CorpusIndex, questions: Questions, vectors: Vectors, pool: CandidatePool) -> None:
        """`vectors` (q, d) are the questions'."""
        self.corpus, self.questions, self.vectors, self.pool = corpus, questions, vectors, pool
        self.in_pool = Lookup.marks(pool.chunks)
        self.covered: Flags = np.zeros((0, questions.numbers.shape[1]), bool)
        self.base: Floats = np.zeros((0, len(BASE_FEATURES)))
        self._row = Lookup(np.zeros(0, np.int64), np.zeros(0, np.int64), otherwise=-1)
        self._together: Sequence[Floats] = ()
        self.rows(pool.chunks)

    @cached_property
    def word_vectors(self) -> Sequence[NDArray[np.int16]]:
        """Word vectors of each question, (w, 256)."""
        return question_vectors(self.corpus, self.questions)

    def rows(self, keys: NDArray[Any]) -> Numbers:
        """Return the rows of chunks, adding those that are not candidates yet."""
        rows = self._row[keys]
        new = distinct(keys[rows < 0])
        if len(new):
            numbers = np.concatenate([self._row.values, len(self.base) + np.arange(len(new))])
            self._row = Lookup.of(np.concatenate([self._row.keys, new]), numbers, otherwise=-1)
            facts = self._facts(new)
            self.covered = np.concatenate([self.covered, facts.covered])
            self.base = np.concatenate([self.base, columns([feature(facts) for feature in BASE_FEATURES])])
            rows = self._row[keys]
        return np.asarray(rows)

    def features(self, keys: NDArray[Any]) -> Floats:
        """Return the base features of chunks, (k, 12)."""
        rows = self.rows(keys)
        return self.base.take(rows, axis=0)

    def _facts(self, keys: Numbers) -> ChunkFacts:
        words, questions, pool, vectors = self.corpus.words, self.questions, self.pool, self.corpus.vectors
        of, chunks = np.divmod(keys, self.corpus.chunks)
        begin, end = words.chunk_start[chunks], words.chunk_start[chunks + 1]
        sentence, chunk = expand_ranges(begin, end)
        of_sentence = of[chunk]
        by_sentence = questions.covered(words.numbers, *words.of_sentences(sentence), of_sentence)
        first = (end - begin).cumsum() - (end - begin)  # a chunk has a sentence at least, its title
        covered = np.logical_or.reduceat(by_sentence, first, axis=0)
        asking = list(enumerate(parts_of(of, len(questions))))
        if not self._together:
            asked = [covered[rows, : len(questions[number].words)] for number, rows in asking]
            self._together = [one.T.astype(np.float64) @ one for one in asked]
        return ChunkFacts(
            questions=questions,
            of=of,
            scales=pool.scales,
            bm25=np.concatenate([pool.bm25[number](chunks[rows]) for number, rows in asking]),
            cosine=np.concatenate([cosines(vectors, chunks[rows], self.vectors[number]) for number, rows in asking]),
            mass=pool.mass[keys],
            link=pool.link[keys],
            covered=covered,
            best_sentence=np.maximum.reduceat(questions.share(by_sentence, of_sentence), first),
            title_found=self._title_found(chunks, of),
            together=self._together,
        )

    def _title_found(self, chunks: Numbers, of: Numbers) -> Floats:
        """Compute Σ idf of title words in the question / Σ idf of title words, without stop words."""
        words = self.corpus.words
        position, owner = expand_ranges(*words.of_titles(chunks))
        number = words.numbers[position]
        idf = words.idf[number] * ~words.stop[number]
        asked = self.questions.asks(number, of[owner])
        total = np.bincount(owner, idf, len(chunks))
        return np.asarray(np.bincount(owner, idf * asked, len(chunks)) / np.where(total > 0, total, 1.0))
