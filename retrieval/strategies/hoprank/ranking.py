"""Scored candidates as hits, each with the contributions of its features and the best path into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Index
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.base import KEEP
from hopbench.retrieval.strategies.hoprank.contributions import Contributions, Scores
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.edges import TRIPLE
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.paths import Paths
from hopbench.retrieval.strategies.hoprank.scoring import Judged, Passed
from hopbench.retrieval.strategies.hoprank.triple_edges import near_entities
from hopbench.retrieval.strategies.hoprank.weights import Weights
from hopbench.retrieval.strategies.hoprank.words import Flags, Floats, Numbers, distinct
from hopbench.retrieval.types import Hit, Question, Ranking, Step

EXPLAINED = 20
SCALE = 10.0**DECIMALS


@dataclass(frozen=True, eq=False)
class Found:
    """What was found for a question, of which its ranking is made: little more than arrays, which are quick to send.

    `scores` are the last pass's best, in the order of trees where these judged, `read` (chunks and features) what first
    and second trees saw; `ids` are the chunks', `led` (k,) says which an edge led to, seeds aside, and `paths` are
    those of the first `EXPLAINED`. `seeds` are the anchors of the first pass: the best of the pool by words alone.
    """

    question: Question
    scores: Scores
    read: Sequence[tuple[Numbers, Floats]]
    ids: Sequence[str]
    led: Flags
    paths: Sequence[tuple[Step, ...]]
    seeds: Sequence[str]
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
        # Ids that a fork reads in a list of all are pages that it then has of its own: Python counts references there.
        wanted = distinct(np.concatenate([scores.chunks, seeds, *(each.edges.anchors[0] for each in paths_of)]))
        ids = dict(zip(wanted.tolist(), index.some_ids(wanted), strict=True))
        finder = _PathFinder(corpus, paths_of, ids, seeds.tolist())
        steps = [finder.steps_to(chunk) for chunk in scores.chunks[:EXPLAINED].tolist()]
        names = [corpus.graph.entities[entity] for entity in entities]
        best_ids, seed_ids = ([ids[chunk] for chunk in chunks.tolist()] for chunks in (scores.chunks, seeds))
        return cls(question, scores, read, best_ids, led, steps, seed_ids, _notes(names, passed, int(led.sum())))

    def ranking(self, weights: Weights) -> Ranking:
        """The ranking of the question, whose trees are those of `weights`."""
        trees = weights.trees, weights.second_trees
        judged = [Judged(*read, by) for read, by in zip(self.read, trees, strict=False)]
        scores = replace(self.scores, judged=judged)
        paths = [*self.paths, *[()] * (len(self.led) - len(self.paths))]
        values = self.ids, scores.values.tolist(), self.led.tolist()
        hits = [
            Hit(chunk, score, "graph" if led else "seed", components, path)
            for chunk, score, led, components, path in zip(*values, Contributions.of(scores), paths, strict=True)
        ]
        return Ranking(self.question.id, hits, self.seeds, self.notes)


def _notes(entities: Sequence[str], passed: Passed, kept: int) -> dict[str, object]:
    """The ranking's notes: linked entities, edges of all passes, chunks that they reach, and the pool's size."""
    paths = [each for _, each in passed if each is not None]
    return {
        "entities": entities,
        "pool": len(passed[0][0].chunks),
        "found": sum(len(each.edges) for each in paths),
        "kept": kept,
        "unique": len(set().union(*(each.chunks[each.best != NOWHERE].tolist() for each in paths))),
    }


class _PathFinder:
    """Finds the best path into a chunk, across passes back to a seed."""

    def __init__(
        self, corpus: CorpusIndex, paths: Sequence[Paths], ids: Mapping[int, str], seeds: Sequence[int]
    ) -> None:
        """`paths` are those of each pass, `ids` those of the chunks that are asked for and of all anchors."""
        self._seen, self._paths, self._ids, self._seeds = corpus, paths, ids, seeds
        self._known: dict[tuple[int, int | None], tuple[Step, ...]] = {}
        self._weights: dict[tuple[int, int], float] = {}

    def steps_to(self, chunk: int, before: int | None = None) -> tuple[Step, ...]:
        """The steps of the best path of the last pass (of the pass `before`) into a chunk; none without an edge."""
        key = chunk, before  # a few anchors lead to all hits
        if key not in self._known:
            self._known[key] = self._found(chunk, before)
        return self._known[key]

    def _found(self, chunk: int, before: int | None) -> tuple[Step, ...]:
        paths = self._paths[:before]
        if not paths:
            return ()
        edge = _best_edge(paths[-1], chunk)
        if edge == NOWHERE:
            return ()
        anchor = int(paths[-1].edges.anchor[edge])
        earlier = () if anchor in self._seeds else self.steps_to(anchor, len(paths) - 1)
        if self._ids[chunk] in (step.source for step in earlier):
            earlier = ()  # a way back and forth explains nothing
        return (*earlier, *self._steps(anchor, chunk, paths[-1], edge))

    def _weight(self, entity: int, chunk: int) -> float:
        key = entity, chunk
        if key not in self._weights:
            self._weights[key] = _rounded(self._seen.graph.mention_weight(*key))
        return self._weights[key]

    def _steps(self, anchor: int, chunk: int, paths: Paths, edge: int) -> tuple[Step, ...]:
        """Anchor to entity to chunk; over a triple, from its near end to the far one between."""
        ids, names, edges = self._ids, self._seen.graph.entities, paths.edges
        near = far = int(edges.entity[edge])
        probability, value = (_rounded(float(x[edge])) for x in (paths.anchor_probability, paths.value))
        between: tuple[Step, ...] = ()
        if self._seen.relations is not None and edges.kind[edge] == TRIPLE:
            (near,) = near_entities(edges.where(np.array([edge])), self._seen.mentions).tolist()
            strength = _rounded(float(self._seen.relations.strength[edges.relation[edge]]))
            between = (Step(RELATED_TO, names[near], names[far], strength, probability),)
        return (
            Step(MENTIONED_IN, ids[anchor], names[near], self._weight(near, anchor), probability),
            *between,
            Step(MENTIONED_IN, names[far], ids[chunk], self._weight(far, chunk), value),
        )


def _rounded(value: float) -> float:
    """The value to `DECIMALS`, as NumPy rounds: in a tenth of the time of Python's `round`, which looks at digits."""
    return round(value * SCALE) / SCALE


def _best_edge(paths: Paths, chunk: int) -> int:
    row = int(paths.chunks.searchsorted(chunk))
    return int(paths.best[row]) if row < len(paths.chunks) and paths.chunks[row] == chunk else NOWHERE
