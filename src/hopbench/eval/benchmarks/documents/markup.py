"""Turn events of markup into blocks of text and sections with links; leave out, and count, what no browser shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.document import PlacedLink, Section, size
from hopbench.eval.types import Omission
from hopbench.retrieval.types import Link


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
    """Name an element that is left out; empty for one that is shown.

    `aria-hidden` elements are shown, and `hidden="until-found"` is there for a search in the page.
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
        if name in BLOCKS or name in _CELLS or name in _SKIPPED:
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


_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOTE = re.compile(r"(?:footnote|fn)[-_]?ref|noteref")
_BLANK_ENDS = re.compile(r"\A(?:[^\S\n]*\n)+|\s+\Z")


class Block(NamedTuple):
    """Text between two block tags, on one line unless it is code.

    `level` is 0 for a paragraph; `article` counts from 1, 0 outside of all; `anchor` is a heading's own id.
    """

    text: str
    level: int
    in_main: bool
    article: int
    anchor: str
    links: tuple[PlacedLink, ...]


@dataclass(slots=True)
class _OpenLink:
    """A link whose words are still being read.

    `before` is how many characters of its block stand before it, `in_block` how many of its texts are in this block.
    """

    before: int
    target: str
    words: list[str] = field(default_factory=list)
    in_block: int | None = None


def outline(blocks: Sequence[Block]) -> list[Section]:
    """Make the sections of blocks; the links of one that holds only deeper headings go to the next."""
    parts: list[tuple[tuple[str, ...], str, list[str], list[PlacedLink]]] = []
    path: list[tuple[int, str]] = []
    count = 0
    for block in blocks:
        if block.level:
            path = [(level, text) for level, text in path if level < block.level] + [(block.level, block.text)]
            headings = tuple(text for _, text in path)
            parts.append((headings, block.anchor, [], [(0, link) for _, link in block.links]))
            count = 0
            continue
        if not parts:
            parts.append(((), "", [], []))
        _, _, paragraphs, links = parts[-1]
        paragraphs.append(block.text)
        links += [(count + before, link) for before, link in block.links]
        count += size(block.text)
    sections: list[Section] = []
    carried: list[PlacedLink] = []
    for (headings, anchor, paragraphs, links), after in zip_longest(parts, parts[1:]):
        below = after[0] if after else ()
        if not paragraphs and below != headings and below[: len(headings)] == headings:
            carried += links
        else:
            sections.append(Section(headings, tuple(paragraphs), None, anchor, (*carried, *links)))
            carried = []
    return sections


class Page:
    """The blocks of a page with their links, its `<title>`, and what is left out."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.title = ""
        self._parts, self._words = Counter[str](), Counter[str]()
        self._texts: list[str] = []
        self._links: list[_OpenLink] = []
        self._link: _OpenLink | None = None
        # A `<sup>` or a footnote's mark: its first text and link in the block, its first word in a link, if a note.
        self._mark: tuple[int, int, int, bool] | None = None
        self._anchor = ""
        self._level = self._main = self._articles = self._open_articles = self._code = 0
        self._size = self._measured = 0  # of the first `_measured` texts
        self._blocks: list[tuple[Block, list[_OpenLink]]] = []
        self._read(events)

    @property
    def blocks(self) -> list[Block]:
        """The blocks in reading order."""
        return [
            block._replace(
                links=tuple((link.before, Link(" ".join("".join(link.words).split()), link.target)) for link in links)
            )
            for block, links in self._blocks
        ]

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """The parts that are left out, by kind."""
        return tuple(Omission(kind, parts, self._words[kind]) for kind, parts in self._parts.items())

    def leave_out(self, kind: str, text: str = "") -> None:
        """Count a part that is left out, with its words."""
        self._parts[kind] += 1
        self._words[kind] += len(text.split())

    def _read(self, events: Sequence[Event]) -> None:
        regions, end = skipped_regions(events), 0
        for place, event in enumerate(events):
            if place < end:
                continue
            if place in regions:
                kind, end = regions[place]
                self.leave_out(kind, " ".join(one.value for one in events[place:end] if one.kind == "text"))
                continue
            match event.kind:
                case "text":
                    self._add(event.value)
                case "start":
                    self._start(event.value, event.attributes)
                case "end":
                    self._end(event.value)
                case _:
                    self.leave_out("comments", event.value)
        self._flush()
        self._abandon_link()
        if self._blocks:
            self._blocks[-1][1].extend(self._links)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._break(tag)
        if tag in HEADINGS:
            self._level, self._anchor = HEADINGS[tag], attributes.get("anchor", "")
        elif tag == "pre":
            self._code += 1
        elif tag == "main":
            self._main += 1
        elif tag == "article":
            self._articles += not self._open_articles
            self._open_articles += 1
        elif tag in ("td", "th") and any(map(str.strip, self._texts)):
            self._add(" | ")
        elif tag == "a":
            self._abandon_link()
            if target := attributes.get("href", "").strip():
                self._link = _OpenLink(self._measure(), target)
                self._links.append(self._link)
        elif tag == "img":
            if (words := attributes.get("alt", "")).strip():
                self._add(f" {words} ")
            else:
                self.leave_out("images without alternative text")
        if tag in ("sup", "a"):
            note = any(_NOTE.search(attributes.get(name, "")) for name in ("role", "class", "epub:type"))
            if note or tag == "sup":
                count = len(self._link.words) if self._link else 0
                self._mark = len(self._texts), len(self._links), count, note

    def _end(self, tag: str) -> None:
        if tag == "title" and not self.title:
            self.title = self._taken()
        elif self._mark is not None and (tag == "sup" or (tag == "a" and self._mark[3])):
            self._end_mark(*self._mark)
        if tag == "a" and self._link is not None:
            if self._level and self._link.target.startswith("#"):
                self._drop_permalink(self._link)
            self._link = None
        if tag not in VOID:
            self._break(tag)
        if tag in HEADINGS:
            self._level, self._anchor = 0, ""
        self._code -= tag == "pre" and self._code > 0
        self._main -= tag == "main" and self._main > 0
        self._open_articles -= tag == "article" and self._open_articles > 0

    def _drop_permalink(self, link: _OpenLink) -> None:
        """Take a sign that links a heading to itself, such as ¶, off the heading's end."""
        begin = len(self._texts) - len(link.words)
        text = "".join(link.words)
        alone = not any(map(str.strip, self._texts[:begin]))
        if not text or alone or any(map(str.isalnum, text)) or self._texts[begin:] != link.words:
            return
        self._links.remove(link)
        del self._texts[begin:]
        self._size, self._measured = link.before, begin

    def _break(self, tag: str) -> None:
        """Part what a tag parts: blocks, the lines of code, words."""
        if tag in BLOCKS and self._code and tag != "pre":
            if tag == "br" or not "".join(self._texts[-1:]).endswith("\n"):
                self._add("\n")
        elif tag in BLOCKS:
            self._flush()
        elif tag in SPACED:
            self._add(" ")

    def _end_mark(self, first_text: int, first_link: int, first_word: int, note: bool) -> None:
        """Write what stands in a `<sup>` so that it is no part of the word before it."""
        mark, inside = "".join(self._texts[first_text:]), len(self._links) > first_link
        around = None if inside else self._link
        begins_link = around is not None and not any(map(str.strip, islice(around.words, first_word)))
        before = "".join(self._texts[max(0, first_text - 3) : first_text])
        written = superscript(before, mark, linked=note or inside or begins_link)
        self._measure()
        self._size += size(written) - size(mark)
        self._texts[first_text:] = [written]
        self._measured = len(self._texts)
        if around is not None:
            around.words[first_word:] = [written]
        self._mark = None

    def _add(self, text: str) -> None:
        self._texts.append(text)
        if self._link is not None:
            self._link.words.append(text)

    def _abandon_link(self) -> None:
        """End a link that is never closed where its block ends."""
        if self._link is not None:
            del self._link.words[self._link.in_block :]
            self._link = None

    def _measure(self) -> int:
        """Count the characters of the open block so far, white space not counted."""
        self._size += size("".join(self._texts[self._measured :]))
        self._measured = len(self._texts)
        return self._size

    def _flush(self) -> None:
        """End the block that is open; links without words so far go to the next."""
        if self._link is not None:
            self._link.words.append(" ")
            if self._link.in_block is None and self._texts:
                self._link.in_block = len(self._link.words)
        if text := self._taken():
            article = self._articles if self._open_articles else 0
            self._blocks.append((Block(text, self._level, self._main > 0, article, self._anchor, ()), self._links))
            self._links, self._level, self._anchor = [], 0, ""
        self._mark = None

    def _taken(self) -> str:
        text, self._texts, self._size = _SURROGATE.sub(" ", "".join(self._texts)), [], 0
        self._measured = 0
        if self._code and not self._level:
            lines = text.replace("\r\n", "\n").split("\n")
            return _BLANK_ENDS.sub("", "\n".join(map(str.rstrip, lines)))
        return " ".join(text.split())
