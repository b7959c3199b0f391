"""Retrievers behind an HTTP endpoint, which gets questions and returns passage ids."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from hopbench.retrieval.external import Answer, ExternalRetriever, ReplyError, read_reply, shown
from hopbench.retrieval.llm.client import LoopThread
from hopbench.retrieval.strategies.base import KEEP, Timing, param
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.loopback import is_loopback
from hopbench.retrieval.types import Counters, Question

GREETING = "Which version of this retriever answers?"
"""The question of the first request, which is asked for the version only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Endpoint(ExternalRetriever):
    """Requests rankings from `url`, `batch` questions at a time. Where a request fails, each question is sent alone.

    `headers` are sent and never recorded. Time is wall time, and says nothing about this machine.
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
        super().__post_init__()
        check_url(self.url, f"endpoint.url = {shown(self.url.partition('?')[0].rpartition('@')[2])}")

    @cached_property
    def _connection(self) -> Connection:
        return Connection(self.url, self.timeout, self.headers)

    @cached_property
    def _greeting(self) -> str | None:
        """The version of the first reply; None where there was none."""
        try:
            return self._request([GREETING])[1]
        except ReplyError:
            return None

    @property
    def version(self) -> str:
        """The version that the endpoint states, requested once; empty where it states none or does not answer."""
        return self._greeting or ""

    def source(self) -> dict[str, Any]:
        """The URL and the version."""
        return {"url": self.url, "version": self.version}

    def answers(self, questions: Sequence[Question], counters: Counters) -> Sequence[Answer]:
        """Ask for all questions; never raises for what an endpoint does."""
        _ = self._greeting  # its version is that of all that follow
        texts = [question.text for question in questions]
        parts = [texts[begin : begin + self.batch] for begin in range(0, len(texts), self.batch)]
        return [answer for part in parts for answer in self._answers(part, counters)]

    def _answers(self, texts: Sequence[str], counters: Counters) -> Sequence[Answer]:
        counters.observed["requests"] += not self._connection.given_up
        try:
            answers, version = self._request(texts)
            if self._greeting is not None and version != self.version:  # results name one version
                raise ReplyError(f"the version is {shown(version)}, and was {shown(self.version)} before")  # noqa: TRY301
        except ReplyError as fault:
            if len(texts) == 1 or self._connection.given_up:
                return [Answer(failure=str(fault))] * len(texts)
            return [answer for text in texts for answer in self._answers([text], counters)]
        return answers

    def _request(self, texts: Sequence[str]) -> tuple[list[Answer], str]:
        body = json.dumps({"questions": list(texts), "k": self.k}).encode()
        return read_reply(*self._connection.post(body), len(texts), self.k)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


REPLY_LIMIT = 16 * 1024 * 1024  # bytes: 1,000 questions × 100 ids of 160 characters
ATTEMPTS = 3
PAUSE_SECONDS = 0.2  # before the second attempt; twice as long before the third
SOON_SECONDS = 2.0
LOST_IN_A_ROW = 3
_BUSY = frozenset({429, 502, 503, 504})
_SECRET = ("key", "token", "secret", "passw", "auth", "sig", "credential")
_EXCERPT_BYTES = 2000


@cache
def _loop() -> LoopThread:
    os.register_at_fork(after_in_child=_loop.cache_clear)  # a fork does not have the thread
    return LoopThread("hopbench-endpoints")


def check_url(url: str, flag: str) -> str:
    """`url`, if it is one of http or https with a host and without a secret. Raises InputError, which does not show it.

    A URL is written into results, so a key in it would be too.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or not url.isprintable() or " " in url:
        raise InputError(f"{flag}: not a URL of http or https with a host, such as http://127.0.0.1:8000/retrieve")
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    secret = [name for name in names if any(part in name.lower() for part in _SECRET)]
    if "@" in parts.netloc or secret:
        what = f"the parameter {secret[0]!r}" if secret else "a user or password"
        raise InputError(
            f"{flag}: the URL holds {what}, and URLs are written into results: leave it out, and put keys into the "
            "environment (docs/your-retriever.md)"
        )
    if parts.fragment:
        raise InputError(f"{flag}: the URL ends in #{parts.fragment}, which is not sent to a server: leave it out")
    return url


@dataclass(eq=False)
class Connection:
    """Posts JSON to one URL. A request in all takes at most `timeout` seconds, its reply at most `REPLY_LIMIT` bytes.

    Retries on connection errors and on HTTP 429, 502, 503 and 504, up to `ATTEMPTS` attempts. After
    `LOST_IN_A_ROW` requests without any reply nothing more is sent: a server that hangs would take hours to say so.
    """

    url: str
    timeout: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    _client: httpx.AsyncClient | None = field(default=None, repr=False)
    _lost: int = 0
    _last: str = ""

    @property
    def given_up(self) -> bool:
        """Whether nothing more is sent."""
        return self._lost >= LOST_IN_A_ROW

    def post(self, body: bytes) -> tuple[bytes, str]:
        """The reply's body and content type. Raises ReplyError for anything but status 200 within the limits."""
        if self.given_up:
            raise ReplyError(
                f"not asked: {self._lost} requests in a row got no reply, the last: {self._last}", lost=True
            )
        attempts = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=PAUSE_SECONDS),
            retry=retry_if_exception(lambda error: isinstance(error, ReplyError) and error.again),
            reraise=True,
        )
        try:
            found = attempts(self._once, body)
        except ReplyError as fault:
            self._lost, self._last = self._lost + 1 if fault.lost else 0, str(fault)
            raise
        self._lost = 0
        return found

    def _once(self, body: bytes) -> tuple[bytes, str]:
        begun = time.monotonic()
        try:
            return _loop().submit(self._sent(body)).result()
        except TimeoutError:
            raise ReplyError(f"no whole reply within {self.timeout:g} s", lost=True) from None
        except httpx.ConnectError as error:
            raise ReplyError(f"no connection ({error})", lost=True, again=True) from None
        except httpx.TransportError as error:
            after = time.monotonic() - begun
            words = str(error) or type(error).__name__
            soon = after < SOON_SECONDS  # later, three attempts would take as long as three requests
            raise ReplyError(f"the connection broke after {after:.1f} s ({words})", lost=True, again=soon) from None
        except httpx.HTTPError as error:
            raise ReplyError(f"{type(error).__name__}: {error}", lost=True) from None

    async def _sent(self, body: bytes) -> tuple[bytes, str]:
        async with asyncio.timeout(self.timeout), self._opened().stream("POST", self.url, content=body) as reply:
            code, encoding = reply.status_code, reply.headers.get("content-encoding", "identity")
            if reply.is_redirect:
                raise ReplyError(f"HTTP {code}: redirects are not followed; name the URL that answers")
            if code != httpx.codes.OK:
                begins = await anext(reply.aiter_raw(_EXCERPT_BYTES), b"")
                words = self._hidden(begins).decode(errors="replace").strip()
                raise ReplyError(f"HTTP {code}" + (f": {shown(words)}" if words else ""), again=code in _BUSY)
            if encoding != "identity":
                raise ReplyError(f"the reply is compressed ({shown(encoding)}), which was not asked for")
            parts, size = [], 0
            async for part in reply.aiter_raw():
                size += len(part)
                if size > REPLY_LIMIT:
                    raise ReplyError(f"the reply is over {REPLY_LIMIT:,} bytes, which is the limit")
                parts.append(part)
            return self._hidden(b"".join(parts)), reply.headers.get("content-type", "")

    def _hidden(self, content: bytes) -> bytes:
        """What a server sends, without our keys, should it repeat them: reasons are written into results."""
        for value in self.headers.values():
            for secret in (value, value.removeprefix("Bearer ")):
                content = content.replace(secret.encode(), b"[redacted]") if secret else content
        return content

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            sent = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
            self._client = httpx.AsyncClient(
                headers={"user-agent": "hopbench", **sent, **self.headers},
                timeout=None,  # the whole request has one limit
                trust_env=not is_loopback(self.url),  # a proxy would look for our loopback on its own machine
            )
        return self._client

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            client, self._client = self._client, None
            _loop().submit(client.aclose()).result()
