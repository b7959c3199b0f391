"""Answer normalisation exactly as the official HotpotQA script does it.

Source: `normalize_answer` in hotpot_evaluate_v1.py (https://github.com/hotpotqa/hotpot), itself from SQuAD.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]+")

UNSHOWABLE = frozenset({"yes", "no", "noanswer"})
"""Answers the script treats apart: no passage "contains" a yes, so containment does not apply to them."""


@lru_cache(maxsize=1 << 15)  # trials on one corpus show the same passages again and again
def normalise_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, without articles, with single spaces: "The U.S.A." → "usa"."""
    return " ".join(_ARTICLES.sub(" ", _PUNCTUATION.sub("", text.lower())).split())
