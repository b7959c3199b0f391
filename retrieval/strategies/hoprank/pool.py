"""The candidate pool of a question: chunks by BM25, by cosine, by linked titles, and by a short random walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import DECIMALS, RRF_K
from hopbench.retrieval.strategies.hoprank.base_features import Scales
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.question import ReadQuestion
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, distinct

WALK_SEEDS = 3
MOST_TITLED = 300


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """`chunks`, sorted, and for any chunk BM25, the walk's `mass` and the weight of a title's `link`.

    `touched` is how many edges the walk looked at.
    """

    chunks: Numbers
    bm25: Callable[[Numbers], Floats]
    mass: Lookup
    link: Lookup
    scales: Scales
    touched: int


def candidate_pool(
    corpus: CorpusIndex, question: ReadQuestion, batch: Batch, number: int, *, depth: int = 50, walked: int = 40
) -> CandidatePool:
    """The pool of a batch's question: `depth` chunks by BM25 and by cosine, `walked` by the walk, and linked titles.

    Of more than `MOST_TITLED` of these, the best by BM25.
    """
    lexical, dense = batch.lexical[number], batch.dense[number]
    met, held, touched = corpus.walk.mass(*_walk_seeds(corpus, question, batch, number))
    mass = Lookup(met, held)
    named = np.array(list(question.chunks), np.int64)
    link = Lookup.of(named, np.array(list(question.chunks.values()), np.float64))
    near = met[(-held).argsort(kind="stable")[:walked]]
    near = near[mass[near] > 0]
    bm25 = partial(batch.index.lexical.scores_of, batch.questions[number].text)
    titled = np.sort(named[link[named] > 0])
    if len(titled) > MOST_TITLED:
        titled = titled[(-bm25(titled)).argsort(kind="stable")[:MOST_TITLED]]
    parts = (lexical.rows[:depth], dense.rows[:depth], near, titled)
    cosines = dense.scores[:depth]
    best = lexical.scores.max(initial=0.0)
    scales = Scales(*map(float, (best, cosines[0], cosines[-1], held.max(initial=0.0))))
    return CandidatePool(distinct(np.concatenate(parts)), bm25, mass, link, scales, touched)


def _fused(*rankings: NDArray[np.intp]) -> tuple[Numbers, Floats]:
    """The best `WALK_SEEDS` chunks of RRF with their scores: `hybrid_rankings`' first, without the other 197."""
    rows = np.concatenate(rankings)
    chunks = distinct(rows)
    shares = np.concatenate([1.0 / (RRF_K + 1 + np.arange(len(ranking))) for ranking in rankings])
    scores = np.bincount(chunks.searchsorted(rows), shares, len(chunks)).round(DECIMALS)
    best = (-scores).argsort(kind="stable")[:WALK_SEEDS]  # equal ones by row, and so by id
    return chunks[best], np.asarray(scores[best], np.float64)


def _walk_seeds(corpus: CorpusIndex, question: ReadQuestion, batch: Batch, number: int) -> tuple[Numbers, Floats]:
    """Half the mass on the best chunks of RRF, half on the linked entities by rarity; all on one without the other."""
    chunks, scores = _fused(batch.dense[number].rows, batch.lexical[number].rows)
    linked = np.array(sorted(question.entities), np.int64)
    rarity = corpus.rarity[linked]
    nodes = np.concatenate([linked, corpus.walk.entities + chunks])
    shares = np.concatenate([rarity / (rarity.sum() or 1.0), scores / (scores.sum() or 1.0)])
    order = nodes.argsort()
    return nodes[order], shares[order] / max(shares.sum(), 1.0)
