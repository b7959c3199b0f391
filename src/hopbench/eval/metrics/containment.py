r"""Whether a text contains an answer: the rule of every `has_answer` metric (docs/metrics.md states it).

Source: `SimpleTokenizer` and `has_answer` of DPR (https://github.com/facebookresearch/DPR): the uncased tokens
`[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]` of an answer stand in the text one after the other. Two things are added: marks that
only differ in typography are one mark, and scripts that join words are compared character by character.

Answers are normalised exactly as by `normalize_answer` of HotpotQA's hotpot_evaluate_v1.py, itself from SQuAD
(https://github.com/hotpotqa/hotpot).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import regex

from hopbench.retrieval.text.words import UNSPACED

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]+")

UNSHOWABLE = frozenset({"yes", "no", "noanswer"})
"""Answers the script treats apart: no passage "contains" a yes, so containment does not apply to them."""


@lru_cache(maxsize=1 << 15)  # trials on one corpus show the same passages again and again
def normalise_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, without articles, with single spaces: "The U.S.A." → "usa"."""
    return " ".join(_ARTICLES.sub(" ", _PUNCTUATION.sub("", text.lower())).split())


RULE = "dpr-1"  # changes with the rule, in what identifies stored results

_JOINED = rf"[[{UNSPACED}\p{{Hangul}}]&&\p{{L}}]"  # Korean writes particles onto its words
_TOKEN = regex.compile(rf"(?V1){_JOINED}\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}]--{_JOINED}]+|[^\p{{Z}}\p{{C}}]")
_ASCII_TOKEN = regex.compile(r"[a-z0-9]+|[!-~]")
_WORD = regex.compile(r"[\p{L}\p{N}]")
_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}\u0640]")  # soft hyphen, joiners …; Arabic's stretching
_SPELLED = {
    **dict.fromkeys("`´‘’‚‛′‹›ʹʻʼ՚׳", "'"),
    **dict.fromkeys("“”„‟″«»״", '"'),
    **dict.fromkeys("\u2212\u207b\uff5e", "-"),  # minus signs and the wide tilde; Unicode's dashes are in `_Marks`
    **dict.fromkeys("•‧・∙⋅", "·"),
    "%": " percent ",
    "İ": "i",
}


@lru_cache(maxsize=1 << 15)  # trials on one corpus show the same passages again and again
def match_tokens(text: str) -> str:
    """The tokens of a text with a space before and after each: "O’Neill’s 45%" → " o ' neill ' s 45 percent "."""
    text = unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold()
    tokens = (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)
    return f" {' '.join(tokens)} ".replace(" per cent ", " percent ")


def scorable_answers(answers: Iterable[str]) -> tuple[str, ...]:
    """Match tokens of the answers that a text can contain; none if the first (the answer itself) is yes or no."""
    known = list(dict.fromkeys(answers))
    if known and normalise_answer(known[0]) in UNSHOWABLE:
        return ()
    shown = (match_tokens(one) for one in known if _WORD.search(one) and normalise_answer(one) not in UNSHOWABLE)
    return tuple(dict.fromkeys(shown))


def contains_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether the text holds the match tokens of one of the answers in a row ("10" is not in "1910")."""
    tokens = match_tokens(text)
    return any(answer in tokens for answer in answers)


class _Marks(dict[int, str]):
    """Character, by its code point → the character itself, or what stands for a typographic mark."""

    def __missing__(self, code: int) -> str:
        character = text = chr(code)
        category = unicodedata.category(character)
        if character in _SPELLED:
            text = _SPELLED[character]
        elif _INVISIBLE.match(character):
            text = ""
        elif category == "Pd":
            text = "-"
        elif category == "Nd":
            text = str(unicodedata.decimal(character))
        elif category in ("No", "So") and not unicodedata.decomposition(character).startswith("<sub>"):
            plain = unicodedata.normalize("NFKC", character).replace("⁄", "/")
            text = character if plain == character else f" {plain} "  # ™ ½ ² ℃ are no letters of the word beside them
        self[code] = text
        return text


_MARKS = _Marks()
