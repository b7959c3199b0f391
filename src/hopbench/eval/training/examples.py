"""Questions with gold passages as hoprank's training sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.paths import EdgeTable
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Counters


@dataclass(frozen=True, eq=False)
class TrainingExample:
    """A training question and its candidates before anything is learned; `gold` holds its gold passages' chunks.

    `evidence` are checksums of the gold passages' titles and texts: other data sets have some of them under other ids.
    """

    dataset: str
    embedder: str
    question: BenchmarkQuestion
    passages: Sequence[str]
    titles: Mapping[str, str]
    candidates: Candidates
    gold: NDArray[np.int64]
    evidence: Sequence[bytes]
    reached: EdgeTable = field(init=False)

    @cached_property
    def linked(self) -> set[str]:
        """The gold passages to which an edge leads from another one."""
        edges, _ = self.reached.leaving(self.gold)
        pairs = zip(edges.anchor.tolist(), edges.target.tolist(), strict=True)
        found = {self.passages[to] for anchor, to in pairs if self.passages[to] != self.passages[anchor]}
        return found.intersection(self.question.gold)

    @property
    def triples(self) -> bool:
        """Whether the graph has relations that triples state."""
        return self.candidates.corpus.relations is not None

    def __post_init__(self) -> None:
        """Read edges and their features once: every fold needs them again.

        Those that leave gold come first, so that no fit's edges are in an order that fits before it decided.
        """
        object.__setattr__(self, "reached", EdgeTable(self.candidates))
        self.reached.leaving(self.gold)


def training_examples(benchmark: Benchmark, index: Index, strategy: HopRank) -> Iterator[TrainingExample]:
    """Yield the questions of a benchmark that have gold; InputError where none has."""
    rows_of: dict[str, list[int]] = {}
    for row, chunk in enumerate(index.chunks):
        rows_of.setdefault(chunk.passage_id, []).append(row)
    questions = [question for question in benchmark.questions if not rows_of.keys().isdisjoint(question.gold)]
    if not questions:
        raise InputError(f"{benchmark.name} has no question with gold passages: nothing to learn from")
    passages = [chunk.passage_id for chunk in index.chunks]
    titles = {chunk.passage_id: chunk.title for chunk in index.chunks}
    batch = Batch(index, [question.question for question in questions])
    for question, candidates in zip(questions, strategy.candidates(batch, Counters()), strict=True):
        parts = [rows_of[passage] for passage in question.gold if passage in rows_of]
        gold = np.array(sorted(row for rows in parts for row in rows), np.int64)
        texts = ["\n".join(index.chunks[row].content for row in rows) for rows in parts]
        evidence = [sha256(text.encode(errors="surrogatepass")).digest() for text in texts]
        yield TrainingExample(
            benchmark.name, index.embedder.name, question, passages, titles, candidates, gold, evidence
        )


def parts_of(group: Sequence[TrainingExample], parts: int, seed: int) -> list[int]:
    """Draw the part of each example by question: a question is in one part under every embedder."""
    ids = [(example.dataset, example.question.id) for example in group]
    keys = sorted(set(ids))
    shuffled = np.random.default_rng(seed).permutation(len(keys))
    part_of = {key: int(place) % parts for key, place in zip(keys, shuffled, strict=True)}
    return [part_of[key] for key in ids]


def balance(group: Sequence[TrainingExample]) -> NDArray[np.float64]:
    """Weigh examples so that data sets weigh the same, whatever their size."""
    sizes = Counter(example.dataset for example in group)
    return np.array([1.0 / sizes[example.dataset] for example in group])
