"""Facts about the best candidates of the last pass side by side, from which the features of trees are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.chains import Chains
from hopbench.retrieval.strategies.hoprank.closeness import Closeness
from hopbench.retrieval.strategies.hoprank.edge_features import EDGE_FEATURES
from hopbench.retrieval.strategies.hoprank.edges import KINDS, TRIPLE
from hopbench.retrieval.strategies.hoprank.lookup import Lookup
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.pairs import PARTNERS, Pairs
from hopbench.retrieval.strategies.hoprank.paths import Paths, Ranked, best_in_cells, sigmoid
from hopbench.retrieval.strategies.hoprank.word_links import LinkingWords, WordLinks
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers

LISTED = 100  # candidates among which ranks and edges are counted
READ = 50  # of those, the best ones, which the first trees put in order
READ_AGAIN = 25  # of those in turn the best ones, which the second trees do
TOP = 4
_COLUMNS = (
    "chunks",
    "first_score",
    "pool_score",
    "base",
    "paths",
    "covers",
    "anchor",
    "best",
    "best_anchor",
    "best_edge",
)
PATHS = tuple(f"path_{name}" for name in (*KINDS[:TRIPLE], "any", "several"))


@dataclass(frozen=True, eq=False)
class ListFacts:
    """Facts about the k best candidates, best first, of which trees read the first r.

    `score` (k,) is what they are ordered by, `first_score` and `pool_score` (k,) are those of the first pass and of the
    pool.
    `base` (k, 12) and `paths` (k, 6) are features of the linear score, `covers` (k, w) the question's words in each.
    `edge` (k, k) is P(edge) of the best edge from the one to the other, `best` (k, 17) the features of the best edge
    into each, `best_anchor` and `best_edge` (k,) its P(anchor) and P(edge): 0 where there is none. `closeness` is that
    of those that are read, `linking` the words that may link them with others. `known` are features of these that
    others need as well, and `in_any_order` such as do not depend on the order.
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
    closeness: Closeness
    linking: LinkingWords
    known: dict[str, Floats] = field(default_factory=dict)
    in_any_order: dict[str, Floats] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """How many of them trees read, r."""
        return len(self.closeness.chunk)

    @cached_property
    def pairs(self) -> Pairs:
        """Each that is read with each of the very first."""
        candidates, read = self.candidates, self.read
        return Pairs.of(
            candidates.corpus, candidates.question, self.chunks[:read], self.closeness, self.edge[:read, :read]
        )

    @cached_property
    def word_links(self) -> WordLinks:
        """The links by words of each that is read with the very first."""
        return WordLinks.of(self.candidates.question, self.closeness, self.linking)

    @cached_property
    def chains(self) -> Chains:
        """Each that is read with pairs of the very first."""
        return Chains.of(self.candidates.question, self.closeness.chunk, self.word_links, self.partners_sure)

    @cached_property
    def sure(self) -> Floats:
        """σ(score − fifth best score) of each, (k,)."""
        return sigmoid(self.score - self.score[min(4, len(self.score) - 1)])

    @property
    def partners_sure(self) -> Floats:
        """The same of the first `PARTNERS`, (p,)."""
        return self.sure[:PARTNERS]

    def reordered(self, score: Floats, read: int) -> ListFacts:
        """The same candidates in the order of another score (k,), of which the first `read` were read before."""
        order = (-score).argsort(kind="stable")
        columns = {name: getattr(self, name)[order] for name in _COLUMNS}
        first = order[:read]
        return ListFacts(
            **columns,
            candidates=self.candidates,
            score=score[order],
            edge=self.edge[order[:, None], order],
            closeness=self.closeness.of_some(first),
            linking=self.linking.of_some(first, self.closeness.read.places(first)),
            in_any_order={name: values[first] for name, values in self.in_any_order.items()},
        )

    @cached_property
    def above(self) -> Flags:
        """Whether the column's candidate stands above the row's, (k, k)."""
        return np.tri(len(self.chunks), k=-1, dtype=bool)

    @property
    def top_above(self) -> Flags:
        """The same for rows that are read and columns of the first four, (r, TOP)."""
        return self.above[: self.read, :TOP]


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
    place = Lookup.of(chunks, np.arange(len(chunks)), otherwise=NOWHERE)
    source, target = place[paths.edges.anchor], place[paths.edges.target]
    inside = np.flatnonzero((source != NOWHERE) & (target != NOWHERE))
    edge = best_in_cells(source[inside], target[inside], paths.probability[inside], (len(chunks), len(chunks)))
    anchor = np.zeros(len(chunks), bool)
    anchor[source[source != NOWHERE]] = True
    rows = candidates.rows(chunks)
    closeness = Closeness.of(candidates.corpus, candidates.question, chunks[:READ])
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
        closeness=closeness,
        linking=LinkingWords.of(candidates.corpus, candidates.question, closeness),
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
