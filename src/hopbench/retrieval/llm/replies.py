"""Parsing of replies: the answer without the thinking before it, JSON within fences and words, missing usage counted.

The one parser for all callers: strategies, reader, extractor, judge, and libraries that hold the gate's client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.llm.faults import LLMError, from_body
from hopbench.retrieval.text.model_tokens import count_tokens

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion
    from openai.types.chat.chat_completion import Choice

LIMITS = ("max_tokens", "max_completion_tokens")
LIMIT_FLAG = "--completion-tokens"
_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "model_length"})
_THINKING = ("reasoning_content", "reasoning", "thinking")  # a message's fields, by server
_THINKING_PARTS = frozenset({"thinking", "reasoning"})
_ADDRESS = "check the address (does it end with /v1?) and what answers there"


def limit_of(request: Mapping[str, Any]) -> int | None:
    """The completion tokens that a request allows."""
    return next((request[name] for name in LIMITS if request.get(name)), None)


def schema_of(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The JSON schema that a request asks for."""
    form = (request.get("response_format") or {}).get("json_schema")
    return None if form is None else form["schema"]


def well_formed(completion: object, key: str = "") -> ChatCompletion:
    """The endpoint's answer, if it has a completion's form: openai's client checks no types. Raises LLMError."""
    from openai.types.chat import ChatCompletion

    if not isinstance(completion, ChatCompletion):
        shown = " ".join(str(completion).split())[:60]
        raise LLMError("server error", f"the answer is no completion but {shown!r}: {_ADDRESS}")
    if body := _error_body(completion):
        raise from_body(body, key)
    if problem := _form_error(completion):
        raise LLMError("wrong schema", f"the answer is no completion ({problem}): {_ADDRESS}")
    return completion


def read(completion: ChatCompletion, request: Mapping[str, Any]) -> ChatCompletion:
    """The completion with the bare answer as its content; JSON has the requested form.

    Thinking goes into `reasoning_content`, its tokens into `usage`; where usage is missing it is counted. A reply that
    was read before stays as it is. Raises LLMError where there is no usable answer.
    """
    choice = completion.choices[0] if completion.choices else None
    message = choice.message if choice else None
    if choice is None or message is None:
        raise LLMError("empty choice", "the reply has no content")
    if message.refusal:
        raise LLMError("bad request", f"the model refused: {message.refusal[:200]}")
    schema, cut = schema_of(request), choice.finish_reason in _CUT
    thinking, text = _parts(message)
    if not text and thinking and not cut and (schema is not None or not message.content):
        # A server whose parser takes the whole reply for thinking: it ended, so it has the answer.
        thinking, text = "", thinking
    _count_usage(completion, request, thinking, text)
    if not text and message.tool_calls:
        return completion
    if not text:
        raise _empty(choice, completion, request, thinking)
    if schema is None and cut:  # a model whose thinking begins in the prompt's template shows no mark before it ends
        raise _cut("the text ends too early", completion, request)
    message.content = text if schema is None else _structured(text, schema, choice, completion, request)
    if thinking:
        setattr(message, "reasoning_content", thinking)  # noqa: B010 - openai's type has no such field
    return completion


def _parts(message: Any) -> tuple[str, str]:
    """Thinking and answer of a message, wherever its server puts them."""
    fields = (getattr(message, name, None) for name in _THINKING)
    thinking = next((field.strip() for field in fields if isinstance(field, str) and field.strip()), "")
    texts: dict[bool, list[str]] = {True: [], False: []}
    for part in message.content if isinstance(message.content, list) else [message.content]:
        is_thinking = isinstance(part, Mapping) and part.get("type") in _THINKING_PARTS
        texts[is_thinking].extend(_texts(part))
    before, text = split_thinking("".join(texts[False]))
    return "\n".join(filter(None, (thinking, *texts[True], before))), text if text.strip() else ""


def _texts(part: Any) -> Iterator[str]:
    """The texts of a content part, which may be nested."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for one in part:
            yield from _texts(one)
    elif isinstance(part, Mapping):
        yield from _texts(next((part[name] for name in ("text", *_THINKING) if part.get(name)), None))


def _structured(
    text: str, schema: Mapping[str, Any], choice: Choice, completion: ChatCompletion, request: Mapping[str, Any]
) -> str:
    """The JSON of a reply: as it stands where that is all of the reply."""
    value, problem = find_value(text, schema)
    if problem is None:
        with suppress(ValueError):
            if parsed(text) == value:
                return text
        return json.dumps(value, ensure_ascii=False)
    early, what = problem_of(text) or (False, problem)
    if choice.finish_reason in _CUT or early:
        raise _cut("the JSON ends too early", completion, request)
    raise LLMError("wrong schema", what)


def _empty(choice: Choice, completion: ChatCompletion, request: Mapping[str, Any], thinking: str) -> LLMError:
    if thinking:
        return _cut(f"the reply ends within its thinking ({count_tokens(thinking):,} tokens)", completion, request)
    if choice.finish_reason in _CUT:
        return _cut("the reply has no content", completion, request)
    if choice.finish_reason == "content_filter":
        return LLMError("bad request", "the endpoint's content filter left nothing of the reply")
    return LLMError("empty choice", "the reply has no content")


def _cut(what: str, completion: ChatCompletion, request: Mapping[str, Any]) -> LLMError:
    """A reply that was cut. One that spent all its tokens would do so again."""
    limit, cut = limit_of(request), completion.choices[0].finish_reason in _CUT
    used = completion.usage.completion_tokens if completion.usage else 0
    spent = cut and limit is not None and used >= limit
    end = f" at the limit of {limit:,} completion tokens: set a higher limit with {LIMIT_FLAG}" if cut and limit else ""
    return LLMError("truncated", f"{what}{end}", lasting=spent)


def _count_usage(completion: ChatCompletion, request: Mapping[str, Any], thinking: str, text: str) -> None:
    """Fill in what the endpoint does not report: tokens of the call, and those of thinking."""
    from openai.types.completion_usage import CompletionTokensDetails, CompletionUsage

    usage = completion.usage
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        sent = sum(count_tokens(str(one.get("content") or "")) for one in request.get("messages", ()))
        told = count_tokens(thinking) + count_tokens(text)
        usage = CompletionUsage(prompt_tokens=sent, completion_tokens=told, total_tokens=sent + told)
        completion.usage = usage
    if thinking and not isinstance(getattr(usage.completion_tokens_details, "reasoning_tokens", None), int):
        usage.completion_tokens_details = CompletionTokensDetails(reasoning_tokens=count_tokens(thinking))


def _error_body(completion: ChatCompletion) -> Mapping[str, Any] | None:
    """The error that an endpoint sends in place of a completion, or in a choice of one."""
    body = dict(completion.model_extra or {})
    if body.get("error") or completion.object == "error":  # type: ignore[comparison-overlap]
        return body
    if not completion.choices and (body.get("detail") or body.get("message")):
        return body
    choices = completion.choices if isinstance(completion.choices, list) else []
    return next(({"error": error} for one in choices if (error := getattr(one, "error", None))), None)


def _form_error(completion: Any) -> str | None:
    """The part of an answer that has the wrong type, if any."""
    choices, usage = completion.choices, completion.usage
    if choices is not None and not isinstance(choices, list):
        return "choices is no list"
    for choice in choices or ():
        message: Any = getattr(choice, "message", None)
        if not all(hasattr(message, name) for name in ("content", "refusal", "tool_calls")):
            return "a choice has no message"
        if not isinstance(message.content, str | list | None) or not isinstance(message.refusal, str | None):
            return "a message's content is no text"
        if not isinstance(message.tool_calls, list | None):
            return "a message's tool_calls is no list"
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")] if usage else []
    if not all(count is None or (isinstance(count, int) and count >= 0) for count in counts):
        return "usage has no counts of tokens"
    return None


_NAMES = r"(?:seed:)?think(?:ing)?|thoughts?|reasoning"
_OPENING = re.compile(rf"<(?:{_NAMES})>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>", re.IGNORECASE)
_CLOSING = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>", re.IGNORECASE)
# OpenAI's harmony format, which some servers pass on as it is, or without its marks (`analysis…assistantfinal…`).
_FINAL = re.compile(r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_ANALYSIS = re.compile(r"<\|channel\|>\s*(?:analysis|commentary)\b[^<]*<\|message\|>")
_BARE_FINAL = re.compile(r"\s*analysis.*?assistantfinal", re.DOTALL)
_MARKS = re.compile(r"<\|[\w ]+\|>")  # that end a turn or begin the answer


def split_thinking(reply: str) -> tuple[str, str]:
    """Thinking and answer. A reply that is JSON, or has no mark, is all answer; a block without end is all thinking.

    >>> split_thinking("<think>It asks for a town.</think> Torvik")
    ('It asks for a town.', 'Torvik')
    """
    reply = reply.lstrip("\ufeff")
    with suppress(ValueError, RecursionError):
        json.loads(reply, strict=False)
        return "", reply  # a mark within JSON is part of a text that it quotes
    for split in (_harmony, _blocks):
        thinking, answer = split(reply)
        if thinking or answer != reply:
            return thinking.strip(), _MARKS.sub("", answer).strip().lstrip("\ufeff")
    return "", reply


def _harmony(reply: str) -> tuple[str, str]:
    final = list(_FINAL.finditer(reply))
    if final:
        return _MARKS.sub(" ", reply[: final[-1].start()]), reply[final[-1].end() :]
    if bare := _BARE_FINAL.match(reply):
        return bare[0], reply[bare.end() :]
    if analysis := _ANALYSIS.search(reply):
        return reply[analysis.end() :], reply[: analysis.start()].removeprefix("<|start|>assistant")
    return "", reply


def _blocks(reply: str) -> tuple[str, str]:
    """Blocks between marks; the opening mark may be in the prompt's template, so the reply has the closing one only."""
    thinking, answer, at = [], [], 0
    while opening := _OPENING.search(reply, at):
        answer.append(reply[at : opening.start()])
        closing = _CLOSING.search(reply, opening.end())
        thinking.append(reply[opening.end() : closing.start() if closing else len(reply)])
        at = closing.end() if closing else len(reply)
    answer.append(reply[at:])
    rest = "".join(answer)
    closings = list(_CLOSING.finditer(rest))
    if closings:
        thinking.append(rest[: closings[-1].start()])
        rest = rest[closings[-1].end() :]
    return "\n".join(block.strip() for block in thinking), rest


_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)  # models write line ends into texts
_START = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


def parsed(text: str) -> Any:
    """The JSON that a text is, fenced or not. Raises ValueError."""
    fenced = _FENCE.fullmatch(text)
    return _DECODER.decode(fenced[1] if fenced else text)


def find_value(text: str, schema: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The last value in a text that has the form of the schema; without one, the problem of the last value."""
    import jsonschema

    validator, problem = jsonschema.Draft202012Validator(schema), "no JSON"
    for source in (text, _TRAILING_COMMA.sub(lambda match: match[1] or "", text)):
        for found in reversed(list(_values(source))):
            for value in (found, *(found if isinstance(found, list) and len(found) == 1 else ())):
                known = _known_fields(value, schema, schema.get("$defs", {}))
                error = next(validator.iter_errors(known), None)
                if error is None:
                    return known, None
                if problem == "no JSON":
                    problem = f"{error.json_path}: {error.message[:200]}"
    return None, problem


def problem_of(text: str) -> tuple[bool, str] | None:
    """Whether the JSON in a text ends too early, and what is wrong with it; None where it can be parsed."""
    start = _START.search(text)
    try:
        _DECODER.raw_decode(text, start.start() if start else 0)
    except json.JSONDecodeError as error:
        early = start is not None and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"))
        return early, f"no JSON ({error.msg} at {error.pos})"
    except RecursionError:
        return False, "no JSON (it is nested too deeply)"
    return None


def _values(text: str) -> Iterator[Any]:
    """The outermost objects and lists in a text, in their order."""
    with suppress(ValueError, RecursionError):
        whole = _DECODER.decode(text.strip())
        text = whole if isinstance(whole, str) else text  # JSON that was written as a JSON text once more
    at = 0
    while start := _START.search(text, at):
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except ValueError:
            at = start.end()
        except RecursionError:
            return
        else:
            yield value


def _known_fields(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """The value without the fields that a closed object of the schema does not have."""
    if "$ref" in schema:
        return _known_fields(value, definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    if isinstance(value, list):
        return [_known_fields(one, schema.get("items") or {}, definitions) for one in value]
    fields = schema.get("properties")
    if not isinstance(value, dict) or fields is None:
        return value
    closed = schema.get("additionalProperties") is False
    return {
        name: _known_fields(part, fields.get(name, {}), definitions)
        for name, part in value.items()
        if name in fields or not closed
    }
