"""What HTML's elements mean for the text: which part it, and which a browser does not show."""

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
"""Stand apart from the text beside them, within a line."""

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_SKIPPED = {
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
    """What an element is called among what is left out; empty for one that is shown.

    `aria-hidden` elements are shown, and `hidden="until-found"` is there for whoever searches the page.
    """
    if tag in _SKIPPED:
        return _SKIPPED[tag]
    if (not attributes and tag != "dialog") or tag in ("html", "body"):  # a page is shown when its script has run
        return ""
    hidden = attributes.get("hidden", "until-found").strip().lower() != "until-found"
    if hidden or _HIDDEN.search(attributes.get("style", "")) or (tag == "dialog" and "open" not in attributes):
        return "hidden elements"
    return ""


def skipped_regions(events: Sequence[Event]) -> dict[int, tuple[str, int]]:
    """Where an element begins that is left out → its kind, and the event after its end.

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
        if name in BLOCKS or name in _CELLS or name in _SKIPPED:
            return None
    return None
