"""Facts about the best candidates of the last pass side by side, from which the features of trees are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hopbench.retrieval.search.exact import COSINE_DECIMALS
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.chains import Chains
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.edges import KINDS, TRIPLE
from hopbench.retrieval.strategies.hoprank.list_columns import TOP, ListColumns
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.pairs import PARTNERS, Pairs
from hopbench.retrieval.strategies.hoprank.path_features import best_in_cells
from hopbench.retrieval.strategies.hoprank.paths import Paths, Ranked
from hopbench.retrieval.strategies.hoprank.reading import Reading
from hopbench.retrieval.strategies.hoprank.word_links import SentenceLinks, WordLinks
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.mapped_arrays import rows_of

LISTED = 100  # candidates among which ranks and edges are counted
READ = 50  # of those, the best ones, which the first trees put in order
READ_AGAIN = 25  # of those in turn the best ones, which the second trees do
_OF_LISTED = (
    "chunks",
    "first_score",
    "pool_score",
    "base",
    "paths",
    "covers",
    "anchor",
    "own",
    "best",
    "best_anchor",
    "best_edge",
)
PATHS = tuple(f"path_{name}" for name in (*KINDS[:TRIPLE], "any", "several"))


@dataclass(frozen=True, eq=False, kw_only=True)
class ListFacts(ListColumns):
    """Facts about one list, beside its columns those that differ in size from question to question.

    `covers` (k, w) are the question's words in each. Those that are read stand at these `places` (r,) of the `reading`.
    """

    covers: Flags
    reading: Reading
    places: Numbers

    @property
    def read(self) -> int:
        """How many of them trees read, r."""
        return len(self.places)

    @property
    def size(self) -> tuple[int, int]:
        """How many candidates are listed, and how many of them are read."""
        return len(self.chunks), self.read

    @cached_property
    def close(self) -> Floats:
        """How close each that is read comes to the question's words, (r, w)."""
        return self.reading.closeness.chunk[self.places]

    @cached_property
    def pairs(self) -> Pairs:
        """Each that is read with each of the very first."""
        return self.reading.pairs.of_some(self.places)

    @cached_property
    def word_links(self) -> WordLinks:
        """The links by words of each that is read with the very first."""
        return self.reading.word_links.of_some(self.places)

    @property
    def sentence_links(self) -> SentenceLinks:
        """Those of all that were read; they name candidates by their places in the reading."""
        return self.reading.sentence_links

    @cached_property
    def sure_partners(self) -> Floats:
        """σ of the very first by their places in the reading, 0 of all others there."""
        return self._of_partners(self.sure[: min(PARTNERS, self.read)])

    @cached_property
    def partners(self) -> Floats:
        """1 for the very first by their places in the reading, 0 for all others there."""
        return self._of_partners(1.0)

    def _of_partners(self, values: Floats | float) -> Floats:
        found = np.zeros(len(self.reading.chunks))
        found[self.places[:PARTNERS]] = values
        return found

    def best_link(self, of: Numbers, values: Floats) -> Floats:
        """For each that is read the best value of links, (r,), 0 without any; they are `of` places in the reading."""
        best = np.zeros(len(self.reading.chunks))
        np.maximum.at(best, of, values)
        return best[self.places]

    @cached_property
    def chains(self) -> Chains:
        """Each that is read with pairs of the very first."""
        return Chains.of(self.reading.question, self.close, self.word_links, self.sure[:PARTNERS])

    @cached_property
    def new_words(self) -> Flags:
        """The question's words in each that is read and in none of the first four above it, (r, w)."""
        covers = self.covers[: self.read]
        first = covers[:TOP]
        known = (self.above[: self.read, :TOP][:, : len(first), None] & first).any(axis=1)
        return np.asarray(covers & ~known)

    def reordered(self, score: Floats, read: int) -> ListFacts:
        """The same candidates in the order of another score (k,), of which the first `read` were read before."""
        order = (-score).argsort(kind="stable")
        columns: dict[str, Any] = {name: getattr(self, name)[order] for name in _OF_LISTED}
        first = order[:read]
        return ListFacts(
            **columns,
            score=score[order],
            edge=self.edge[order[:, None], order],
            cosine=self.cosine[first],
            alike=self.alike[first[:, None], first],
            reading=self.reading,
            places=self.places[first],
        )


def list_facts(candidates: Candidates, passed: Sequence[tuple[Ranked, Paths | None]], number: int = 0) -> ListFacts:
    """The facts about one of the candidates' questions after the last of its passes, which must have followed paths."""
    (pool, _), (first, _), (last, paths) = passed[0], passed[1], passed[-1]
    if paths is None:
        raise ValueError("trees order candidates of a pass over paths; this one followed none")
    order = np.argsort(-last.scores, kind="stable")[:LISTED]
    chunks = last.chunks[order]
    into = paths.best[order]
    edge, anchor = _edges_between(chunks, paths)
    corpus, question = candidates.corpus, candidates.questions[number]
    rows = candidates.rows(chunks + number * corpus.chunks)
    read = chunks[:READ]
    vectors = rows_of(corpus.vectors, read).astype(np.float64)
    return ListFacts(
        chunks=chunks,
        score=last.scores[order],
        first_score=_aligned(first, chunks),
        pool_score=_aligned(pool, chunks),
        base=candidates.base[rows],
        paths=paths.features[order, : len(PATHS)],
        covers=candidates.covered[rows, : len(question.words)],
        edge=edge,
        anchor=anchor,
        own=corpus.mentions.own[chunks],
        best=_of_best(paths.edge_features[:, : len(EDGE_FEATURES)], into),
        best_anchor=_of_best(paths.anchor_probability, into),
        best_edge=_of_best(paths.probability, into),
        cosine=(vectors @ candidates.vectors[number].astype(np.float64)).round(COSINE_DECIMALS),
        alike=(vectors @ vectors.T).round(COSINE_DECIMALS),
        reading=Reading.of(corpus, question, read, edge[: len(read), : len(read)], candidates.word_vectors[number]),
        places=np.arange(len(read)),
    )


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
