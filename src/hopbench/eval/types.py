"""The types that evaluation shares: a benchmark with its gold, and a strategy's ranking of one question in passages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from hopbench.eval.gold import NO_GOLD, Gold
from hopbench.retrieval.fitted import FittedOn, packed, question_hash, shipped_hashes
from hopbench.retrieval.types import Passage, Question, Source

Role = Literal["tune", "report", "user"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` is true of `count` things, `examples` the first three of them; `remedy` says what to do about it."""

    what: str
    count: int
    examples: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        """In one line."""
        shown = f" (such as {', '.join(self.examples)})" if self.examples else ""
        return f"{self.what}: {self.count:,}{shown}; {self.remedy}"


MAX_FAILED = 0.05
"""The share of a label's questions that may fail, or go unanswered or unjudged, before the label is incomplete."""


@dataclass(frozen=True, slots=True)
class BenchmarkQuestion:
    """A question with its gold, of which ids alone may be given. Strategies are handed only `question`."""

    id: str
    text: str
    type: str = ""
    answer: str | None = None
    aliases: tuple[str, ...] = ()
    gold: Gold = NO_GOLD
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take a plain sequence of ids as gold of one set."""
        if not isinstance(self.gold, Gold):
            object.__setattr__(self, "gold", Gold(self.gold))

    @property
    def question(self) -> Question:
        """The part that a strategy may see."""
        return Question(self.id, self.text)

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer and its aliases."""
        return () if self.answer is None else (self.answer, *self.aliases)


@dataclass(frozen=True, slots=True)
class Omission:
    """What a document's passages leave out on purpose, such as its navigation: how many parts, with how many words."""

    kind: str
    parts: int
    words: int
    document: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A corpus, its questions and their gold. `questions` is in file order; `passages` too.

    `questions` is empty for a corpus alone. `warnings` name files of the corpus that could not be read, `omissions`
    what its documents leave out on purpose, `findings` what else its readers noticed. `min_grade` is the lowest grade
    of judgements that counts as gold.
    """

    name: str
    passages: Sequence[Passage]
    questions: tuple[BenchmarkQuestion, ...]
    role: Role = "user"
    folder: Path | None = None
    warnings: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()
    min_grade: int = 1
    findings: tuple[Finding, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of passages and questions with their gold, independent of the order of files and lines."""
        rows = [json.dumps(["p", p.id, p.title, p.text], ensure_ascii=False) for p in self.passages]
        rows += [
            json.dumps(
                ["q", q.id, q.text, q.type, q.answer, sorted(q.aliases), sorted(q.gold), *q.gold.digest_fields()],
                ensure_ascii=False,
            )
            for q in self.questions
        ]
        return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()

    @cached_property
    def missing_gold(self) -> Mapping[str, Sequence[str]]:
        """Gold passages that the corpus lacks, each with the questions that name it; they are never found."""
        from hopbench.retrieval.corpus import ids_of

        lacking = {p for question in self.questions for p in question.gold}.difference(ids_of(self.passages))
        named: dict[str, list[str]] = {}
        for question in self.questions if lacking else ():
            for passage in lacking.intersection(question.gold):
                named.setdefault(passage, []).append(question.id)
        return dict(sorted(named.items()))

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Passage id → file and page it comes from, of the passages for which the corpus gives them."""
        from hopbench.retrieval.corpus import MappedPassages  # loads numpy

        if isinstance(self.passages, MappedPassages) and not self.passages.sourced:
            return {}
        return {p.id: p.source for p in self.passages if p.source}

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """Passage id → title."""
        from hopbench.retrieval.corpus import MappedPassages

        if isinstance(self.passages, MappedPassages):
            return dict(zip(self.passages.ids, self.passages.titles, strict=True))
        return {p.id: p.title for p in self.passages}

    @cached_property
    def by_id(self) -> Mapping[str, Passage]:
        """Passage id → passage."""
        return ById(self.passages)


class ById(Mapping[str, Passage]):
    """Passages by their ids, read from their sequence on access."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        from hopbench.retrieval.corpus import ids_of

        self._passages = passages
        self._row_of = {passage: row for row, passage in enumerate(ids_of(passages))}

    def __getitem__(self, passage: str) -> Passage:
        return self._passages[self._row_of[passage]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row_of)

    def __len__(self) -> int:
        return len(self._row_of)


@dataclass(frozen=True, slots=True)
class PassageRanking:
    """A strategy's ranking of one question, mapped from chunks to passages.

    `ranked_ids` are unique passage ids, best first, with `scores` beside them; `context_ids` and `context` are what
    fits the budget that all strategies share (top_n 5 chunks, 1,500 tokens), `context_parts` the same in its parts, the
    graph block (also in `graph_context`) first where there is one; `seeds` are the passages the strategy expanded from.
    A `failure` is the reason why there is no ranking.
    """

    question_id: str
    ranked_ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    context_ids: tuple[str, ...] = ()
    context: str = ""
    seeds: tuple[str, ...] = ()
    failure: str | None = None
    context_parts: tuple[str, ...] = ()
    graph_context: str = ""


def fitted_on(benchmark: Benchmark) -> FittedOn:
    """The set by name, digest and the hashes of its questions."""
    hashes = frozenset(question_hash(question.text) for question in benchmark.questions)
    return FittedOn(benchmark.name, benchmark.digest, hashes)


def hashes_of(benchmark: Benchmark) -> dict[str, str]:
    """`question_hashes` for a provenance; nothing for sets whose hashes travel with HopBench."""
    if benchmark.digest in shipped_hashes():
        return {}
    return {"question_hashes": packed(question.text for question in benchmark.questions)}


def too_many_failed(failures: int, questions: int) -> bool:
    """Whether more than `MAX_FAILED` of the questions failed: the means of the others are then not to be trusted."""
    return failures > MAX_FAILED * questions
