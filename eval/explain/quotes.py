"""The sentence in which a passage names an entity, for readers of a path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from hopbench.retrieval.text import sentences, split_qualifier

LONGEST = 240  # characters shown on either side of the mention


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence around a mention."""

    before: str
    mention: str
    after: str


def quote(title: str, text: str, name: str) -> Quote | None:
    """The first sentence of the text (else the title) that spells `name`, or the part of it before a comma.

    None where neither is spelled so, as when an alias was meant.
    """
    for spelling in _spellings(name):
        pattern = _pattern(spelling)
        for sentence in (*sentences(text), title):
            found = pattern.search(sentence)
            if found:
                before, after = sentence[: found.start()], sentence[found.end() :]
                return Quote(before[-LONGEST:], found.group(), after[:LONGEST])
    return None


def _spellings(name: str) -> Iterator[str]:
    plain = split_qualifier(name)[0]
    yield plain
    first, comma, _ = plain.partition(",")
    if comma and first.strip():
        yield first.strip()


@lru_cache(maxsize=4096)
def _pattern(spelling: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(spelling)}(?!\w)", re.IGNORECASE)
