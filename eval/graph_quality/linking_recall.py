"""Linking recall: in how many questions an entity of the gold path is recognised without a language model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.entities import question_entities
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.text import split_qualifier
from hopbench.retrieval.types import Counters


@dataclass(frozen=True)
class LinkingRecall:
    """Of `questions` with gold, `recognised` have an entity of the gold path linked; `missed` are the others' ids."""

    questions: int
    recognised: int
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """recognised / questions; 0 without questions."""
        return self.recognised / self.questions if self.questions else 0.0


def linking_recall(benchmark: Benchmark, index: Index) -> LinkingRecall:
    """Share of questions in which what fills the seam of question entities recognises one of the gold path.

    The gold path's entities are those that the gold passages are titled by and, where the benchmark has evidence
    triples, those that stand in them. Gold is compared here, after recognition, which never sees it.
    """
    asked = [question for question in benchmark.questions if question.gold]
    batch, counters = Batch(index, [question.question for question in asked]), Counters()
    reader = linker(batch, counters)
    linked = question_entities(batch, counters, reader)
    missed = [
        question.id
        for question, found in zip(asked, linked, strict=True)
        if not {reader.resolve(name) for name in _gold_names(question, benchmark)} & set(found)
    ]
    return LinkingRecall(len(asked), len(asked) - len(missed), tuple(missed))


def _gold_names(question: BenchmarkQuestion, benchmark: Benchmark) -> Iterator[str]:
    for passage in question.gold:
        yield split_qualifier(benchmark.titles[passage])[0]
    evidences = question.metadata.get("evidences")
    for triple in evidences if isinstance(evidences, list) else []:
        yield from (str(end) for end in (triple[0], triple[-1]))
