"""Any retriever behind an HTTP endpoint: it gets questions and returns passage ids.

    POST URL    {"questions": ["Who directed …?", …], "k": 100}
    200 OK      {"results": [["p17", "p3", …], …]}        a list for each question, best first, at most k ids

The reply may also state a `"version"`: of the retriever and of what it searches (docs/your-retriever.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from hopbench.retrieval.foreign.answer import Answer, shown
from hopbench.retrieval.foreign.base import THIS_PROCESS, Foreign
from hopbench.retrieval.foreign.http import Connection, check_url
from hopbench.retrieval.foreign.reply import Reply, ReplyError, read_reply
from hopbench.retrieval.strategies.base import KEEP, Timing, param
from hopbench.retrieval.types import Counters, Question

GREETING = "Which version of this retriever answers?"
"""The question of the first request, which is asked for the version only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Endpoint(Foreign):
    """Asks `url` for rankings, `batch` questions a request. Where a request fails, its questions are asked alone.

    `headers` are sent and never recorded. Time is wall time, and says nothing of this machine.
    """

    name: ClassVar[str] = "endpoint"
    summary: ClassVar[str] = "an HTTP endpoint that returns passage ids"
    timing: ClassVar[Timing] = "wall"

    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    k: int = param(KEEP, "passages asked for", 1, KEEP)
    batch: int = param(32, "questions in a request", 1, 1000)
    timeout: float = param(30.0, "seconds that one request may take", 0.1, 3600.0)

    def __post_init__(self) -> None:
        """Refuse parameters outside their bounds, and a URL that is none or holds a key."""
        super().__post_init__()
        check_url(self.url, f"endpoint.url = {shown(self.url.partition('?')[0].rpartition('@')[2])}")

    @cached_property
    def _connection(self) -> Connection:
        return Connection(self.url, self.timeout, self.headers)

    @cached_property
    def _greeting(self) -> Reply | None:
        """The first reply; None where there was none."""
        try:
            return self._asked([GREETING])
        except ReplyError:
            return None

    @property
    def version(self) -> str:
        """What the endpoint states of itself, asked once; empty where it states nothing or does not answer."""
        return "" if self._greeting is None else self._greeting.version

    def source(self) -> dict[str, Any]:
        """The URL and the version."""
        return {"url": self.url, "version": self.version}

    def identity(self) -> dict[str, Any]:
        """Its spec; without a version this process too, since what the endpoint searches cannot be known."""
        return {**self.spec(), **({} if self.version else {"process": THIS_PROCESS})}

    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """Ask for all questions; never raises for what an endpoint does."""
        _ = self._greeting  # its version is that of all that follow
        texts = [question.text for question in questions]
        parts = [texts[begin : begin + self.batch] for begin in range(0, len(texts), self.batch)]
        return [answer for part in parts for answer in self._answers(part, counters)]

    def _answers(self, texts: Sequence[str], counters: Counters) -> Sequence[Answer]:
        counters.observed["requests"] += not self._connection.given_up
        try:
            return self._of_one_version(self._asked(texts)).answers
        except ReplyError as fault:
            if len(texts) == 1 or self._connection.given_up:
                return [Answer(failure=str(fault))] * len(texts)
            return [answer for text in texts for answer in self._answers([text], counters)]

    def _of_one_version(self, reply: Reply) -> Reply:
        """The reply, unless the endpoint has changed since it was asked first: results name one version."""
        if self._greeting is not None and reply.version != self.version:
            raise ReplyError(f"the version is {shown(reply.version)}, and was {shown(self.version)} before")
        return reply

    def _asked(self, texts: Sequence[str]) -> Reply:
        body = json.dumps({"questions": list(texts), "k": self.k}).encode()
        return read_reply(*self._connection.post(body), len(texts), self.k)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
