"""The types that evaluation shares: a benchmark with its gold, and a strategy's ranking of one question in passages."""

from __future__ import annotations

import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from hopbench.eval.gold import NO_GOLD, Gold
from hopbench.retrieval.fitted import FittedOn, packed, question_hash, shipped_hashes
from hopbench.retrieval.types import Passage, Question, Source

SHOWN_WARNINGS = 5
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

    @property
    def shown_warnings(self) -> list[str]:
        """The findings, the first of the warnings with the number of the others, and the gold that the corpus lacks."""
        more = len(self.warnings) - SHOWN_WARNINGS
        rest = f"{self.name}: {more:,} more files of the corpus have warnings: `hopbench check-data` lists them"
        found = [f"{self.name}: {finding}" for finding in self.findings]
        lacking = [f"{self.name}: {self.missing_gold_words()}"] if self.missing_gold else []
        return [*found, *self.warnings[:SHOWN_WARNINGS], *([rest] if more > 0 else []), *lacking]

    @cached_property
    def missing_gold(self) -> Mapping[str, Sequence[str]]:
        """Gold passages that the corpus lacks, each with the questions that name it; they are never found."""
        from hopbench.retrieval.corpus import ids_of

        lacking = {passage for question in self.questions for passage in question.gold}.difference(
            ids_of(self.passages)
        )
        named: dict[str, list[str]] = {}
        for question in self.questions if lacking else ():
            for passage in lacking.intersection(question.gold):
                named.setdefault(passage, []).append(question.id)
        return dict(sorted(named.items()))

    def missing_gold_words(self) -> str:
        """How many gold passages the corpus lacks, of how many questions, and the first of them."""
        from hopbench.retrieval.corpus import ids_of

        questions = {question for named in self.missing_gold.values() for question in named}
        first = list(self.missing_gold.items())[:3]
        alike = looks_like([passage for passage, _ in first], ids_of(self.passages))
        shown = [
            f"{passage!r} (question {named[0]}{'; ' + alike[passage] if passage in alike else ''})"
            for passage, named in first
        ]
        return (
            f"gold passages that the corpus lacks: {len(self.missing_gold):,}, of {len(questions):,} questions: "
            f"{', '.join(shown)}{', …' if len(self.missing_gold) > 3 else ''}; they count as never found, "
            "and --strict refuses them: add the passages or remove the lines"
        )

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


# Names that look alike: another Unicode form, HTML entities, another case, a number's zeros.
_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_FRACTION = re.compile(r"(?<=\d)\.0+(?!\d)")


def plain_title(title: str) -> str:
    """A title with its HTML entities as characters, in Unicode's composed form, with single spaces."""
    while "&" in title and (unescaped := html.unescape(title)) != title:
        title = unescaped
    return " ".join((title if title.isascii() else unicodedata.normalize("NFC", title)).split())


def _visible(text: str) -> str:
    return "".join(text.split()).translate({ord(mark): None for mark in text if unicodedata.category(mark) == "Cf"})


_FOLDS: Mapping[str, Callable[[str], str]] = {
    "HTML entities": lambda text: plain_title(text) if "&" in text else text,
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text),
    "white space": _visible,
    "case": str.casefold,
    "a final .0": lambda text: _FRACTION.sub("", text),
    "leading zeros": lambda text: _ZEROS.sub("", text),
}
"""What may differ between names that mean one thing → the text without it."""


def _folded(text: str, *, but: str = "") -> str:
    for name, fold in _FOLDS.items():
        if name != but:
            text = fold(text)
    return text


def looks_like(values: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Of each value that resembles a known one: `'p1' is there, which differs in case`."""
    wanted: dict[str, list[str]] = {}
    for value in values:
        wanted.setdefault(_folded(value), []).append(value)
    found: dict[str, str] = {}
    for one in known if wanted else ():
        for value in wanted.get(_folded(one), ()):
            if value != one:
                found.setdefault(value, _difference(value, one))
    return found


def _difference(value: str, known: str) -> str:
    named = [name for name in _FOLDS if _folded(value, but=name) != _folded(known, but=name)]
    shown = ascii(known) if "Unicode form" in named else repr(known)
    return f"{shown} is there, which differs in {' and '.join(named) or 'how it is written'}"
