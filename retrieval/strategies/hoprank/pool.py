"""The chunks a question begins with: found by words, by meaning, by name, and by a short walk over the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retrieval.index import Batch
from retrieval.search import best_rows
from retrieval.strategies.baselines import hybrid_rankings
from retrieval.strategies.hoprank.base_features import Scales
from retrieval.strategies.hoprank.evidence import Evidence
from retrieval.strategies.hoprank.question import ReadQuestion
from retrieval.strategies.hoprank.words import Floats, Numbers

WALK_SEEDS = 3


@dataclass(frozen=True, eq=False)
class Pool:
    """`chunks`, sorted, and for all n chunks of the corpus BM25, the walk's `mass` and the weight of a title's `link`.

    `touched` is how many edges the walk looked at.
    """

    chunks: Numbers
    bm25: Floats
    mass: Floats
    link: Floats
    scales: Scales
    touched: int


def pool_of(
    seen: Evidence, question: ReadQuestion, batch: Batch, number: int, *, depth: int = 50, walked: int = 40
) -> Pool:
    """The pool of a batch's question: `depth` chunks by BM25 and by cosine, `walked` by the walk, and linked titles."""
    lexical, dense = batch.lexical[number], batch.dense[number]
    bm25 = batch.index.lexical.scores(batch.questions[number].text)
    mass, touched = seen.walk.mass(_walk_seeds(seen, question, batch, number))
    link = np.zeros(seen.chunks)
    link[list(question.chunks)] = list(question.chunks.values())
    (near,) = best_rows(mass[None, :], walked)
    parts = (lexical.rows[:depth], dense.rows[:depth], near[mass[near] > 0], np.flatnonzero(link))
    cosines = dense.scores[:depth]
    scales = Scales(*map(float, (bm25.max(), cosines[0], cosines[-1], mass.max())))
    return Pool(np.unique(np.concatenate(parts)).astype(np.int64), bm25, mass, link, scales, touched)


def _walk_seeds(seen: Evidence, question: ReadQuestion, batch: Batch, number: int) -> Floats:
    """Half the mass on the best chunks of RRF, half on the linked entities by rarity; all on one without the other."""
    seeds = np.zeros(seen.walk.entities + seen.chunks)
    best = hybrid_rankings(batch, fusion="rrf")[number][:WALK_SEEDS]
    total = sum(score for _, score in best)
    for chunk, score in best:
        seeds[seen.walk.entities + batch.index.row_of[chunk]] = score / total
    linked = list(question.entities)
    if linked:
        seeds[linked] = seen.rarity[linked] / seen.rarity[linked].sum()
    return np.asarray(seeds / max(seeds.sum(), 1.0))
