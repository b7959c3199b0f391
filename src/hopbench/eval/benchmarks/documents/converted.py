"""Read pages that were turned into HTML from another format: sections keep the ids by which links lead to them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from hopbench.eval.benchmarks.documents.document import Document
from hopbench.eval.benchmarks.documents.html import html_events
from hopbench.eval.benchmarks.documents.markup import Event, Page, outline

_HEADING = re.compile("h[1-6]")
_NOT_SLUG = re.compile(r"[^\w\- ]")
_NO_WORD = re.compile(r"[\W_]+")


def read_converted(
    markup: str, left_out: Iterable[tuple[str, str]] = (), *, title: str = "", remarks: Sequence[str] = ()
) -> Document:
    """Read the sections of HTML whose headings state their ids; `left_out` are parts of the source, kind and text.

    The title is the one given, else the first heading of level 1, else the first heading.
    """
    page = Page(_anchored(html_events(markup)))
    for kind, text in left_out:
        page.leave_out(kind, text)
    blocks = page.blocks
    headings = [block for block in blocks if block.level]
    first = next((block.text for block in headings if block.level == 1), headings[0].text if headings else "")
    return Document(title.strip() or first, outline(blocks), tuple(remarks), page.omissions)


def _anchored(events: Sequence[Event]) -> list[Event]:
    """State each heading's id as its anchor, and lead links within the page to the heading above their target.

    A heading without an id gets the one that GitHub makes of its words. A target that is no id may be a heading's
    words, in any case and with any signs between them.
    """
    anchors, words, used = dict[str, str](), dict[str, str](), Counter[str]()
    made: list[Event] = []
    anchor = ""
    for place, event in enumerate(events):
        identity = event.attributes.get("id", "") if event.kind == "start" else ""
        if event.kind == "start" and _HEADING.fullmatch(event.value):
            text = _text_of(events, place)
            anchor = identity or _slug(text, used)
            for name in (text, anchor):
                words.setdefault(_NO_WORD.sub("", name.lower()), anchor)
            made.append(event._replace(attributes={**event.attributes, "anchor": anchor}))
        else:
            made.append(event)
        if identity and anchor:
            anchors.setdefault(identity, anchor)
    for place, event in enumerate(made):
        target = event.attributes.get("href", "")
        if target.startswith("#"):
            found = anchors.get(target[1:]) or words.get(_NO_WORD.sub("", target.lower()), target[1:])
            made[place] = event._replace(attributes={**event.attributes, "href": f"#{found}"})
    return made


def _text_of(events: Sequence[Event], begin: int) -> str:
    """The words of the heading that begins at an event."""
    texts = []
    for event in islice(events, begin + 1, None):
        if event.kind == "end" and event.value == events[begin].value:
            break
        texts += [event.value] if event.kind == "text" else []
    return "".join(texts)


def _slug(text: str, used: Counter[str]) -> str:
    name = _NOT_SLUG.sub("", text.lower()).strip().replace(" ", "-")
    used[name] += 1
    return f"{name}-{used[name] - 1}" if used[name] > 1 else name
