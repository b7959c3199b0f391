"""Scored candidates as hits, each with the contributions of its features and the best path into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hopbench.retrieval.hits import DETAILED, LazyHits
from hopbench.retrieval.index import Index
from hopbench.retrieval.strategies.base import KEEP
from hopbench.retrieval.strategies.hoprank.contributions import Scores, contributions_of
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.hops import Hops
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.paths import Passed, Paths
from hopbench.retrieval.strategies.hoprank.scoring import Judged
from hopbench.retrieval.strategies.hoprank.weights import Weights
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers
from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.types import Hit, Question, Ranking


@dataclass(frozen=True, eq=False)
class Found:
    """What was found for a question, of which its ranking is made: little more than arrays, which are quick to send.

    `scores` are the last pass's best, in the order of trees where these judged, `read` (chunks and features) what first
    and second trees saw; `led` (k,) says to which of the best an edge led, seeds aside, and `hops` lead to the first
    `DETAILED`. `seeds` are the anchors of the first pass: the best of the pool by words alone. `ids` are those of all
    chunks named here, by their rows; `entities` are the rows of the linked ones.
    """

    question: Question
    scores: Scores
    read: Sequence[tuple[Numbers, Floats]]
    led: Flags
    hops: Hops
    seeds: Numbers
    ids: Mapping[int, str]
    entities: Sequence[int]
    notes: Mapping[str, object]

    @classmethod
    def of(
        cls,
        question: Question,
        corpus: CorpusIndex,
        entities: Iterable[int],
        passed: Passed,
        index: Index,
        anchors: int,
        judged: Sequence[Judged],
    ) -> Found:
        """What the passes of a question found, which links `entities`, and trees of the best of the last pass."""
        pool, (last, paths) = passed[0][0], passed[-1]
        seeds = pool.chunks[np.argsort(-pool.scores, kind="stable")[: max(anchors, 1)]]
        scored = Scores.of(last, judged)
        best = np.lexsort((scored.chunks, -scored.values))[:KEEP]
        scores = replace(scored.only(best), judged=())  # the trees are many times as large as all else
        read = [(one.chunks, one.features) for one in judged]
        led = np.zeros(len(best), bool) if paths is None else paths.best[scored.rows[best]] != NOWHERE
        led &= ~(scores.chunks[:, None] == seeds).any(axis=1)
        paths_of = [each for _, each in passed if each is not None]
        hops = Hops.to(scores.chunks[:DETAILED], paths_of, corpus, seeds)
        # Ids that a fork reads in a list of all are pages that it then has of its own: Python counts references there.
        wanted = distinct(np.concatenate([scores.chunks, seeds, hops.ends[:, 0]]))
        ids = dict(zip(wanted.tolist(), index.some_ids(wanted), strict=True))
        notes = _notes(passed, paths_of, int(led.sum()))
        return cls(question, scores, read, led, hops, seeds, ids, list(entities), notes)

    def ranking(self, weights: Weights, names: Sequence[str]) -> Ranking:
        """The ranking of the question, whose trees are those of `weights`; `names` are those of all entities."""
        trees = weights.trees, weights.second_trees
        judged = [Judged(*read, by) for read, by in zip(self.read, trees, strict=False)]
        scores = replace(self.scores, judged=judged)
        paths, contributions = self.hops.steps(self.ids, names), contributions_of(scores)
        ids, seeds = ([self.ids[chunk] for chunk in chunks.tolist()] for chunks in (scores.chunks, self.seeds))
        best = list(zip(ids, scores.values.tolist(), strict=True))

        def hit(place: int) -> Hit:
            path = paths[place] if place < DETAILED else ()
            return Hit(*best[place], "graph" if self.led[place] else "seed", contributions(place), path)

        notes = {"entities": [names[entity] for entity in self.entities], **self.notes}
        hits = LazyHits.one_by_one(best, hit)
        return Ranking(self.question.id, hits, seeds, notes)


def _notes(passed: Passed, paths: Sequence[Paths], kept: int) -> dict[str, object]:
    """The ranking's notes: edges of all passes, chunks that they reach, and the pool's size."""
    return {
        "pool": len(passed[0][0].chunks),
        "found": sum(len(each.edges) for each in paths),
        "kept": kept,
        "unique": len(set().union(*(each.chunks[each.best != NOWHERE].tolist() for each in paths))),
    }
