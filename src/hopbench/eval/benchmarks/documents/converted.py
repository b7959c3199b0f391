"""Read pages that were turned into HTML from another format: sections keep the ids by which links lead to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hopbench.eval.benchmarks.documents.document import Document
from hopbench.eval.benchmarks.documents.html import html_events
from hopbench.eval.benchmarks.documents.markup import Event, Page, outline

_HEADING = re.compile("h[1-6]")
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

    A target that is no id may be a heading's words, in any case and with any signs between them.
    """
    anchors, words = dict[str, str](), dict[str, str]()
    anchor = ""
    for place, event in enumerate(events):
        identity = event.attributes.get("id", "") if event.kind == "start" else ""
        if event.kind == "start" and _HEADING.fullmatch(event.value):
            anchor = identity
            text = "".join(one.value for one in events[place + 1 : place + 20] if one.kind == "text")
            words.setdefault(_NO_WORD.sub("", text.lower()), anchor)
            words.setdefault(_NO_WORD.sub("", anchor.lower()), anchor)
        if identity and anchor:
            anchors.setdefault(identity, anchor)
    made = []
    for event in events:
        given = event.attributes
        if event.kind == "start" and _HEADING.fullmatch(event.value):
            made.append(event._replace(attributes={**given, "anchor": given.get("id", "")}))
        elif event.value == "a" and (target := given.get("href", "")).startswith("#"):
            name = target[1:]
            found = anchors.get(name) or words.get(_NO_WORD.sub("", name.lower()), name)
            made.append(event._replace(attributes={**given, "href": f"#{found}"}))
        else:
            made.append(event)
    return made
