"""Where sentences end, in any script."""

from __future__ import annotations

import re

import regex

from hopbench.retrieval.text.words import UNSPACED, clusters

_ABBREVIATIONS = frozenset(
    """mr mrs ms dr st jr sr no vs lt col gen prof rev capt sgt maj hon inc ltd co bros mt ft vol ed op cf ca c b d
    feat""".split()
)
_ENGLISH = r"([.!?])[\"'’”)]*\s+(?=[\"“'(]*[^\W\d_a-z]|[\"“'(]*\d)"
_CLOSERS = r"[\"'\p{Pe}\p{Pf}]*"
_OTHER = re.compile("[…‼⁇-⁉\u0589-\u1dff\u2e00-\U0010ffff]")
_PLAIN_END = re.compile(_ENGLISH)
# The full stops of other scripts need no space, nor do ! and ? before letters that have none.
_END = regex.compile(
    rf"{_ENGLISH}|(…){_CLOSERS}(?:\s+(?=[\"“'(]*[\p{{Lu}}\p{{Lo}}])|(?=[{UNSPACED}]))"
    rf"|([\p{{Sentence_Terminal}}--[.!?]]+{_CLOSERS}|(?<=[{UNSPACED}])[.!?]+{_CLOSERS}(?=[{UNSPACED}]))\s*",
    regex.V1,
)


def sentences(text: str) -> list[str]:
    """Split text at sentence ends, never after an initial or an abbreviation ("J. R. Smith", "St. Louis")."""
    parts: list[str] = []
    begin = 0
    pattern = _END if not text.isascii() and _OTHER.search(text) else _PLAIN_END
    for match in pattern.finditer(text):
        if match.group(1) == "." and _abbreviated(text, begin, match.start()):
            continue
        parts.append(text[begin : match.end()].strip())
        begin = match.end()
    rest = text[begin:].strip()
    return [*parts, rest] if rest else parts


def _abbreviated(text: str, begin: int, dot: int) -> bool:
    start = dot
    while start > begin and (text[start - 1].isalnum() or text[start - 1] == "."):
        start -= 1
    word = text[start:dot]
    return (len(word) == 1 and word.isupper()) or "." in word or word.lower() in _ABBREVIATIONS


def shortened(text: str, most: int) -> str:
    """A text on one line, of at most `most` characters; a longer one is cut between words and ends in "..."."""
    whole = " ".join(text.split())
    if len(whole) <= most:
        return whole
    head = whole[: most - 2].rpartition(" ")[0] or whole[: most - 3]
    if not whole.isascii() and len(head) < most // 2:  # words that long are of a script without spaces
        head = "".join(clusters(whole[: most - 2])[:-1])
    return head + "..."
