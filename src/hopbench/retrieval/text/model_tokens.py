"""Count and cut texts by the tokens of a language model, in any script."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import regex
import toktok

from hopbench.retrieval.text.words import UNSPACED

TOKENIZER = "o200k_base"
"""The vocabulary (GPT-4o and later, gpt-oss), part of a graph's build key: it decides where passages are split."""

USUAL_TOKEN, LONGEST_TOKEN = 8, 128  # characters
LONGEST_WORD = 100  # characters; longer runs without spaces are addresses and data, which may be cut inside
LONGEST_CHARACTER = 32  # code points of a letter with its marks, or of an emoji

_BREAK = regex.compile(rf"(?r)[\s{UNSPACED}]")
_BLANKS = regex.compile(r"\s*\n|\s*")  # a line that begins a piece keeps its indentation
_CHARACTER = regex.compile(r"\X")


def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return _truncated(text, sys.maxsize)[1]


def first_tokens(text: str, limit: int) -> str:
    """Cut a text where it would exceed `limit` tokens, before a word; in scripts without spaces before a character.

    Blanks before the cut are left out. The result is empty where the first word does not fit.
    """
    return _cut(text, limit, _word_start)


def pieces(text: str, limit: int) -> Iterator[str]:
    """Cut a text into pieces of at most `limit` tokens: inside words that have more; only a character may have more."""
    begin, end = _BLANKS.match(text).end(), len(text.rstrip())
    while begin < end:
        window = text[begin : min(end, begin + limit * LONGEST_TOKEN + 1)]
        piece = first_tokens(window, limit) or _cut(window, limit, _character_start) or window[0]
        yield piece
        begin = _BLANKS.match(text, begin + len(piece)).end()


def _cut(text: str, limit: int, start_of: Callable[[str, int], int]) -> str:
    window = text[: limit * USUAL_TOKEN + 1]
    start, tokens = _truncated(window, limit)
    if tokens <= limit and len(window) < len(text):
        start, tokens = _truncated(text[: limit * LONGEST_TOKEN + 1], limit)
    if tokens <= limit:
        return text[: len(start)]
    end = len(start)
    while end > 0:
        start = text[: start_of(text, end)].rstrip()
        if count_tokens(start) <= limit:
            return start
        end = len(start) - 1
    return ""


def _truncated(text: str, limit: int) -> tuple[str, int]:
    """The longest beginning of at most `limit` tokens, and the tokens of the whole text."""
    try:
        found: tuple[str, int] = toktok.truncate(text, limit, TOKENIZER)
    except UnicodeEncodeError:  # lone surrogates, which JSON can carry, count as question marks
        return _truncated(text.encode(errors="replace").decode(), limit)
    return found


def _word_start(text: str, place: int) -> int:
    """Where the word that holds a place begins."""
    if not _BREAK.match(text[place]):
        last = _BREAK.search(text, max(0, place - LONGEST_WORD), place)
        place = last.end() if last else 0 if place <= LONGEST_WORD else place
    return _character_start(text, place)


def _character_start(text: str, place: int) -> int:
    """Where the character that holds a place begins: a letter with its marks is one."""
    window = text[max(0, place - LONGEST_CHARACTER) : place + 1]
    return place + 1 - len(_CHARACTER.findall(window)[-1])
