"""The types that evaluation shares: a benchmark with its gold, and a strategy's ranking of one question in passages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from hopbench.retrieval.fitted import FittedOn, packed, question_hash, shipped_hashes
from hopbench.retrieval.support.errors import InputError
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


class Gold(tuple[str, ...]):
    """The gold passages of a question, each once: a tuple of the ids of all its sets.

    All passages of any one of the `sets` are full evidence; most questions have one set. `grades` are the judgements of
    passages, gold or not (0, negative, below the threshold), where they are not all 1; else it is empty.
    """

    sets: tuple[tuple[str, ...], ...]
    grades: Mapping[str, int]

    def __new__(cls, passages: Iterable[str] = ()) -> Self:
        """One set, in which all passages count the same."""
        made = super().__new__(cls, dict.fromkeys(passages))
        made.sets = (tuple(made),) if made else ()
        made.grades = {}
        return made

    @classmethod
    def any_of(cls, sets: Sequence[Sequence[str]]) -> Self:
        """Alternative sets. Raises InputError for an empty one, and for the same one twice."""
        known: dict[frozenset[str], tuple[str, ...]] = {}
        for passages in sets:
            if not passages:
                raise InputError("holds an empty set: name its passages, or remove it")
            if frozenset(passages) in known:
                raise InputError(f"holds the set {list(passages)} twice: name each set once")
            known[frozenset(passages)] = tuple(dict.fromkeys(passages))
        made = cls(passage for passages in sets for passage in passages)
        made.sets = tuple(known.values())
        return made

    @classmethod
    def judged(cls, grades: Mapping[str, int], min_grade: int = 1) -> Self:
        """The passages of a grade of at least `min_grade`, and all grades."""
        made = cls(passage for passage, grade in grades.items() if grade >= min_grade)
        made.grades = dict(grades) if set(grades.values()) - {1} else {}
        return made

    def at_least(self, grade: int) -> Self:
        """The same judgements with another threshold; passages without a grade have grade 1."""
        if self.grades:
            return type(self).judged(self.grades, grade)
        return self if grade <= 1 else type(self)()

    @property
    def graded(self) -> bool:
        """Whether some grade is neither 0 nor 1."""
        return not {0, 1}.issuperset(self.grades.values())

    @property
    def gains(self) -> Mapping[str, int]:
        """Passage → gain, of those judged above 0, gold or not."""
        return {passage: grade for passage, grade in (self.grades or dict.fromkeys(self, 1)).items() if grade > 0}

    @property
    def size(self) -> int:
        """The number of passages in the smallest set; 0 without gold."""
        return min(map(len, self.sets), default=0)

    def complete_in(self, found: Collection[str]) -> bool:
        """Whether all passages of some set are found; True without gold."""
        return not self or any(all(passage in found for passage in one) for one in self.sets)

    def share(self, found: Collection[str]) -> float:
        """The share of the best set that is found."""
        return max(sum(passage in found for passage in one) / len(one) for one in self.sets)

    def best_set(self, found: Collection[str]) -> tuple[int, tuple[str, ...]]:
        """The number (from 1) of the set of which most is found, the first of equal ones, and what it lacks."""
        lacking = [tuple(passage for passage in one if passage not in found) for one in self.sets]
        best = min(range(len(lacking)), key=lambda number: len(lacking[number]) / len(self.sets[number]))
        return best + 1, lacking[best]

    def digest_fields(self) -> list[Any]:
        """Return what a digest needs in addition to the ids; empty for one set whose grades are all 0 or 1."""
        if len(self.sets) > 1:
            return ["sets", sorted(map(sorted, self.sets))]
        return ["grades", sorted((p, grade) for p, grade in self.grades.items() if grade)] if self.graded else []

    def __eq__(self, other: object) -> bool:
        """Whether ids, sets and grades are equal; of a plain tuple, the ids."""
        alike = not isinstance(other, Gold) or (self.sets, self.grades) == (other.sets, other.grades)
        return alike and tuple.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


NO_GOLD = Gold()


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
    """What a document's passages leave out on purpose, such as its navigation: how many parts, with how many words.

    What is `in_text` stands there as it is written, and what it stands for is left out.
    """

    kind: str
    parts: int
    words: int
    document: str = ""
    in_text: bool = False


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
