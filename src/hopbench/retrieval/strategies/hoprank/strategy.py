"""hoprank: learned path evidence on the rule-built graph, HopBench's own strategy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.fitted import FittedOn, sets_of
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex, corpus_index
from hopbench.retrieval.strategies.hoprank.pool import candidate_pool
from hopbench.retrieval.strategies.hoprank.question import read_question
from hopbench.retrieval.strategies.hoprank.questions import Questions
from hopbench.retrieval.strategies.hoprank.ranking import Found
from hopbench.retrieval.strategies.hoprank.scoring import judged, of_each, passes
from hopbench.retrieval.strategies.hoprank.weights import Weights, load, score_names
from hopbench.retrieval.strategies.hoprank.word_vectors import word_vectors
from hopbench.retrieval.support.blas import one_blas_thread
from hopbench.retrieval.support.divided import divided
from hopbench.retrieval.support.timing import done_once, stage
from hopbench.retrieval.types import Counters, Ranking

MODELS = ("trees", "linear")
TOGETHER = 32  # questions side by side: some MB of facts
LONG = 1000  # characters of a question that is ranked by itself: side by side all take as much as the longest
FEW = 8  # side by side in the last parts that several processes take
LEAST = 32  # questions for each process that divides them: a fork takes as long as some ten


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
        """The weights; one strategy ranks all its questions by the same, whatever becomes of their file."""
        return load(self.weights)

    def identity(self) -> dict[str, Any]:
        """The parameters, and a digest of the weights."""
        return {**self.spec(), "weights": self.learned.digest}

    def fitted_on(self) -> Sequence[FittedOn]:
        """The sets from which its weights were learned."""
        return sets_of(self.learned.provenance.get("learned_from", {}))

    def coefficients(self) -> Mapping[str, float]:
        """The weights of the last pass; of the pool's score where no edge is followed. None where trees decide."""
        learned = self.learned
        if self.model == "trees" and self.anchors and learned.trees.trees:
            return {}
        last = learned.passes[-1] if self.anchors else learned.first
        return dict(zip(score_names(), last.tolist(), strict=False))

    def initial(self, batch: Batch) -> list[Scored]:
        """The RRF ranking of vector and BM25."""
        return hybrid_rankings(batch, fusion="rrf")

    def candidates(self, batch: Batch, counters: Counters) -> Iterator[Candidates]:
        """Each question's pool with its base features."""
        corpus, reader = corpus_index(batch, counters)
        return (self._pools(batch, corpus, reader, [number]) for number in range(len(batch.questions)))

    def _pools(self, batch: Batch, corpus: CorpusIndex, reader: Linker, numbers: Sequence[int]) -> Candidates:
        """The pools of some of a batch's questions side by side."""
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
        find, numbers = partial(self._found, batch, corpus, reader, os.getpid()), range(len(batch.questions))
        processes = max(min(batch.processes, len(numbers) // LEAST), 1)
        long = [len(question.text) > LONG for question in batch.questions]
        parts = [apart for part in _parts(numbers, processes) for apart in _apart(part, long)]
        rankings: dict[int, list[Ranking]] = {}
        if processes > 1:
            self._make_once(corpus)
        with one_blas_thread(), closing(divided(find, parts, processes)) as found_of_parts:
            for part, (found, spent) in found_of_parts:
                counters.add(spent)
                with stage(counters, "ranking"):
                    rankings[part] = [one.ranking(self.learned, corpus.graph.entities) for one in found]
        return [one for part in sorted(rankings) for one in rankings[part]]

    @done_once()
    def _make_once(self, corpus: CorpusIndex) -> None:
        """Make what all questions share, before there are forks: these have it then, and no question waits for it."""
        _ = self.learned, corpus.texts.word_weights, word_vectors(["any"])

    def _found(
        self, batch: Batch, corpus: CorpusIndex, reader: Linker, here: int, numbers: Sequence[int]
    ) -> tuple[list[Found], Counters]:
        """What is found for some of a batch's questions side by side, and what that took; `here` divides the batch."""
        counters = Counters()
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
            found = [
                Found.of(batch.questions[number], corpus, question.entities, one, batch.index, self.anchors, trees)
                for number, question, one, trees in zip(numbers, candidates.questions, passed, by_trees, strict=True)
            ]
        if os.getpid() != here:
            counters.stage_seconds.clear()  # they pass beside those of that process
        return found, counters


def _apart(numbers: Sequence[int], long: Sequence[bool]) -> Iterator[Sequence[int]]:
    """Long questions one by one, and those between them side by side."""
    for alone, some in groupby(numbers, key=long.__getitem__):
        part = list(some)
        yield from ([number] for number in part) if alone else [part]


def _parts(numbers: Sequence[int], processes: int) -> Iterator[Sequence[int]]:
    """Questions to be ranked side by side: fewer towards the end where several processes take them in turn.

    So these end at about the same time (guided self-scheduling: Polychronopoulos and Kuck, 1987).
    """
    while numbers:
        size = min(max(len(numbers) // (2 * processes), FEW), TOGETHER) if processes > 1 else TOGETHER
        yield numbers[:size]
        numbers = numbers[size:]
