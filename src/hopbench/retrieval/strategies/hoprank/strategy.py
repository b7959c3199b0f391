"""hoprank: learned path evidence on the rule-built graph, HopBench's own strategy."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.fitted import FittedOn, sets_of
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Index, Linker
from hopbench.retrieval.search.fusion import DECIMALS, Scored
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.strategies.hoprank.candidates import Candidates, candidate_pool
from hopbench.retrieval.strategies.hoprank.corpus import NOWHERE, CorpusIndex, corpus_index
from hopbench.retrieval.strategies.hoprank.paths import Hops, Passed, Paths, Ranked
from hopbench.retrieval.strategies.hoprank.questions import Questions, read_question
from hopbench.retrieval.strategies.hoprank.scoring import (
    Judged,
    Weights,
    judged,
    judged_scores,
    load,
    of_each,
    passes,
    score_names,
)
from hopbench.retrieval.strategies.hoprank.words import Floats, Lookup, Numbers
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.support.processes import one_blas_thread
from hopbench.retrieval.support.timing import done_once, stage
from hopbench.retrieval.types import DETAILED, Counters, Hit, LazyHits, Question, Ranking

SHARE_DECIMALS = 12  # a hundred of them add up to the score within 1e-9, which has DECIMALS itself
MEAN = "mean_of_trees"
UNREAD = "not_read_by_trees"


@dataclass(frozen=True, eq=False)
class Scores:
    """`values` (k,) of chunks (k,), which are these `rows` (k,) of the last pass.

    The value is the linear score. To that of the chunks that trees judged, which come first, what they say is added,
    and `lowered` to that of the others: so none of them passes one that the first trees judged.
    """

    chunks: Numbers
    rows: Numbers
    values: Floats
    last: Ranked
    judged: Sequence[Judged] = ()
    lowered: float = 0.0

    @classmethod
    def of(cls, last: Ranked, judged: Sequence[Judged]) -> Scores:
        """Compute the scores of the last pass, with the trees' values where they judged."""
        if not judged:
            rows = np.arange(len(last.chunks))
            return cls(last.chunks, rows, last.scores.round(DECIMALS), last)
        first, *more = judged
        rows = last.chunks.searchsorted(first.chunks)
        added = np.zeros(len(last.chunks))
        added[rows] = first.value
        for one in more:
            added[last.chunks.searchsorted(one.chunks)] += one.value
        values, lowered = judged_scores(last.scores, rows, added[rows])
        rows = np.concatenate([rows, np.delete(np.arange(len(values)), rows)])
        return cls(last.chunks[rows], rows, values[rows].round(DECIMALS), last, judged, lowered)

    def only(self, best: Numbers) -> Scores:
        """Select some chunks in their order."""
        chunks, rows = self.chunks[best], self.rows[best]
        last = Ranked(chunks, self.last.features.take(rows, axis=0), self.last.weights)
        return replace(self, chunks=chunks, rows=np.arange(len(best)), values=self.values[best], last=last)

    @cached_property
    def names(self) -> dict[str, int]:
        """The columns of `shares` by name: features of the linear score, then those that only trees see."""
        names = score_names()[: self.last.features.shape[1]]
        more = (*self.judged[0].trees.names, MEAN, UNREAD) if self.judged else ()
        return {name: column for column, name in enumerate(dict.fromkeys((*names, *more)))}

    def shares(self, rows: Numbers) -> Floats:
        """Compute each feature's contribution to some values, (r, f): feature × weight, and Shapley values."""
        linear = self.last.features[self.rows[rows]] * self.last.weights
        total = np.zeros((len(rows), len(self.names)))
        total[:, : linear.shape[1]] = linear
        for one in self.judged:
            self._add(total, self.chunks[rows], one)
        return total.round(SHARE_DECIMALS)

    def _add(self, total: Floats, chunks: Numbers, judged: Judged) -> None:
        """Add the trees' Shapley values to the contributions (r, f) of the chunks (r,) that they judged."""
        place = Lookup.of(judged.chunks, np.arange(len(judged.chunks)), otherwise=NOWHERE)[chunks]
        (read,) = np.nonzero(place != NOWHERE)
        if judged is self.judged[0]:
            total[place == NOWHERE, self.names[UNREAD]] = self.lowered
        columns = np.array([self.names[name] for name in judged.trees.names])
        shares, mean = judged.trees.contributions(judged.features[place[read]])
        total[read[:, None], columns] += shares
        total[read, self.names[MEAN]] += mean


class Contributions(Mapping[str, float]):
    """Each feature's contribution to a hit's score, by name; computed on access for a block of hits: few are read."""

    def __init__(self, blocks: _Blocks, place: int) -> None:
        self._blocks, self._place = blocks, place

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks.names)

    def __len__(self) -> int:
        return len(self._blocks.names)

    def items(self) -> ItemsView[str, float]:
        """Return names with values, without looking up each."""
        return self._values.items()

    @cached_property
    def _values(self) -> dict[str, float]:
        return dict(zip(self._blocks.names, self._blocks.row(self._place).tolist(), strict=True))

    def __repr__(self) -> str:
        return repr(self._values)


class _Blocks:
    """The contributions to all hits of a ranking, a block of them at a time."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores
        self._known: dict[int, Floats] = {}

    @property
    def names(self) -> Mapping[str, int]:
        """The columns of a row by name."""
        return self._scores.names

    def row(self, place: int) -> Floats:
        """Return the contributions to the hit at a rank."""
        block = place // DETAILED
        if block not in self._known:
            last = min((block + 1) * DETAILED, len(self._scores.values))
            self._known[block] = self._scores.shares(np.arange(block * DETAILED, last))
        return np.asarray(self._known[block][place % DETAILED])


def contributions_of(scores: Scores) -> Callable[[int], Contributions]:
    """Return a function from a hit's rank to its contributions."""
    return partial(Contributions, _Blocks(scores))


def ranking_of(
    question: Question,
    corpus: CorpusIndex,
    entities: Iterable[int],
    passed: Passed,
    index: Index,
    anchors: int,
    judged: Sequence[Judged],
) -> Ranking:
    """Make the ranking of a question that links `entities`, from its passes and its judged candidates.

    Its seeds are the anchors of the first pass: the best of the pool by words alone.
    """
    pool, (last, paths) = passed[0][0], passed[-1]
    seeds = pool.chunks[np.argsort(-pool.scores, kind="stable")[: max(anchors, 1)]]
    scored = Scores.of(last, judged)
    best = np.lexsort((scored.chunks, -scored.values))[:KEEP]
    scores = scored.only(best)
    led = np.zeros(len(best), bool) if paths is None else paths.best[scored.rows[best]] != NOWHERE
    led &= ~(scores.chunks[:, None] == seeds).any(axis=1)
    followed = [each for _, each in passed if each is not None]
    hops = Hops.to(scores.chunks[:DETAILED], followed, corpus, seeds)
    named = distinct(np.concatenate([scores.chunks, seeds, hops.ends[:, 0]]))
    id_of = dict(zip(named.tolist(), index.some_ids(named), strict=True))
    names = corpus.graph.entities
    steps, contributions = hops.steps(id_of, names), contributions_of(scores)
    scored_ids = [
        (id_of[chunk], score) for chunk, score in zip(scores.chunks.tolist(), scores.values.tolist(), strict=True)
    ]

    def hit(place: int) -> Hit:
        path = steps[place] if place < DETAILED else ()
        return Hit(*scored_ids[place], "graph" if led[place] else "seed", contributions(place), path)

    notes = {"entities": [names[entity] for entity in entities], **_notes(passed, followed, int(led.sum()))}
    return Ranking(question.id, LazyHits.one_by_one(scored_ids, hit), [id_of[chunk] for chunk in seeds.tolist()], notes)


def _notes(passed: Passed, paths: Sequence[Paths], kept: int) -> dict[str, object]:
    """Summarise a ranking: edges of all passes, chunks that they reach, and the pool's size."""
    return {
        "pool": len(passed[0][0].chunks),
        "found": sum(len(each.edges) for each in paths),
        "kept": kept,
        "unique": len(set().union(*(each.chunks[each.best != NOWHERE].tolist() for each in paths))),
    }


MODELS = ("trees", "linear")
QUESTION_BATCH = 32  # questions side by side: some MB of facts
MAX_BATCHED_LENGTH = 1000  # characters; a longer question is ranked alone: side by side all cost as much as the longest


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
        return dict(zip(score_names(), last.tolist(), strict=False))

    def initial(self, batch: Batch) -> list[Scored]:
        """Rank by RRF of vector and BM25."""
        return hybrid_rankings(batch, fusion="rrf")

    def candidates(self, batch: Batch, counters: Counters) -> Iterator[Candidates]:
        """Yield each question's pool with its base features."""
        corpus, reader = corpus_index(batch, counters)
        return (self._pools(batch, corpus, reader, [number]) for number in range(len(batch.questions)))

    def _pools(self, batch: Batch, corpus: CorpusIndex, reader: Linker, numbers: Sequence[int]) -> Candidates:
        """Collect the pools of some of a batch's questions side by side."""
        if not self.triples:
            corpus = replace(corpus, relations=None)
        read = partial(read_question, corpus=corpus, row_of=batch.index.row_of, reader=reader)
        texts = [batch.questions[number].text for number in numbers]
        asked = Questions([*map(read, texts, batch.links(reader, numbers))])
        pool = candidate_pool(corpus, asked, batch, numbers, depth=self.depth, walked=self.walked)
        return Candidates(corpus, asked, batch.vectors[np.array(numbers)], pool)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Score the candidates of each question; hits carry the paths of the last pass."""
        _ = batch.dense, batch.lexical  # the large products; those below have some hundred rows
        corpus, reader = corpus_index(batch, counters)
        with one_blas_thread():
            parts = _parts([len(question.text) > MAX_BATCHED_LENGTH for question in batch.questions])
            return [one for part in parts for one in self._rank(batch, corpus, reader, part, counters)]

    def _rank(
        self, batch: Batch, corpus: CorpusIndex, reader: Linker, numbers: Sequence[int], counters: Counters
    ) -> list[Ranking]:
        """Rank some of a batch's questions side by side."""
        with stage(counters, "pool"):
            candidates = self._pools(batch, corpus, reader, numbers)
        with stage(counters, "passes"):
            several = list(passes(candidates, self.learned, self.anchors))
            passed = of_each(candidates, several)
        counters.observed["chunks in the pool"] += len(candidates.pool.chunks)
        counters.edges_touched += candidates.pool.touched + sum(len(paths.edges) for _, paths in several if paths)
        with stage(counters, "trees"):
            by_trees = judged(candidates, passed, self.learned) if self.model == "trees" else [[] for _ in passed]
        with stage(counters, "ranking"):
            return [
                ranking_of(batch.questions[number], corpus, question.entities, one, batch.index, self.anchors, trees)
                for number, question, one, trees in zip(numbers, candidates.questions, passed, by_trees, strict=True)
            ]


def _parts(long: Sequence[bool]) -> Iterator[Sequence[int]]:
    """Number the questions to be ranked side by side: up to `QUESTION_BATCH` at once, each long one alone."""
    for begin in range(0, len(long), QUESTION_BATCH):
        numbers = range(begin, min(begin + QUESTION_BATCH, len(long)))
        for alone, some in groupby(numbers, key=long.__getitem__):
            part = list(some)
            yield from ([number] for number in part) if alone else [part]
