"""Lists of the best candidates of the last pass, with the facts about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.list_facts import PATHS, ListFacts
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.path_features import best_in_cells
from hopbench.retrieval.strategies.hoprank.paths import Passed, Paths, Ranked
from hopbench.retrieval.strategies.hoprank.questions import of_some_words
from hopbench.retrieval.strategies.hoprank.reading import Reading
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.support.mapped_arrays import rows_of

LISTED = 100  # candidates among which ranks and edges are counted
READ = 50  # of those, the best ones, which the first trees put in order


def list_facts(candidates: Candidates, passed: Sequence[Passed]) -> list[ListFacts]:
    """The facts about the candidates' questions after the last of each one's passes, which must have followed paths.

    Lists of the same size are side by side, as many as have some words to be read.
    """
    each = [_of_passes(one) for one in passed]
    sizes, words, found = np.array([len(one["chunks"]) for one in each]), candidates.corpus.words, []
    for size in distinct(sizes).tolist():
        of = np.flatnonzero(sizes == size)
        read = np.array([words.lengths(each[number]["chunks"][:READ]).sum() for number in of.tolist()])
        groups = (of[part] for part in of_some_words(read))
        found += [_side_by_side(candidates, group, [each[number] for number in group.tolist()]) for group in groups]
    return found


def _side_by_side(candidates: Candidates, of: Numbers, each: Sequence[Mapping[str, NDArray[Any]]]) -> ListFacts:
    """The lists of some questions, all of the same size, from the columns of each that its passes tell."""
    columns: dict[str, Any] = {name: np.stack([one[name] for one in each]) for name in each[0]}
    corpus, chunks = candidates.corpus, columns["chunks"]
    rows = candidates.rows((chunks + of[:, None] * corpus.chunks).ravel()).reshape(chunks.shape)
    read = chunks[:, :READ]
    vectors = rows_of(corpus.vectors, read).astype(np.float64)
    edge = columns["edge"][:, :READ, :READ]
    return ListFacts(
        **columns,
        of=of,
        base=candidates.base.take(rows, axis=0),
        covers=candidates.covered.take(rows, axis=0),
        own=corpus.mentions.own[chunks],
        cosine=(vectors @ candidates.vectors[of, :, None].astype(np.float64))[..., 0].round(COSINE_DECIMALS),
        alike=(vectors @ vectors.swapaxes(1, 2)).round(COSINE_DECIMALS),
        reading=Reading.of(corpus, candidates.questions, candidates.word_vectors, read, of, edge),
        places=np.arange(read.size).reshape(read.shape),
    )


def _of_passes(passed: Passed) -> dict[str, NDArray[Any]]:
    """The columns of a list that its passes tell."""
    (pool, _), (first, _), (last, paths) = passed[0], passed[1], passed[-1]
    if paths is None:
        raise ValueError("trees order candidates of a pass over paths; this one followed none")
    order = np.argsort(-last.scores, kind="stable")[:LISTED]
    chunks, into = last.chunks[order], paths.best[order]
    edge, anchor = _edges_between(chunks, paths)
    return {
        "chunks": chunks,
        "score": last.scores[order],
        "first_score": _aligned(first, chunks),
        "pool_score": _aligned(pool, chunks),
        "paths": paths.features[order, : len(PATHS)],
        "edge": edge,
        "anchor": anchor,
        "best": _of_best(paths.edge_features[:, : len(EDGE_FEATURES)], into),
        "best_anchor": _of_best(paths.anchor_probability, into),
        "best_edge": _of_best(paths.probability, into),
    }


def _edges_between(chunks: Numbers, paths: Paths) -> tuple[Floats, Flags]:
    """P(edge) of the best edge from each of some chunks to each other, (k, k), and which of them are anchors, (k,)."""
    place = Lookup.of(chunks, np.arange(len(chunks)), otherwise=NOWHERE)
    source, target = place[paths.edges.anchor], place[paths.edges.target]
    inside = np.flatnonzero((source != NOWHERE) & (target != NOWHERE))
    edge = best_in_cells(source[inside], target[inside], paths.probability[inside], (len(chunks), len(chunks)))
    anchor = np.zeros(len(chunks), bool)
    anchor[source[source != NOWHERE]] = True
    return edge, anchor


def _of_best(values: Floats, into: Numbers) -> Floats:
    """The values of edges, 0 where there is none."""
    found = np.zeros((len(into), *values.shape[1:]))
    found[into != NOWHERE] = values[into[into != NOWHERE]]
    return found


def _aligned(ranked: Ranked, chunks: Numbers) -> Floats:
    """The scores of chunks in another ranking; one below its last for those that it lacks."""
    place = np.minimum(ranked.chunks.searchsorted(chunks), len(ranked.chunks) - 1)
    return np.where(ranked.chunks[place] == chunks, ranked.scores[place], ranked.scores.min() - 1.0)
