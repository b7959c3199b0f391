"""Rankings that were made before: a published run, or one of an earlier night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hopbench.retrieval.foreign.answer import Answer
from hopbench.retrieval.foreign.base import Foreign
from hopbench.retrieval.strategies.base import Timing
from hopbench.retrieval.types import Counters, Question

ABSENT = Answer(failure="the run has no ranking for this question")


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded(Foreign):
    """Rankings by question id, read from a file. What they took is not known: it has no latency."""

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
