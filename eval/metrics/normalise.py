"""Answer normalisation exactly as the official HotpotQA script does it.

Source: `normalize_answer` in hotpot_evaluate_v1.py (https://github.com/hotpotqa/hotpot), itself from SQuAD.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from functools import lru_cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]+")

UNSHOWABLE = frozenset({"yes", "no", "noanswer"})
"""Answers the script treats apart: no passage "contains" a yes, so containment does not apply to them."""


@lru_cache(maxsize=1 << 15)  # trials on one corpus show the same passages again and again
def normalise_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, without articles, with single spaces: "The U.S.A." → "usa"."""
    return " ".join(_ARTICLES.sub(" ", _PUNCTUATION.sub("", text.lower())).split())


def scorable_answers(answers: Iterable[str]) -> tuple[str, ...]:
    """Normalised answers that a text can contain, in order; none if the first (the answer itself) is yes or no."""
    normalised = tuple(dict.fromkeys(normalise_answer(a) for a in answers))
    if normalised[:1] and normalised[0] in UNSHOWABLE:
        return ()
    return tuple(a for a in normalised if a and a not in UNSHOWABLE)


def contains_answer(normalised_text: str, answers: Iterable[str]) -> bool:
    """Whether whole words of the normalised text spell one of the normalised answers ("10" is not in "1910")."""
    padded = f" {normalised_text} "
    return any(f" {answer} " in padded for answer in answers)
