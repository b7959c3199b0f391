"""Replies and refusals of real endpoints: each mode is one of them, chosen by the model's name.

A mode of `REPLIES` makes a message of the answer's text; one of `REFUSALS` refuses requests until they suit it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Body = dict[str, Any]
Message = dict[str, Any]


def _text(before: str = "", after: str = "") -> Callable[[str], Message]:
    return lambda text: {"content": f"{before}{text}{after}"}


REPLIES: Mapping[str, Callable[[str], Message]] = {
    "think": _text("<think>\nThe user wants {JSON}.\n</think>\n\n"),
    "thinkend": _text("Let me see what is asked.\n</think>\n"),
    "thinking": _text("<thinking>It says </think> somewhere.</thinking>"),
    "magistral": _text("[THINK]Hm.[/THINK]"),
    "begin-of-thought": _text("<|begin_of_thought|>Hm.<|end_of_thought|>"),
    "harmony": _text(
        "<|channel|>analysis<|message|>They want JSON.<|end|><|start|>assistant<|channel|>final "
        "<|constrain|>json<|message|>",
        "<|return|>",
    ),
    "harmony-bare": _text("analysisThey want JSON.assistantfinal"),
    "fence": _text("```json\n", "\n```"),
    "fencetext": _text("Here is the JSON you asked for:\n```json\n", "\n```\nLet me know!"),
    "leading": _text("Sure! "),
    "trailing": _text(after="\n\nI hope this helps."),
    "draft": _text('A draft: {"draft": [1, 2]}. The answer:\n'),
    "bom": _text("\ufeff"),
    "listwrap": _text("[", "]"),
    "quoted": lambda text: {"content": json.dumps(text)},
    "comma": lambda text: {"content": text.removesuffix("}") + ",}"},
    "extra": lambda text: {"content": json.dumps({**json.loads(text), "note": "x"})},
    "reasoning": lambda text: {"content": None, "reasoning_content": text},
    "openrouter": lambda text: {"content": text, "reasoning": "They want JSON."},
    "vllm": lambda text: {"content": f"\n\n{text}", "reasoning_content": "They want JSON."},
    "parts": lambda text: {"content": [{"type": "text", "text": text}]},
    "mistral": lambda text: {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "They want JSON."}]},
            {"type": "text", "text": text},
        ]
    },
}
THINKING = ("think", "thinkend", "thinking", "magistral", "begin-of-thought", "harmony", "harmony-bare")
THINKING += ("openrouter", "vllm", "mistral")
"""The modes whose replies have thinking beside the answer."""


def completion(mode: str, text: str, body: Body) -> Body:
    """A completion in a mode; `nousage` and `nullfr` lack a part of it."""
    words = sum(len(str(one["content"]).split()) for one in body["messages"])
    usage = {"prompt_tokens": words, "completion_tokens": len(text.split()), "total_tokens": 0}
    message = REPLIES.get(mode, _text())(text)
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": None if mode == "nullfr" else "stop",
    }
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": None if mode == "nousage" else usage,
    }


Refused = tuple[int, Any]


def _openai(message: str, param: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


def _form(body: Body) -> str | None:
    return (body.get("response_format") or {}).get("type")


def _gpt5(body: Body) -> Refused | None:
    if "max_tokens" in body:
        message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        return 400, _openai(message, "max_tokens")
    if body.get("temperature", 1) != 1:
        return 400, _openai("Unsupported value: 'temperature' does not support 0 with this model.", "temperature")
    return None


def _no_schema(message: str, status: int = 400) -> Callable[[Body], Refused | None]:
    return lambda body: (status, _openai(message)) if _form(body) == "json_schema" else None


def _without(name: str, status: int, content: Any) -> Callable[[Body], Refused | None]:
    return lambda body: (status, content) if name in body else None


def _fastapi(name: str) -> Body:
    return {
        "detail": [
            {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 1}
        ]
    }


def _nested(depth: int) -> Any:
    return [_nested(depth - 1)] if depth else "so deep"


def _upstream(body: Body) -> Refused | None:
    """As OpenRouter passes on what a provider refused."""
    raw = json.dumps(_openai("temperature is deprecated for this model."))
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "P"}}
    return (400, {"error": error}) if "temperature" in body else None


REFUSALS: Mapping[str, Callable[[Body], Refused | None]] = {
    "openai/gpt-5-mini": _gpt5,
    "my-deployment": _gpt5,
    "no-schema": _no_schema("This response_format type is unavailable now"),
    "no-schema-words": _no_schema("Structured outputs are not supported by this model"),
    "no-schema-500": _no_schema("guided decoding is not implemented", 501),
    "no-schema-unnamed": lambda body: (400, "Bad Request") if _form(body) == "json_schema" else None,
    "no-format": _without("response_format", 400, {"error": "response_format is not supported"}),
    "old-limit": _without("max_completion_tokens", 422, _fastapi("max_completion_tokens")),
    "no-limit": lambda body: next(
        ((422, _fastapi(one)) for one in ("max_tokens", "max_completion_tokens") if one in body), None
    ),
    "no-temperature": _without(
        "temperature", 400, {"object": "error", "message": "`temperature` must be strictly positive"}
    ),
    "no-effort": _without("reasoning_effort", 400, {"error": ["Unrecognized request argument: reasoning_effort"]}),
    "upstream": _upstream,
    "small": _without("max_tokens", 400, _openai("max_tokens is too large: 100. This model supports at most 50.")),
    "deep": _without("max_tokens", 400, {"error": _nested(400)}),
    "no-system": lambda body: (
        (500, _openai("System role not supported")) if body["messages"][0]["role"] == "system" else None
    ),
}
