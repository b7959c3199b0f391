"""The events of markup, what HTML's elements do to text, and which of them no browser shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Event(NamedTuple):
    """`kind` is start, end, text or comment; `value` the element's name, or the text."""

    kind: str
    value: str
    attributes: Mapping[str, str] = {}


HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    """address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form head header hgroup hr html legend li main menu nav ol p pre search section summary table tbody
    tfoot thead title tr ul""".split()
) | frozenset(HEADINGS)
SPACED = frozenset("button img input label meter optgroup option output progress select textarea".split())
"""Stand apart from the text around them, within a line."""

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
SKIPPED = {
    "script": "scripts",
    "style": "styles",
    "nav": "navigation",
    "template": "templates",
    "svg": "drawings",
    **dict.fromkeys(("select", "datalist"), "lists of choices"),
    **dict.fromkeys(("noscript", "iframe", "object", "audio", "video", "canvas"), "substitutes for what is not shown"),
}
_HIDDEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE)
_CELLS = frozenset("td th tr tbody thead tfoot".split())
TABLE_PARTS = _CELLS | {"table"}
_ENDED_BY: Mapping[str, frozenset[str]] = {
    "p": BLOCKS - {"br"},
    "li": frozenset({"li"}),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd"})),
    **dict.fromkeys(("td", "th"), _CELLS),
    "tr": _CELLS - {"td", "th"},
    **dict.fromkeys(("thead", "tbody", "tfoot"), _CELLS - {"td", "th", "tr"}),
}
"""Elements whose end tag may be left out → the elements that end them."""
_INLINE_DEPTH = 50  # how many inline elements are looked through for one that a start tag ends


def _kind_left_out(tag: str, attributes: Mapping[str, str]) -> str:
    """Name an element that is left out; empty for one that is shown.

    `aria-hidden` elements are shown, and `hidden="until-found"` is there for a search in the page.
    """
    if tag in SKIPPED:
        return SKIPPED[tag]
    if (not attributes and tag != "dialog") or tag in ("html", "body"):  # a page is shown when its script has run
        return ""
    hidden = attributes.get("hidden", "until-found").strip().lower() != "until-found"
    if hidden or _HIDDEN.search(attributes.get("style", "")) or (tag == "dialog" and "open" not in attributes):
        return "hidden elements"
    return ""


def skipped_regions(events: Sequence[Event]) -> dict[int, tuple[str, int]]:
    """Map where an element begins that is left out to its kind and the event after its end.

    One that is never closed is no region: its text would reach to the end of the page.
    """
    kinds = {
        place: kind
        for place, event in enumerate(events)
        if event.kind == "start" and (kind := _kind_left_out(event.value, event.attributes))
    }
    regions: dict[int, tuple[str, int]] = {}
    elements: list[tuple[str, int]] = []
    opened = Counter[str]()

    def close(depth: int, end: int, last: int) -> None:
        for at in range(depth, len(elements)):
            tag, begin = elements[at]
            opened[tag] -= 1
            if begin in kinds and (at == depth or tag in _ENDED_BY):
                regions[begin] = kinds[begin], last if at == depth else end
        del elements[depth:]

    for place, event in enumerate(events if kinds else ()):
        tag = event.value
        if event.kind == "start":
            if (depth := _ended(tag, elements)) is not None:
                close(depth, place, place)
            if tag not in VOID:
                elements.append((tag, place))
                opened[tag] += 1
            elif place in kinds:
                regions[place] = kinds[place], place + 1
        elif event.kind == "end" and opened[tag] > 0:
            depth = next(at for at in range(len(elements) - 1, -1, -1) if elements[at][0] == tag)
            close(depth, place, place + 1)
    for tag, begin in elements:
        if begin in kinds and tag in _ENDED_BY:
            regions[begin] = kinds[begin], len(events)
    return regions


def _ended(tag: str, elements: Sequence[tuple[str, int]]) -> int | None:
    """The depth of the open element that a start tag ends."""
    if tag not in BLOCKS and tag not in _CELLS:
        return None
    for depth in range(len(elements) - 1, max(-1, len(elements) - 1 - _INLINE_DEPTH), -1):
        name = elements[depth][0]
        if tag in _ENDED_BY.get(name, ()):
            return depth
        if name in BLOCKS or name in _CELLS or name in SKIPPED:
            return None
    return None


_RAISED = str.maketrans("0123456789+-−=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾")
_EXPONENT = re.compile(r"[\d+\-−=()]+")
_NUMBERS = re.compile(r"\[?\d+(?:\s*[,;–-]\s*\d+)*\]?")
_WORD = re.compile(r"[^\W\d_]+\Z")
_AFTER_SENTENCE = re.compile(r"[.,;:!?…。、»”\"'’]\Z")
_BASES = frozenset("km cm mm dm nm µm μm ft in yd mi sec ms kg mol mc px rad sin cos tan log ln exp".split())


def superscript(before: str, text: str, *, linked: bool) -> str:
    """Write a `<sup>` after `before`: ` [1]` for a footnote's mark, `⁶` for an exponent, else as it is.

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
