"""hoprank: learned path evidence on the rule-built graph, HopBench's own strategy."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.fitted import FittedOn, sets_of
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.search.fusion import DECIMALS, Scored
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex, corpus_index
from hopbench.retrieval.strategies.hoprank.paths import SCORE_FEATURES, Passed, Ranked, hops_to, of_each, steps_of
from hopbench.retrieval.strategies.hoprank.questions import Questions, read_question
from hopbench.retrieval.strategies.hoprank.tree_features import TREE_FEATURES, tree_lists
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.weights import Weights, load, passes
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.support.processes import one_blas_thread
from hopbench.retrieval.support.timing import done_once, stage
from hopbench.retrieval.types import DETAILED, Counters, Hit, LazyHits, Question, Ranking

SHARE_DECIMALS = 12  # a hundred of them add up to the score within 1e-9, which has DECIMALS itself
MEAN = "mean_of_trees"
UNREAD = "not_read_by_trees"
GAP = 1e-6
MODELS = ("trees", "linear")
QUESTION_BATCH = 32  # questions side by side: some MB of facts
MAX_BATCHED_LENGTH = 1000  # characters; a longer question is ranked alone: side by side all cost as much as the longest


@dataclass(frozen=True, eq=False)
class Scores:
    """`values` (k,) of `chunks` (k,), best first, which are these `rows` (k,) of the `last` pass.

    The value is the linear score, plus what `trees` say of the chunks that they `read`, and `lowered` for the others:
    none of these passes one that was read. `place` (k,) says the row of each chunk among the trees' `features` (r, f).
    """

    chunks: Numbers
    values: Floats
    rows: Numbers
    last: Ranked
    trees: Trees
    features: Floats
    place: Numbers
    lowered: float
    _blocks: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def of(
        cls, last: Ranked, trees: Trees, read: tuple[Numbers, Floats] | None = None, limit: int | None = None
    ) -> Scores:
        """Score the last pass, with what trees say of the chunks `read` (r,) and their features (r, f)."""
        values, lowered, place = last.scores.copy(), 0.0, np.full(len(last.chunks), NOWHERE)
        chunks, features = read or (np.zeros(0, np.int64), np.zeros((0, 0)))
        if len(chunks):
            rows = last.chunks.searchsorted(chunks)
            place[rows] = np.arange(len(rows))
            values[rows] += trees.value(features)
            others = place == NOWHERE
            lowered = min(0.0, float(values[rows].min()) - float(values[others].max(initial=-np.inf)) - GAP)
            values[others] += lowered
        values = values.round(DECIMALS)
        order = np.lexsort((last.chunks, -values))[:limit]
        return cls(last.chunks[order], values[order], order, last, trees, features, place[order], lowered)

    @cached_property
    def names(self) -> dict[str, int]:
        """The columns of contributions by name: features of the linear score, then those that only trees see."""
        more = (*TREE_FEATURES, MEAN, UNREAD) if len(self.features) else ()
        names = (*SCORE_FEATURES[: self.last.features.shape[1]], *more)
        return {name: column for column, name in enumerate(dict.fromkeys(names))}

    def contributions(self, place: int) -> Floats:
        """Compute each feature's contribution to the value at a rank: feature × weight, and Shapley values."""
        number, within = divmod(place, DETAILED)
        if number not in self._blocks:
            block = slice(number * DETAILED, (number + 1) * DETAILED)
            linear = self.last.features[self.rows[block]] * self.last.weights
            total = np.zeros((len(linear), len(self.names)))
            total[:, : linear.shape[1]] = linear
            if len(self.features):
                places = self.place[block]
                (read,) = np.nonzero(places != NOWHERE)
                shares, mean = self.trees.contributions(self.features[places[read]])
                total[read[:, None], [self.names[name] for name in TREE_FEATURES]] += shares
                total[read, self.names[MEAN]] = mean
                total[places == NOWHERE, self.names[UNREAD]] = self.lowered
            self._blocks[number] = total.round(SHARE_DECIMALS)
        return np.asarray(self._blocks[number][within])


class Contributions(Mapping[str, float]):
    """Each feature's contribution to the score of the hit at a rank, by name; computed on access: few are read."""

    def __init__(self, scores: Scores, place: int) -> None:
        self._scores, self._place = scores, place

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores.names)

    def __len__(self) -> int:
        return len(self._scores.names)

    def items(self) -> ItemsView[str, float]:
        """Return names with values, without looking up each."""
        return self._values.items()

    @cached_property
    def _values(self) -> dict[str, float]:
        return dict(zip(self._scores.names, self._scores.contributions(self._place).tolist(), strict=True))

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True, kw_only=True)
class HopRank(Strategy):
    """Scores chunks by their words and by the best paths into them, with learned weights."""

    name: ClassVar[str] = "hoprank"
    summary: ClassVar[str] = "learned evidence of a chunk's words and of the paths into it"
    edges: ClassVar[tuple[str, ...]] = (MENTIONED_IN, RELATED_TO)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        MENTIONED_IN: {"anchors": 0},
        RELATED_TO: {"triples": False},
    }

    kind: ClassVar[str] = "learned"
    fitted_fields: ClassVar[tuple[str, ...]] = ("weights",)
    contributions: ClassVar[bool] = True

    weights: str = param("", "file of learned weights (`hopbench train hoprank`); empty: the shipped ones")
    model: str = param("trees", "what orders the best: trees on top of the linear score, or that alone", choices=MODELS)
    depth: int = param(50, "chunks of BM25, and as many by cosine, in the pool", 1, 100)
    walked: int = param(40, "chunks of a short PageRank walk in the pool", 0, 100)
    anchors: int = param(8, "best chunks whose edges are followed, in each pass", 0, 20)
    triples: bool = param(True, "follow relations that triples state; those that rules guess are not")

    @cached_property
    @done_once()
    def learned(self) -> Weights:
        """The weights, read once: a strategy ranks all its questions by the same ones even if the file changes."""
        return load(self.weights)

    def identity(self) -> dict[str, Any]:
        """Return the parameters and a digest of the weights."""
        return {**self.spec(), "weights": self.learned.digest}

    def fitted_on(self) -> Sequence[FittedOn]:
        """Return the sets from which its weights were learned."""
        return sets_of(self.learned.provenance.get("learned_from", {}))

    def coefficients(self) -> Mapping[str, float]:
        """Return the weights of the last pass, or of the pool's score without anchors; none where trees decide."""
        learned = self.learned
        if self.model == "trees" and self.anchors and learned.trees.trees:
            return {}
        last = learned.passes[-1] if self.anchors else learned.first
        return dict(zip(SCORE_FEATURES, last.tolist(), strict=False))

    def initial(self, batch: Batch) -> list[Scored]:
        """Rank by RRF of vector and BM25."""
        return hybrid_rankings(batch, fusion="rrf")

    def candidates(self, batch: Batch, counters: Counters) -> Iterator[Candidates]:
        """Yield each question's pool with its base features."""
        corpus, reader = corpus_index(batch, counters)
        return (self.pools(batch, corpus, reader, [index]) for index in range(len(batch.questions)))

    def pools(self, batch: Batch, corpus: CorpusIndex, reader: Linker, indices: Sequence[int]) -> Candidates:
        """Collect the pools of some of a batch's questions side by side."""
        if not self.triples:
            corpus = replace(corpus, relations=None)
        read = partial(read_question, corpus=corpus, row_of=batch.index.row_of, reader=reader)
        texts = [batch.questions[index].text for index in indices]
        questions = Questions([*map(read, texts, batch.links(reader, indices))])
        return Candidates(corpus, questions, batch, indices, self.depth, self.walked)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Score the candidates of each question; hits carry the paths of the last pass."""
        _ = batch.dense, batch.lexical  # the large products; those below have some hundred rows
        corpus, reader = corpus_index(batch, counters)
        with one_blas_thread():
            parts = batches_of([len(question.text) > MAX_BATCHED_LENGTH for question in batch.questions])
            return [one for part in parts for one in self._rank(batch, corpus, reader, part, counters)]

    def _rank(
        self, batch: Batch, corpus: CorpusIndex, reader: Linker, indices: Sequence[int], counters: Counters
    ) -> Iterator[Ranking]:
        with stage(counters, "pool"):
            candidates = self.pools(batch, corpus, reader, indices)
        with stage(counters, "passes"):
            together = list(passes(candidates, self.learned, self.anchors))
            passed = of_each(candidates, together)
        counters.observed["chunks in the pool"] += len(candidates.pool)
        counters.edges_touched += candidates.touched + sum(len(paths.edges) for _, paths in together if paths)
        with stage(counters, "trees"):
            by_trees = self.model == "trees" and self.anchors and self.learned.trees.trees
            read = tree_lists(candidates, passed) if by_trees else {}
        with stage(counters, "ranking"):
            trees = self.learned.trees
            scores = [Scores.of(one[-1][0], trees, read.get(number), KEEP) for number, one in enumerate(passed)]
            for index, one, scored, question in zip(indices, passed, scores, candidates.questions, strict=True):
                yield self._ranking(batch, batch.questions[index], corpus, one, scored, question.entities)

    def _ranking(
        self,
        batch: Batch,
        question: Question,
        corpus: CorpusIndex,
        passed: Passed,
        scores: Scores,
        entities: Mapping[int, float],
    ) -> Ranking:
        """Make a question's ranking; its seeds are the anchors of the first pass, the best of the pool by words."""
        pool, paths = passed[0][0], passed[-1][1]
        seeds = pool.chunks[np.argsort(-pool.scores, kind="stable")[: max(self.anchors, 1)]]
        chunks, names = scores.chunks, corpus.graph.entities
        led = np.zeros(len(chunks), bool) if paths is None else paths.best[scores.rows] != NOWHERE
        led &= ~(chunks[:, None] == seeds).any(axis=1)
        followed = [each for _, each in passed if each is not None]
        ends, values, ways = hops_to(chunks[:DETAILED], followed, corpus, seeds)
        named = distinct(np.concatenate([chunks, seeds, ends[:, 0]]))
        id_of = dict(zip(named.tolist(), batch.index.some_ids(named), strict=True))
        hops = [list(steps_of(id_of, names, *row)) for row in zip(ends.tolist(), values.tolist(), strict=True)]
        scored = [(id_of[chunk], value) for chunk, value in zip(chunks.tolist(), scores.values.tolist(), strict=True)]

        def hit(place: int) -> Hit:
            path = tuple(step for hop in ways[place] for step in hops[hop]) if place < DETAILED else ()
            return Hit(*scored[place], "graph" if led[place] else "seed", Contributions(scores, place), path)

        notes = {
            "entities": [names[entity] for entity in entities],
            "pool": len(pool.chunks),
            "found": sum(len(each.edges) for each in followed),
            "kept": int(led.sum()),
            "unique": len(set().union(*(each.chunks[each.best != NOWHERE].tolist() for each in followed))),
        }
        seed_ids = [id_of[chunk] for chunk in seeds.tolist()]
        return Ranking(question.id, LazyHits.one_by_one(scored, hit), seed_ids, notes)


def batches_of(long: Sequence[bool]) -> Iterator[Sequence[int]]:
    """Batch the questions to be ranked side by side: up to `QUESTION_BATCH` at once, each long one alone."""
    for begin in range(0, len(long), QUESTION_BATCH):
        indices = range(begin, min(begin + QUESTION_BATCH, len(long)))
        for alone, some in groupby(indices, key=long.__getitem__):
            part = list(some)
            yield from ([index] for index in part) if alone else [part]
