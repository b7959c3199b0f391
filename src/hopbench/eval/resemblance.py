"""Names that look alike: one written in another Unicode form, as HTML, in another case or with a number's zeros."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping

_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_FRACTION = re.compile(r"(?<=\d)\.0+(?!\d)")


def plain_title(title: str) -> str:
    """A title with its HTML entities as characters, in Unicode's composed form, with single spaces."""
    while "&" in title and (unescaped := html.unescape(title)) != title:
        title = unescaped
    return " ".join((title if title.isascii() else unicodedata.normalize("NFC", title)).split())


def _visible(text: str) -> str:
    return "".join(text.split()).translate({ord(mark): None for mark in text if unicodedata.category(mark) == "Cf"})


_FOLDS: Mapping[str, Callable[[str], str]] = {
    "HTML entities": lambda text: plain_title(text) if "&" in text else text,
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text),
    "white space": _visible,
    "case": str.casefold,
    "a final .0": lambda text: _FRACTION.sub("", text),
    "leading zeros": lambda text: _ZEROS.sub("", text),
}
"""What may differ between names that mean one thing → the text without it."""


def _folded(text: str, *, but: str = "") -> str:
    for name, fold in _FOLDS.items():
        if name != but:
            text = fold(text)
    return text


def looks_like(values: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Of each value that resembles a known one: `'p1' is there, which differs in case`."""
    wanted: dict[str, list[str]] = {}
    for value in values:
        wanted.setdefault(_folded(value), []).append(value)
    found: dict[str, str] = {}
    for one in known if wanted else ():
        for value in wanted.get(_folded(one), ()):
            if value != one:
                found.setdefault(value, _difference(value, one))
    return found


def _difference(value: str, known: str) -> str:
    named = [name for name in _FOLDS if _folded(value, but=name) != _folded(known, but=name)]
    shown = ascii(known) if "Unicode form" in named else repr(known)
    return f"{shown} is there, which differs in {' and '.join(named) or 'how it is written'}"
