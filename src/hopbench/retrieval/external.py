"""External retrievers as strategies: they return passage ids, and nothing about how these were found."""

from __future__ import annotations

import json
import secrets
import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Integral
from typing import Any, ClassVar

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import KEEP, Strategy, Timing, param
from hopbench.retrieval.support.errors import HopBenchError, ParameterError
from hopbench.retrieval.support.processes import collector_off
from hopbench.retrieval.types import Counters, Hit, Question, Ranking

MAX_QUOTED = 80  # characters of a quoted text or reply
MAX_VERSION = 200  # characters
FOREIGN = "foreign"
SEEDS = 10
NOTES: Mapping[str, object] = {"traversal": "not known: a foreign retriever returns passages only"}
THIS_PROCESS = secrets.token_hex(8)
"""Identifies a retriever that states no version: no other process reuses its rankings."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A retriever's answer to one question: passage ids, best first, or the reason why there are none.

    `scores` are beside `passages`, or empty; 1/rank stands in for them.
    """

    passages: Sequence[str] = ()
    scores: Sequence[float] = ()
    failure: str | None = None


def shown(text: str) -> str:
    """Quote a text for a message (control characters escaped, long texts cut)."""
    return repr(text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…")


class ReplyError(Exception):
    """Reports that a request got no usable reply: `lost` where none arrived at all, `again` where a retry may help."""

    def __init__(self, reason: str, *, lost: bool = False, again: bool = False) -> None:
        super().__init__(reason)
        self.lost = lost
        self.again = again


def read_reply(content: bytes, content_type: str, questions: int, k: int) -> tuple[list[Answer], str]:
    """Parse `{"results": [[id, …], …]}`: an answer per question, and the optional `"version"` (empty: none).

    Raises:
        ReplyError: for what is not JSON, has no list `results`, or has not as many results as there were questions.
    """
    try:
        with collector_off():  # finalizers that it calls fail where the reply is nested as deeply as Python allows
            record = json.loads(content)
    except (ValueError, RecursionError):  # nested without end, or a number of a million digits
        begins = content[:MAX_QUOTED].decode(errors="replace").strip()
        of = f" but {shown(content_type)}" if content_type and "json" not in content_type.lower() else ""
        what = f"the reply is not JSON{of}; it begins {shown(begins)}" if begins else "the reply is empty"
        raise ReplyError(what) from None
    if not isinstance(record, dict):
        raise ReplyError(f"the reply is {_kind(record)}, not an object with the field 'results'")
    if "results" not in record:
        present = ", ".join(shown(name) for name in list(record)[:5]) or "none"
        raise ReplyError(f"the reply has no field 'results' (fields present: {present})")
    results, version = record["results"], record.get("version")
    if not isinstance(results, list):
        raise ReplyError(f"'results' is {_kind(results)}, not a list")
    if len(results) != questions:
        raise ReplyError(f"the reply has {len(results)} results for {questions} question{'s' if questions > 1 else ''}")
    answers = [ranking_of(one, k) for one in results]
    printable = isinstance(version, str) and 0 < len(version) <= MAX_VERSION and version.isprintable()
    if version is not None and not printable:
        raise ReplyError(f"'version' is {_kind(version)}, not a printable text of up to {MAX_VERSION} characters")
    return answers, version or ""


def ranking_of(value: object, k: int) -> Answer:
    """Check one ranking (at most `k` passage ids, texts or whole numbers); anything else makes the answer a failure."""
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        return Answer(failure=f"the ranking is {_kind(value)}, not a list of passage ids")
    passages: list[str] = []
    for one in value:
        if len(passages) == k:
            return Answer(failure=f"more than the {k} passages that were asked for are returned")
        if isinstance(one, bool) or not isinstance(one, str | Integral):
            return Answer(failure=f"a passage id is {_kind(one)}, not a text")
        passages.append(str(one))
    return Answer(passages)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return "a large number" if isinstance(value, int) and abs(value) >= 1e15 else f"the number {value:g}"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    names: dict[type, str] = {list: "a list", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"a {type(value).__name__}")


@dataclass(frozen=True, kw_only=True, eq=False)
class ExternalRetriever(Strategy):
    """A strategy whose rankings come from outside. Fields declared with `param` are its parameters, others are not."""

    kind: ClassVar[str] = FOREIGN
    foreign: ClassVar[bool] = True
    keep: ClassVar[int] = sys.maxsize  # MRR depends on the whole ranking

    fill: bool = field(default=False, init=False, repr=False)

    # Equal only to itself, whatever its parameters: batches cache answers by retriever.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @classmethod
    def parameters(cls) -> Mapping[str, Field[Any]]:
        """The fields with bounds."""
        return {spec.name: spec for spec in fields(cls) if "bounds" in spec.metadata}

    def spec(self) -> dict[str, Any]:
        """Where its rankings come from, and its parameters."""
        return {**self.source(), **{name: getattr(self, name) for name in self.parameters()}}

    def identity(self) -> dict[str, Any]:
        """Its spec; where it states an empty version this process too: what it searches cannot be known then."""
        return {**self.spec(), **({"process": THIS_PROCESS} if self.source().get("version") == "" else {})}

    @abstractmethod
    def source(self) -> dict[str, Any]:
        """Identify the retriever in results, without secrets and without paths of this machine."""

    @abstractmethod
    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """Return the retriever's answer to each question, in their order; a fault is an answer's failure."""

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The retriever's rankings; ids that the corpus lacks, or that come twice, fail their question."""
        found: Sequence[Answer] = batch.memo.charged(
            (FOREIGN, self), counters, lambda spent: self.answers(batch.questions, spent)
        )
        first = first_parts(batch.index)
        return [_ranking(question.id, one, first) for question, one in zip(batch.questions, found, strict=True)]

    def initial(self, batch: Batch) -> list[Scored]:
        """The rankings themselves: no other ranking is known from which they would have started."""
        return [[(hit.chunk_id, hit.score) for hit in one.hits] for one in self.search(batch, Counters())]

    def close(self) -> None:
        """Close connections."""


def first_parts(index: Index) -> Mapping[str, str]:
    """Map each passage id to its chunk (the first one of a passage that was split for its length)."""
    return index.memo.get(
        "first parts", lambda: {chunk.passage_id: chunk.id for chunk in index.chunks if chunk.index == 0}
    )


def _ranking(question_id: str, answer: Answer, first: Mapping[str, str]) -> Ranking:
    passages, failure = answer.passages, answer.failure
    unknown = [passage for passage in passages if passage not in first]
    twice = [passage for passage, count in Counter(passages).items() if count > 1]
    if failure is None and unknown:
        failure = f"{len(unknown)} of {len(passages)} passages are not in the corpus, such as {shown(unknown[0])}"
    elif failure is None and twice:
        failure = f"passage {shown(twice[0])} is returned twice"
    if failure is not None:
        return Ranking(question_id, notes=NOTES, failure=failure)
    scores = answer.scores or [1 / rank for rank in range(1, len(passages) + 1)]
    hits = [Hit(first[passage], float(score), FOREIGN) for passage, score in zip(passages, scores, strict=True)]
    return Ranking(question_id, hits, [hit.chunk_id for hit in hits[:SEEDS]], NOTES)


Retrieve = Callable[[Sequence[str], int], Sequence[Sequence[str]]]
"""Takes questions in words and how many passages are wanted; returns passage ids, best first, for each question."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(ExternalRetriever):
    """Calls `retrieve` with a batch of questions. Where it raises, each question is sent alone, and may fail alone.

    `version` describes the function and what it searches, as the caller states it; without one, no other process reuses
    a trial.
    """

    name: ClassVar[str] = "function"
    summary: ClassVar[str] = "a Python function that returns passage ids"

    retrieve: Retrieve | None = field(default=None, repr=False)
    version: str = ""
    k: int = param(KEEP, "passages asked for", 1, KEEP)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.retrieve):
            raise ParameterError(
                f"function.retrieve = {self.retrieve!r} cannot be called: name a function of (questions, k)"
            )

    def source(self) -> dict[str, Any]:
        """The function's name, and the version that the caller states."""
        named = getattr(self.retrieve, "__qualname__", type(self.retrieve).__qualname__)
        module = getattr(self.retrieve, "__module__", None) or type(self.retrieve).__module__
        return {"function": f"{module}.{named}", "version": self.version}

    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """What the function returns; whatever it raises is raised, but nothing of it ends the run."""
        if self.retrieve is None:
            raise NotImplementedError
        try:
            found = list(self.retrieve([question.text for question in questions], self.k))
        except (HopBenchError, SystemExit) as error:  # these would end the other labels too
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        if len(found) != len(questions):
            raise ValueError(f"returned {len(found)} rankings for {len(questions)} questions")
        return [ranking_of(one, self.k) for one in found]


ABSENT = Answer(failure="the run has no ranking for this question")


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded(ExternalRetriever):
    """Rankings by question id, read from a file. How long they took is unknown, so there is no latency."""

    name: ClassVar[str] = "run"
    summary: ClassVar[str] = "rankings read from a TREC run, a JSON file or an earlier run's folder"
    timing: ClassVar[Timing] = "unknown"

    rankings: Mapping[str, Answer] = field(default_factory=dict, repr=False)
    form: str = ""
    digest: str = ""
    ties: int = 0

    def source(self) -> dict[str, Any]:
        """The file's format, and the SHA-256 of what it holds."""
        return {"format": self.form, "digest": self.digest}

    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """The rankings as they were read; a question that the file leaves out has failed."""
        return [self.rankings.get(question.id, ABSENT) for question in questions]
