"""Count and cut texts by the tokens of a language model, in any script."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import regex
import toktok

TOKENIZER = "o200k_base"
"""The vocabulary (GPT-4o and later, gpt-oss), part of a graph's build key: it decides where passages are split."""

UNSPACED = r"\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}"
"""The scripts without spaces between words, for a set of characters in a regular expression."""

LONGEST_TOKEN = 128  # bytes, so no more characters
LONGEST_CHARACTER = 32  # code points of a letter with its marks, or of an emoji

_BREAK = regex.compile(rf"(?r)[\s{UNSPACED}]")
_CHARACTER = regex.compile(r"\X")


def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return _truncated(text, sys.maxsize)[1]


def first_tokens(text: str, limit: int) -> str:
    """Cut a text where it would exceed `limit` tokens: between words, in scripts without spaces between characters.

    A first word over the limit is cut inside. Blanks before the cut are left out.
    """
    window = text[: limit * LONGEST_TOKEN + 1]
    start, tokens = _truncated(window, limit)
    if tokens <= limit:
        return text[: len(start)]
    end = len(start)
    while end > 0:
        start = text[: _boundary(text, end)].rstrip()
        if count_tokens(start) <= limit:
            return start
        end = len(start) - 1
    return ""


def pieces(text: str, limit: int) -> Iterator[str]:
    """Cut a text into pieces of at most `limit` tokens; only a single character may have more."""
    text = text.strip()
    while text:
        piece = first_tokens(text, limit) or text[0]
        yield piece
        text = text[len(piece) :].lstrip()


def _truncated(text: str, limit: int) -> tuple[str, int]:
    """The longest beginning of at most `limit` tokens, and the tokens of the whole text."""
    try:
        found: tuple[str, int] = toktok.truncate(text, limit, TOKENIZER)
    except UnicodeEncodeError:  # lone surrogates, which JSON can carry, count as question marks
        return _truncated(text.encode(errors="replace").decode(), limit)
    return found


def _boundary(text: str, end: int) -> int:
    """Where the word or character that holds position `end` begins."""
    if not _BREAK.match(text[end]) and (last := _BREAK.search(text, 0, end)):
        end = last.end()
    begin = max(0, end - LONGEST_CHARACTER)
    return end + 1 - len(_CHARACTER.findall(text[begin : end + 1])[-1])
