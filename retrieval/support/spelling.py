"""What a misspelt name was meant to be: a typing error away, or cut short; never merely the least different name."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = re.compile(r"[^\W_]+")
SHORT = 4  # a shorter beginning of a name tells too little


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` misspells, the nearest first, then one of the same letters; None without one.

    >>> meant("max_dpeth", ["max_depth", "max_tags"])
    'max_depth'
    >>> meant("similarity_threshold", ["synonym_threshold"]) is None
    True
    """
    found = [
        (distance, sorted(one) != sorted(name), one)
        for one in known
        if (distance := _distance(name.lower(), one.lower())) is not None
    ]
    return min(found)[2] if found else None


def _distance(name: str, known: str) -> int | None:
    """Edits between two spellings of one name, None where they are two names.

    Names are read word by word, so that no word is taken for another: `max_entities` does not mean `min_entities`.
    """
    from rapidfuzz.distance import OSA

    ours, theirs = _WORDS.findall(name), _WORDS.findall(known)
    if len(ours) != len(theirs):  # "maxdepth", "page_rank"
        ours, theirs = ["".join(ours)], ["".join(theirs)]
    edits = [OSA.distance(one, other) for one, other in zip(ours, theirs, strict=True)]
    slips = [max(1, max(len(one), len(other)) // 4) for one, other in zip(ours, theirs, strict=True)]
    if all(edit <= slip for edit, slip in zip(edits, slips, strict=True)):
        return sum(edits)
    shorter, longer = sorted((name, known), key=len)
    cut = longer.startswith(shorter) and len(shorter) >= max(SHORT, len(longer) / 2)
    return len(longer) - len(shorter) if cut else None
