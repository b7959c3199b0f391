"""Turn components of MDX and custom elements into what they show: titles, links, and their content."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.elements import BLOCKS, HEADINGS, SKIPPED, SPACED, VOID, Event

TAG_LIMIT = 5000  # characters of a tag, and of an expression in braces
_BRACES = r"\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}"
EXPRESSION = re.compile(_BRACES)
_VALUE = rf"""(?:"[^"]*+"|'[^']*+'|{_BRACES})"""
_NAME = r"[\w:.@-]++"
_ATTRIBUTE = re.compile(rf"({_NAME})(?:\s*+=\s*+({_VALUE}))?+|{_BRACES}")
TAG = re.compile(
    rf"""<(?P<end>/)?(?P<tag>[A-Za-z][\w.:-]*+)?+
    (?P<attributes>(?:\s++(?:{_NAME}(?:\s*+=\s*+{_VALUE})?+|{_BRACES}))*+)\s*+(?P<empty>/)?>""",
    re.VERBOSE,
)
"""A tag of JSX, whose attributes may be expressions in braces; without a name it is a fragment's."""

OUTLINE_TAGS = frozenset({*HEADINGS, "title", "main", "article"})  # the outline is that of the Markdown
_HTML = (BLOCKS | SPACED | VOID | frozenset(SKIPPED)) | frozenset(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark picture q rp rt ruby s samp slot small
    span strike strong sub sup td th time tt u var col colgroup math textarea frame frameset marquee blink""".split()
)
_TITLES = ("title", "label", "heading", "headline", "caption", "summary", "description", "text", "alt", "filename")
_NAMED = re.compile(r"(?:field|file|folder|property|param\w*)\Z")
_NAMES = ("name", "path", "query", "body", "header")
_STRINGS = re.compile(r"""["'`]([^"'`]*)["'`]""")
_LITERAL = re.compile(r"""\{\s*(["'`])(.*)\1\s*\}""", re.DOTALL)
_DECORATION = frozenset("icon br hr spacer divider fragment slot".split())


class Tag(NamedTuple):
    """A tag as it is written; `empty` if it ends itself."""

    name: str
    attributes: Mapping[str, str]
    end: bool = False
    empty: bool = False


def read_tag(text: str) -> Tag | None:
    """Read a tag of JSX; None for a text that is none."""
    found = TAG.fullmatch(text)
    if found is None:
        return None
    attributes: dict[str, str] = {}
    for one in _ATTRIBUTE.finditer(found["attributes"]):
        if one[1]:
            attributes.setdefault(one[1], _value(one[2] or ""))
    return Tag(found["tag"] or "", attributes, bool(found["end"]), bool(found["empty"]))


def _value(written: str) -> str:
    """The text of a quoted value, or of an expression that is one string; other expressions stay as written."""
    if written[:1] in ("'", '"'):
        return unescape(written[1:-1])
    literal = _LITERAL.fullmatch(written)
    return literal[2] if literal else written


def texts_of(name: str, attributes: Mapping[str, str]) -> list[str]:
    """List what a component shows of its attributes, its title first."""
    kind = name.lower()
    shown = [attributes.get(one, "") for one in _TITLES]
    if _NAMED.search(kind):
        shown = [*(attributes.get(one, "") for one in _NAMES), *shown]
    if kind == "tabitem" and not attributes.get("label"):
        shown.insert(0, attributes.get("value", ""))
    if kind == "tabs":
        shown.append(", ".join(_STRINGS.findall(attributes.get("items", ""))))
    return [text for one in shown if (text := " ".join(one.split()))]


class Components:
    """The components that are open, so that each end tag ends what its start tag began."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str, bool]] = []  # name, the element in its place, whether that is a link
        self._names = Counter[str]()

    def events(self, tag: Tag, *, block: bool) -> Iterator[Event]:
        """Yield what a tag does to the text; `block` parts it from what stands around it."""
        name = tag.name.lower() if tag.name.islower() else tag.name
        if name in _HTML:
            yield from _element(Tag(name, tag.attributes, tag.end, tag.empty))
        elif tag.end:
            yield from self._end(name.lower())
        elif name.lower() in ("image", "img"):
            yield Event("start", "img", tag.attributes)
        else:
            yield from self._start(tag, block=block)
            if tag.empty:
                yield from self._end(name.lower())

    def _start(self, tag: Tag, *, block: bool) -> Iterator[Event]:
        texts = texts_of(tag.name, tag.attributes)
        target = tag.attributes.get("href") or tag.attributes.get("to") or ""
        element = "div" if block else "span"
        yield Event("start", element)
        link = Event("start", "a", {"href": target})
        if texts and target:
            yield from (link, Event("text", texts[0]), Event("end", "a"))
        elif texts:
            yield Event("text", texts[0] if block else f" {texts[0]} ")
        elif target:
            yield link
        elif tag.empty and tag.name and tag.name.lower() not in _DECORATION:
            yield Event("comment", tag.name, {"kind": "components without text"})
        for text in texts[1:]:
            yield from (Event("start", "br" if block else "button"), Event("text", text))
        if texts:
            yield Event("start", "br" if block else "button")
        name = tag.name.lower()
        self._open.append((name, element, bool(target and not texts)))
        self._names[name] += 1

    def _end(self, name: str) -> Iterator[Event]:
        while self._names[name] > 0:
            opened, element, linked = self._open.pop()
            self._names[opened] -= 1
            if linked:
                yield Event("end", "a")
            yield Event("end", element)
            if opened == name:
                return


def _element(tag: Tag) -> Iterator[Event]:
    name = "div" if tag.name in OUTLINE_TAGS else tag.name
    if not tag.end:
        yield Event("start", name, tag.attributes)
    if tag.end or (tag.empty and name not in VOID):
        yield Event("end", name)
