"""A Python function as a retriever: any library's, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hopbench.retrieval.foreign.answer import Answer
from hopbench.retrieval.foreign.base import THIS_PROCESS, Foreign
from hopbench.retrieval.foreign.reply import ranking_of
from hopbench.retrieval.strategies.base import KEEP, param
from hopbench.retrieval.support.errors import HopBenchError, ParameterError
from hopbench.retrieval.types import Counters, Question

Retrieve = Callable[[Sequence[str], int], Sequence[Sequence[str]]]
"""Takes questions in words and how many passages are wanted; returns passage ids, best first, for each question."""


def _none(questions: Sequence[str], k: int) -> Sequence[Sequence[str]]:
    raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(Foreign):
    """Calls `retrieve` with a batch of questions. Where it raises, each question is asked alone, and may fail alone.

    `version` is what the caller says of the function and of what it searches; without one, a trial is never taken up by
    another process.
    """

    name: ClassVar[str] = "function"
    summary: ClassVar[str] = "a Python function that returns passage ids"

    retrieve: Retrieve = field(default=_none, repr=False)
    version: str = ""
    k: int = param(KEEP, "passages asked for", 1, KEEP)

    def __post_init__(self) -> None:
        """Refuse what cannot be called."""
        super().__post_init__()
        if not callable(self.retrieve) or self.retrieve is _none:
            raise ParameterError(
                f"function.retrieve = {self.retrieve!r} cannot be called: name a function of (questions, k)"
            )

    def source(self) -> dict[str, Any]:
        """The function's name, and the version that the caller states."""
        named = getattr(self.retrieve, "__qualname__", type(self.retrieve).__qualname__)
        module = getattr(self.retrieve, "__module__", None) or type(self.retrieve).__module__
        return {"function": f"{module}.{named}", "version": self.version}

    def identity(self) -> dict[str, Any]:
        """Its spec; without a version this process too, since what the function searches cannot be known."""
        return {**self.spec(), **({} if self.version else {"process": THIS_PROCESS})}

    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """What the function returns; whatever it raises is raised, but nothing of it ends the run."""
        try:
            found = list(self.retrieve([question.text for question in questions], self.k))
        except (HopBenchError, SystemExit) as error:  # these would stop the other labels too
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        if len(found) != len(questions):
            raise ValueError(f"returned {len(found)} rankings for {len(questions)} questions")
        return [ranking_of(one, self.k) for one in found]
