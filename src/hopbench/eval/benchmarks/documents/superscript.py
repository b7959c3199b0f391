"""Superscripts as plain text: a footnote's mark stands apart from its word, an exponent is written as one."""

from __future__ import annotations

import re

_RAISED = str.maketrans("0123456789+-−=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾")
_EXPONENT = re.compile(r"[\d+\-−=()]+")
_NUMBERS = re.compile(r"\[?\d+(?:\s*[,;–-]\s*\d+)*\]?")
_WORD = re.compile(r"[^\W\d_]+\Z")
_AFTER_SENTENCE = re.compile(r"[.,;:!?…。、»”\"'’]\Z")
_BASES = frozenset("km cm mm dm nm µm μm ft in yd mi sec ms kg mol mc px rad sin cos tan log ln exp".split())


def superscript(before: str, text: str, *, linked: bool) -> str:
    """The text of a `<sup>` after `before`: ` [1]` for a footnote's mark, `⁶` for an exponent, else as it is.

    A mark is `linked`, or a number after a word or a sentence's end; after a number, a unit (`km²`) or one Latin or
    Greek letter (`x²`) it is an exponent. Other superscripts belong to their word, as in 1st.
    """
    mark = " ".join(text.split())
    word = _WORD.search(before)
    base = word is not None and (word[0].lower() in _BASES or (len(word[0]) == 1 and ord(word[0]) < 0x400))
    after_word = (word is not None and not base) or _AFTER_SENTENCE.search(before) is not None
    if mark and (linked or (after_word and _NUMBERS.fullmatch(mark))):
        return f" [{mark.strip('[]() ')}]" if mark.strip("[]() ") else f" {mark}"
    if _EXPONENT.fullmatch(mark):
        return mark.translate(_RAISED)
    return text
