"""Failures of calls and faults of replies: each has a kind, and a message without secrets."""

from __future__ import annotations

import json
import re
import socket
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

from hopbench.retrieval.support.errors import HopBenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import APIStatusError
    from openai.types.chat import ChatCompletion

Kind = Literal[
    "rate limited",  # 429, and 503 with Retry-After
    "server error",  # another status of 500 and above
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
_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


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
    ) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.unreachable = unreachable  # no connection could be made at all
        self.retry_after = retry_after
        self.lasting = lasting or kind in ("refused", "bad request", "breaker open", "budget reached")


def from_openai(error: Exception, key: str) -> LLMError:
    """The client's exception as an LLMError; `key` is masked in an answer that repeats it."""
    import openai

    message = " ".join(str(error).split())
    message = (message.replace(key, "***") if key else message)[:300]
    if isinstance(error, openai.APITimeoutError):
        return LLMError("timeout", "no answer in time")
    if isinstance(error, openai.APIStatusError):
        return _from_status(error, message)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        refused = _refused(error)
        reason = f"{message} ({refused or type(cause).__name__})" if cause else message
        return LLMError("disconnected", reason, unreachable=refused is not None)
    return LLMError("truncated", f"the answer is no completion ({type(error).__name__}: {message})")


def _refused(error: BaseException | None) -> str | None:
    """Why no connection could be made: nothing listens there, or there is no such host. None for a connection lost."""
    while error is not None:
        if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
            return error.strerror or str(error)
        error = error.__cause__ or error.__context__
    return None


def _from_status(error: APIStatusError, message: str) -> LLMError:
    status = error.status_code
    wait = retry_after(error.response.headers)
    if status == 429 or (status == 503 and wait is not None):
        return LLMError("rate limited", message, retry_after=wait, lasting=error.code == "insufficient_quota")
    if status >= 500:
        return LLMError("server error", message)
    return LLMError("refused" if status in (401, 403, 404) else "bad request", message)


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


def well_formed(completion: object) -> ChatCompletion:
    """The answer, if it has a completion's form: openai's client checks no types. Raises LLMError."""
    from openai.types.chat import ChatCompletion

    if not isinstance(completion, ChatCompletion):
        shown = " ".join(str(completion).split())[:60]
        raise LLMError("server error", f"the answer is no completion but {shown!r}: {_ADDRESS}")
    if problem := _form_error(completion):
        raise LLMError("wrong schema", f"the answer is no completion ({problem}): {_ADDRESS}")
    return completion


_ADDRESS = "check the address (does it end with /v1?) and what answers there"


def _form_error(completion: Any) -> str | None:
    """The part of an answer that has the wrong type, if any."""
    choices, usage = completion.choices, completion.usage
    if choices is not None and not isinstance(choices, list):
        return "choices is no list"
    for choice in choices or ():
        message: Any = getattr(choice, "message", None)
        if not all(hasattr(message, name) for name in ("content", "refusal", "tool_calls")):
            return "a choice has no message"
        if not all(isinstance(text, str | None) for text in (message.content, message.refusal)):
            return "a message's content is no text"
        if not isinstance(message.tool_calls, list | None):
            return "a message's tool_calls is no list"
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")] if usage else []
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return "usage has no counts of tokens"
    return None


def content_of(completion: ChatCompletion, schema: Mapping[str, Any] | None, max_tokens: int | None) -> str:
    """The text of a reply, checked against the schema where one was asked for; raises LLMError.

    A reply that spent all of `max_tokens` would do so again.
    """
    choices = getattr(completion, "choices", None)
    if completion is None or isinstance(completion, str):
        raise LLMError("truncated", "the answer is no completion")
    choice = choices[0] if choices else None
    message = choice.message if choice else None
    if message is not None and message.refusal:
        raise LLMError("bad request", f"the model refused: {message.refusal[:200]}")
    if message is None or (not message.content and not message.tool_calls):
        raise LLMError("empty choice", "the reply has no content")
    text = message.content or ""
    if schema is not None:
        used = completion.usage.completion_tokens if completion.usage else None
        cut = choice is not None and choice.finish_reason == "length"
        spent = cut and max_tokens is not None and used is not None and used >= max_tokens
        try:
            check_schema(parsed(text), schema)
        except json.JSONDecodeError as error:
            if cut or error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                limit = f" at max_tokens = {max_tokens}" if spent else ""
                raise LLMError("truncated", f"the JSON ends too early{limit}", lasting=spent) from None
            raise LLMError("wrong schema", f"no JSON ({error.msg} at {error.pos})") from None
    return text


def parsed(text: str) -> Any:
    """The JSON in a reply; endpoints that know no schema like to fence it."""
    fenced = _FENCE.fullmatch(text)
    return json.loads(fenced[1] if fenced else text)


def check_schema(value: Any, schema: Mapping[str, Any]) -> None:
    """Raise LLMError where `value` does not have the form that was asked for."""
    import jsonschema

    error = next(jsonschema.Draft202012Validator(schema).iter_errors(value), None)
    if error is not None:
        raise LLMError("wrong schema", f"{error.json_path}: {error.message[:200]}")
