"""Failures of calls, and how calls are retried: a budget of retries, a circuit breaker, and their settings.

Each failure has a kind, and a message with the endpoint's reason and without secrets.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hopbench.retrieval.support.errors import HopBenchError

if TYPE_CHECKING:
    from openai import APIStatusError

Kind = Literal[
    "rate limited",  # 429, and 503 with Retry-After
    "server error",  # another status of 500 and above, and an error in the body of a 200
    "timeout",
    "disconnected",
    "empty choice",
    "truncated",
    "wrong schema",
    "refused",  # 401, 403, 404: every other call would be refused too
    "bad request",  # another status of 400 and above, and a refusal by the model itself
    "breaker open",
    "budget reached",
    "not kept",  # by the cache, where nothing is to be sent
]
CONTENT: frozenset[str] = frozenset({"empty choice", "truncated", "wrong schema"})
LASTING: frozenset[str] = CONTENT | {"bad request"}  # what a later run would meet again
PASSING: frozenset[str] = frozenset({"server error", "timeout", "disconnected", *CONTENT})
MASKED_LENGTH = 8  # a shorter key is a placeholder, and masking its letters would spoil the message
MAX_DEPTH = 12  # of an error's body
_REASONS = ("message", "msg", "error", "errors", "detail", "reason", "title")  # where a body has its reason


class LLMError(HopBenchError):
    """A call that has no usable reply. `str()` begins with `kind`; `lasting` means that repeating it is no use."""

    exit_code = 4

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        retry_after: float | None = None,
        lasting: bool = False,
        unreachable: bool = False,
        status: int | None = None,
        named: Sequence[str] = (),
    ) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.status, self.named = status, tuple(named)  # HTTP's status, and the parameters that the endpoint names
        self.unreachable = unreachable  # no connection could be made at all
        self.retry_after = retry_after
        self.lasting = lasting or kind in ("refused", "bad request", "breaker open", "budget reached")


def from_openai(error: Exception, key: str) -> LLMError:
    """The client's exception as an LLMError; `key` is masked in an answer that repeats it."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return LLMError("timeout", "no answer in time")
    if isinstance(error, openai.APIStatusError):
        return _from_status(error, key)
    message = shown(str(error), key)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        refused = _refused(error)
        reason = f"{message} ({refused or type(cause).__name__})" if cause else message
        return LLMError("disconnected", reason, unreachable=refused is not None)
    return LLMError("truncated", f"the answer is no completion ({type(error).__name__}: {message})")


def shown(message: str, key: str) -> str:
    """The beginning of a message in one line, the key masked."""
    return masked(" ".join(message.split()), key)[:300]


def masked(message: str, key: str) -> str:
    """`message` without the key; a key under `MASKED_LENGTH` characters is masked in an Authorization header only."""
    if not key:
        return message
    return message.replace(f"Bearer {key}" if len(key) < MASKED_LENGTH else key, "***")


def from_body(body: Any, key: str) -> LLMError:
    """An error that an endpoint sends with status 200."""
    inner = body.get("error") if isinstance(body, Mapping) else None
    code = next((one.get("code") for one in (inner, body) if isinstance(one, Mapping) and "code" in one), None)
    status = int(code) if isinstance(code, int | str) and str(code).isdecimal() else None
    kind: Kind = "rate limited" if status == 429 else "server error"
    reason = shown(reason_of(body), key) or "without a reason"
    return LLMError(kind, f"an error in a reply of status 200: {reason}", status=status, named=named_in(body))


def reason_of(body: Any, depth: int = MAX_DEPTH) -> str:
    """The reason in an error's body, in any form that servers use: text, object, or list of either."""
    if isinstance(body, str):
        return body
    if isinstance(body, Sequence) and depth:
        return "; ".join(filter(None, (reason_of(one, depth - 1) for one in body)))
    if not isinstance(body, Mapping) or not depth:
        return ""
    reason = next(filter(None, (reason_of(body[name], depth - 1) for name in _REASONS if body.get(name))), "")
    place = ".".join(map(str, body["loc"])) if isinstance(body.get("loc"), Sequence) else ""
    details = body.get("metadata")  # a gateway's: what the provider behind it said
    raw = details.get("raw") if isinstance(details, Mapping) else None
    return ": ".join(filter(None, (place, reason, reason_of(_read(raw), depth - 1))))


def named_in(body: Any, depth: int = MAX_DEPTH) -> list[str]:
    """The parameters that an error's body names: `param` of OpenAI's errors, `loc` of FastAPI's."""
    if not depth:
        return []
    if isinstance(body, Mapping):
        own = [body["param"]] if isinstance(body.get("param"), str) else []
        places = body["loc"] if isinstance(body.get("loc"), list) else []
        own += [place for place in places if isinstance(place, str) and place != "body"][:1]
        details = body.get("metadata")
        inner = [_read(details.get("raw"))] if isinstance(details, Mapping) else []
        return own + named_in([*map(body.get, _REASONS), *inner], depth - 1)
    return [name for one in body for name in named_in(one, depth - 1)] if isinstance(body, list) else []


def _read(raw: Any) -> Any:
    """A body within a body, which a gateway sends as text."""
    try:
        return json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        return raw


def _refused(error: BaseException | None) -> str | None:
    """Why no connection could be made: nothing listens there, or there is no such host. None for a connection lost."""
    while error is not None:
        if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
            return error.strerror or str(error)
        error = error.__cause__ or error.__context__
    return None


def _from_status(error: APIStatusError, key: str) -> LLMError:
    status, reason = error.status_code, shown(reason_of(error.body) or str(error), key)
    message, named = f"status {status}: {reason}", named_in(error.body)
    wait = retry_after(error.response.headers)
    if status == 429 or (status == 503 and wait is not None):
        return LLMError("rate limited", message, retry_after=wait, lasting=error.code == "insufficient_quota")
    if status >= 500:
        return LLMError("server error", message, status=status, named=named)
    kind: Kind = "refused" if status in (401, 403, 404) else "bad request"
    return LLMError(kind, message, status=status, named=named)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait: a number or a date; None where it asks nothing that can be read."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return max(0.0, float(text) * unit)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (TypeError, ValueError, OverflowError):
            continue
    return None


@dataclass(frozen=True)
class Settings:
    """Limits of calls to an endpoint. `timeout` is seconds of one attempt, in which a slow local model must answer.

    `attempts` bounds a call's attempts at faults that may pass, `throttled` its refusals by a rate limit; a useless
    answer (empty, cut, of the wrong form) is asked for once more. All calls together may use `retry_share` retries a
    call and `retry_reserve` more. An endpoint that asks to wait (Retry-After) for more than `longest_wait` seconds is
    not asked again by this run; a shorter wait is obeyed and announced on the console. Concurrency starts at
    `concurrency`. Without `send` only the cache answers.
    """

    timeout: float = 300.0
    attempts: int = 4
    throttled: int = 10
    retry_share: float = 0.3
    retry_reserve: int = 10
    longest_wait: float = 300.0
    concurrency: int = 8
    max_concurrency: int = 64
    breaker_failures: int = 12
    breaker_seconds: float = 30.0
    send: bool = True


class Retries:
    """Decides on another attempt.

    All calls share a budget of retries, so that an endpoint in trouble is not
    asked many times as often as one that is well. Waiting for a rate limit is free: it is what the endpoint asked for.
    """

    def __init__(self, settings: Settings) -> None:
        self._limits = {"rate limited": settings.throttled, **dict.fromkeys(PASSING, settings.attempts)}
        self._limits |= dict.fromkeys(CONTENT, 2)
        self._settings, self._left = settings, float(settings.retry_reserve)
        self._jitter = np.random.default_rng(0)

    def begin(self) -> None:
        """A new call brings its share of retries."""
        self._left += self._settings.retry_share

    def allows(self, fault: LLMError, seen: int) -> bool:
        """Whether a call that met a fault of this kind `seen` times may try again; takes the retry."""
        if fault.lasting or seen >= self._limits.get(fault.kind, 0):
            return False
        if fault.kind == "rate limited":
            return (fault.retry_after or 0.0) <= self._settings.longest_wait
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def pause(self, fault: LLMError, seen: int) -> float:
        """Seconds before the next attempt: half to all of 0.5, 1, 2, … 30; none where waiting would change nothing."""
        if fault.kind in CONTENT or fault.kind == "rate limited":  # the pacer waits for the latter
            return 0.0
        return min(30.0, 0.5 * 2.0 ** (seen - 1)) * float(self._jitter.uniform(0.5, 1.0))


class Breaker:
    """Opens after `failures` calls in a row that got no answer, so that the rest fail at once instead of slowly.

    After `seconds` one call may try; its answer closes the breaker. A refusal that would meet every call (a wrong key,
    an unknown model) opens it for good.
    """

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._seconds, self._clock = failures, seconds, clock
        self._failures = 0
        self._open_until = float("-inf")
        self._last = ""

    def check(self) -> None:
        """Raise LLMError while open."""
        now = self._clock()
        if now < self._open_until:
            raise LLMError("breaker open", f"the endpoint does not answer; last: {self._last}")
        if self._failures >= self._limit:
            self._open_until = now + self._seconds  # this one tries, the others wait for it

    def answered(self) -> None:
        """Count an answer, even a useless one: the endpoint is up."""
        self._failures = 0
        self._open_until = min(self._open_until, self._clock())

    def failed(self, fault: LLMError) -> None:
        """Count a fault."""
        if fault.kind in CONTENT or fault.kind == "bad request" or (fault.kind == "rate limited" and not fault.lasting):
            self.answered()
            return
        self._failures += 1
        self._last = str(fault)
        if fault.lasting:
            self._open_until = float("inf")
        elif self._failures >= self._limit:
            self._open_until = self._clock() + self._seconds
