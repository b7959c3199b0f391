"""The candidate pools of questions: chunks by BM25, by cosine, by linked titles, and by a short random walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.exact import TopRows
from hopbench.retrieval.search.fusion import DECIMALS, RRF_K
from hopbench.retrieval.strategies.hoprank.base_features import Scales
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.questions import Questions, parts_of
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.distinct import distinct

WALK_SEEDS = 3
MOST_TITLED = 300


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
    """The pools of a batch's questions: `depth` chunks by BM25 and by cosine, `walked` by the walk, and linked titles.

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
    """Chunks of one question after the other as keys."""
    return np.concatenate([one + number * chunks for number, one in enumerate(rows)])


def _best(values: Floats, of: Numbers, most: int) -> NDArray[np.intp]:
    """Where each question's best values are, question by question, best first, the first of equal ones."""
    order = np.lexsort((-values, of))
    rank = np.arange(len(of)) - of.searchsorted(of)
    return order[rank < most]


def _links(corpus: CorpusIndex, questions: Questions) -> Lookup:
    """What the question's words that name its title are worth to each chunk."""
    keys = _keys([np.array(list(one.chunks), np.int64) for one in questions], corpus.chunks)
    return Lookup.of(keys, np.array([worth for one in questions for worth in one.chunks.values()], np.float64))


def _titled(link: Lookup, bm25: Sequence[Callable[[Numbers], Floats]], chunks: int) -> Numbers:
    """The chunks whose titles questions name; of more than `MOST_TITLED` of one question, the best by BM25."""
    keys = link.keys[link.values > 0]
    kept = []
    for number, rows in enumerate(parts_of(keys // chunks, len(bm25))):
        one = keys[rows]
        if len(one) > MOST_TITLED:
            one = one[(-bm25[number](one - number * chunks)).argsort(kind="stable")[:MOST_TITLED]]
        kept.append(one)
    return np.concatenate(kept)


def _fused(rankings: Sequence[Sequence[TopRows]], chunks: int) -> tuple[Numbers, Floats]:
    """The best `WALK_SEEDS` chunks of RRF of each question, best first, with their scores, as in `hybrid_rankings`."""
    rows = np.concatenate([_keys([one.rows for one in ranking], chunks) for ranking in rankings])
    keys = distinct(rows)
    places = np.concatenate([np.arange(len(one.rows)) for ranking in rankings for one in ranking])
    shares = np.bincount(keys.searchsorted(rows), 1.0 / (RRF_K + 1 + places), len(keys))
    scores = np.asarray(shares.round(DECIMALS), np.float64)
    best = _best(scores, keys // chunks, WALK_SEEDS)
    return keys[best], scores[best]


def _walk_seeds(corpus: CorpusIndex, questions: Questions, *rankings: Sequence[TopRows]) -> tuple[Numbers, Floats]:
    """Half the mass on the best chunks of RRF, half on the linked entities by rarity; all on one without the other."""
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
