"""Splits a reply into the model's thinking and its answer, by the marks that models put between them."""

from __future__ import annotations

import json
import re

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
    if _is_json(reply):
        return "", reply
    for split in (_harmony, _blocks):
        thinking, answer = split(reply)
        if thinking or answer != reply:
            return thinking.strip(), _MARKS.sub("", answer).strip().lstrip("\ufeff")
    return "", reply


def _is_json(text: str) -> bool:
    """A mark within JSON is part of a text that it quotes."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


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
