"""What trees see of a candidate: its own evidence, its standing among the others, and how it fits those above it.

Most are shares, ranks or distances within one question, which mean the same in every corpus. Nothing here is about the
question alone: such features told apart data sets, not passages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hopbench.retrieval.search.exact import cosines
from hopbench.retrieval.strategies.hoprank.base_features import BASE_FEATURES
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.edges import KINDS, TRIPLE
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.paths import Paths, Ranked, sigmoid
from hopbench.retrieval.strategies.hoprank.trees import FEATURE_DECIMALS
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, columns

LISTED = 100  # candidates that trees put in order: as many as a ranking keeps
TOP = 4
PATHS = tuple(f"path_{name}" for name in (*KINDS[:TRIPLE], "any", "several"))
TELLING_EDGE = 0.1


@dataclass(frozen=True, eq=False)
class ListFacts:
    """Facts about the k best candidates of the last pass, best first.

    `score`, `first_score` and `pool_score` (k,) are those of the last pass, of the first and of the pool.
    `base` (k, 12) and `paths` (k, 6) are features of the linear score, `covers` (k, w) the question's words in each.
    `edge` (k, k) is P(edge) of the best edge from the one to the other, `best` (k, 17) the features of the best edge
    into each, `best_anchor` and `best_edge` (k,) its P(anchor) and P(edge): 0 where there is none.
    """

    candidates: Candidates
    chunks: Numbers
    score: Floats
    first_score: Floats
    pool_score: Floats
    base: Floats
    paths: Floats
    covers: Flags
    edge: Floats
    anchor: Flags
    best: Floats
    best_anchor: Floats
    best_edge: Floats

    @property
    def above(self) -> Flags:
        """Whether the column's candidate stands above the row's, (k, k)."""
        return np.tri(len(self.chunks), k=-1, dtype=bool)

    @property
    def top_above(self) -> Flags:
        """The same for columns of the first four, (k, TOP)."""
        return self.above[:, :TOP]


def list_facts(candidates: Candidates, passed: Sequence[tuple[Ranked, Paths | None]]) -> ListFacts:
    """The facts after the last of the passes, which must have followed paths."""
    (pool, _), (first, _), (last, paths) = passed[0], passed[1], passed[-1]
    if paths is None:
        raise ValueError("trees order candidates of a pass over paths; this one followed none")
    order = np.argsort(-last.scores, kind="stable")[:LISTED]
    chunks = last.chunks[order]
    into = paths.best[order]
    reached = into != NOWHERE
    best = np.zeros((len(chunks), len(EDGE_FEATURES)))
    best[reached] = paths.edge_features[into[reached], : len(EDGE_FEATURES)]
    place = np.full(candidates.corpus.chunks, NOWHERE, np.int64)
    place[chunks] = np.arange(len(chunks))
    source, target = place[paths.edges.anchor], place[paths.edges.target]
    inside = np.flatnonzero((source != NOWHERE) & (target != NOWHERE))
    edge = np.zeros((len(chunks), len(chunks)))
    np.maximum.at(edge, (source[inside], target[inside]), paths.probability[inside])
    anchor = np.zeros(len(chunks), bool)
    anchor[source[source != NOWHERE]] = True
    rows = candidates.rows(chunks)
    return ListFacts(
        candidates=candidates,
        chunks=chunks,
        score=last.scores[order],
        first_score=_aligned(first, chunks),
        pool_score=_aligned(pool, chunks),
        base=candidates.base[rows],
        paths=paths.features[order, : len(PATHS)],
        covers=candidates.covered[rows],
        edge=edge,
        anchor=anchor,
        best=best,
        best_anchor=_of_best(paths.anchor_probability, into),
        best_edge=_of_best(paths.probability, into),
    )


def _of_best(values: Floats, into: Numbers) -> Floats:
    """The values of edges, 0 where there is none."""
    found = np.zeros(len(into))
    found[into != NOWHERE] = values[into[into != NOWHERE]]
    return found


def _aligned(ranked: Ranked, chunks: Numbers) -> Floats:
    """The scores of chunks in another ranking; one below its last for those that it lacks."""
    place = np.minimum(ranked.chunks.searchsorted(chunks), len(ranked.chunks) - 1)
    return np.where(ranked.chunks[place] == chunks, ranked.scores[place], ranked.scores.min() - 1.0)


def _rank(values: Floats) -> Floats:
    """Each value's rank from 0, equal ones in their order here."""
    ranks = np.empty(len(values))
    ranks[(-values).argsort(kind="stable")] = np.arange(len(values))
    return ranks


def _lead_over(facts: ListFacts, rank: int) -> Floats:
    return np.asarray(facts.score - facts.score[min(rank, len(facts.score) - 1)])


def lead_1(facts: ListFacts) -> Floats:
    """The linear score minus the best."""
    return _lead_over(facts, 0)


def lead_2(facts: ListFacts) -> Floats:
    """The linear score minus the second best."""
    return _lead_over(facts, 1)


def lead_3(facts: ListFacts) -> Floats:
    """The linear score minus the third best."""
    return _lead_over(facts, 2)


def lead_4(facts: ListFacts) -> Floats:
    """The linear score minus the fourth best."""
    return _lead_over(facts, 3)


def lead_5(facts: ListFacts) -> Floats:
    """The linear score minus the fifth best."""
    return _lead_over(facts, 4)


def gap_above(facts: ListFacts) -> Floats:
    """The linear score of the next one above minus its own, 0 for the best."""
    return np.asarray(-np.diff(facts.score, prepend=facts.score[:1]))


def gap_below(facts: ListFacts) -> Floats:
    """Its own linear score minus that of the next one below, 0 for the last."""
    return np.asarray(-np.diff(facts.score, append=facts.score[-1:]))


def rank(facts: ListFacts) -> Floats:
    """Its rank by the linear score, from 0."""
    return np.arange(len(facts.score), dtype=np.float64)


def first_lead(facts: ListFacts) -> Floats:
    """The score of the first pass minus the best."""
    return np.asarray(facts.first_score - facts.first_score.max())


def first_rank(facts: ListFacts) -> Floats:
    """Its rank in the first pass."""
    return _rank(facts.first_score)


def pool_lead(facts: ListFacts) -> Floats:
    """The pool's score minus the best."""
    return np.asarray(facts.pool_score - facts.pool_score.max())


def pool_rank(facts: ListFacts) -> Floats:
    """Its rank in the pool."""
    return _rank(facts.pool_score)


def bm25_rank(facts: ListFacts) -> Floats:
    """Its rank by `bm25`."""
    return _rank(facts.base[:, 0])


def dense_rank(facts: ListFacts) -> Floats:
    """Its rank by `dense`."""
    return _rank(facts.base[:, 1])


def coverage_rank(facts: ListFacts) -> Floats:
    """Its rank by `coverage`."""
    return _rank(facts.base[:, 4])


def sentence_rank(facts: ListFacts) -> Floats:
    """Its rank by `sentence`."""
    return _rank(facts.base[:, 5])


def walk_rank(facts: ListFacts) -> Floats:
    """Its rank by `walk`."""
    return _rank(facts.base[:, 6])


def path_rank(facts: ListFacts) -> Floats:
    """Its rank by `path_any`."""
    return _rank(facts.paths[:, 4])


def best_anchor(facts: ListFacts) -> Floats:
    """P(anchor) of the best path into it."""
    return facts.best_anchor


def best_edge(facts: ListFacts) -> Floats:
    """P(edge) of the best path into it."""
    return facts.best_edge


def edges_in(facts: ListFacts) -> Floats:
    """How many candidates have an edge to it."""
    return np.asarray((facts.edge > 0).sum(axis=0), np.float64)


def is_anchor(facts: ListFacts) -> Floats:
    """1 for an anchor of the last pass that leads to another candidate."""
    return facts.anchor.astype(np.float64)


def edge_from_above(facts: ListFacts) -> Floats:
    """P(edge) of the best edge to it from one that stands above."""
    return np.asarray(np.max(facts.edge.T * facts.above, axis=1, initial=0.0))


def linked_above(facts: ListFacts) -> Floats:
    """How many of the first four, standing above it, have an edge to it with P(edge) > .1."""
    return np.asarray((facts.edge.T[:, :TOP] * facts.top_above > TELLING_EDGE).sum(axis=1), np.float64)


def edge_from_best(facts: ListFacts) -> Floats:
    """P(edge) of the best edge to it from one of the first two."""
    return np.asarray(np.max(facts.edge.T[:, :2], axis=1, initial=0.0))


def leads_to_best(facts: ListFacts) -> Floats:
    """P(edge) of its best edge to one of the first four."""
    return np.asarray(np.max(facts.edge[:, :TOP], axis=1, initial=0.0))


def leads_on(facts: ListFacts) -> Floats:
    """The largest P(edge) · σ(score − fifth best score) of those that it leads to."""
    return np.asarray(np.max(facts.edge * sigmoid(_lead_over(facts, 4)), axis=1, initial=0.0))


def adds_open(facts: ListFacts) -> Floats:
    """idf share of the open question words in it that none of the first four has, as far as they stand above it."""
    return facts.candidates.question.open_share(_new_words(facts))


def adds(facts: ListFacts) -> Floats:
    """The same of all question words."""
    return facts.candidates.question.share(_new_words(facts))


def _new_words(facts: ListFacts) -> Flags:
    first = facts.covers[:TOP]
    known = (facts.top_above[:, : len(first), None] & first).any(axis=1)
    return np.asarray(facts.covers & ~known)


def same_title_above(facts: ListFacts) -> Floats:
    """1 where a candidate above it is titled by the same entity."""
    own = facts.candidates.corpus.mentions.own[facts.chunks]
    same = (own[:, None] == own) & (own != NOWHERE)
    return np.asarray((same & facts.above).any(axis=1), np.float64)


def cosine(facts: ListFacts) -> Floats:
    """Cosine of it and the question."""
    return cosines(facts.candidates.corpus.vectors, facts.chunks, facts.candidates.vector)


def like_best(facts: ListFacts) -> Floats:
    """The larger cosine of it and the first two, itself aside."""
    vectors = facts.candidates.corpus.vectors
    alike = columns([cosines(vectors, facts.chunks, vectors[chunk]) for chunk in facts.chunks[:2]])
    alike[np.arange(alike.shape[1]), np.arange(alike.shape[1])] = 0.0
    return np.asarray(alike.max(axis=1))


LIST_FEATURES: tuple[Callable[[ListFacts], Floats], ...] = (
    lead_1,
    lead_2,
    lead_3,
    lead_4,
    lead_5,
    gap_above,
    gap_below,
    rank,
    first_lead,
    first_rank,
    pool_lead,
    pool_rank,
    bm25_rank,
    dense_rank,
    coverage_rank,
    sentence_rank,
    walk_rank,
    path_rank,
    best_anchor,
    best_edge,
    edges_in,
    is_anchor,
    edge_from_above,
    linked_above,
    edge_from_best,
    leads_to_best,
    leads_on,
    adds_open,
    adds,
    same_title_above,
    cosine,
    like_best,
)


@cache
def tree_names() -> tuple[str, ...]:
    """The features of trees: of the chunk, of paths, of the list, and of the best edge (`best_…`)."""
    return (
        *(feature.__name__ for feature in BASE_FEATURES),
        *PATHS,
        *(feature.__name__ for feature in LIST_FEATURES),
        *(f"best_{feature.__name__}" for feature in EDGE_FEATURES),
    )


def tree_features(facts: ListFacts) -> Floats:
    """The features of trees, (k, f), on a grid of decimals: no last bit decides at a threshold."""
    listed = columns([feature(facts) for feature in LIST_FEATURES])
    return np.concatenate([facts.base, facts.paths, listed, facts.best], axis=1).round(FEATURE_DECIMALS)
