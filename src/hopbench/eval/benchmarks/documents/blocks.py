"""Events of markup as blocks of text with their links; what no reader of the page would see is left out and counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.document import PlacedLink, size
from hopbench.eval.benchmarks.documents.elements import BLOCKS, HEADINGS, SPACED, VOID, Event, skipped_regions
from hopbench.eval.benchmarks.documents.superscript import superscript
from hopbench.eval.types import Omission
from hopbench.retrieval.types import Link

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

    @property
    def placed(self) -> PlacedLink:
        return self.before, Link(" ".join("".join(self.words).split()), self.target)


class _Mark(NamedTuple):
    """Where a `<sup>`, or a footnote's mark, begins: its first text and link in the block, its first word in a link."""

    text: int
    link: int
    word: int
    note: bool


class Page:
    """The blocks of a page, its `<title>`, and what is left out."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.title = ""
        self._parts, self._words = Counter[str](), Counter[str]()
        self._texts: list[str] = []
        self._links: list[_OpenLink] = []
        self._link: _OpenLink | None = None
        self._mark: _Mark | None = None
        self._anchor = ""
        self._level = self._main = self._articles = self._open_articles = self._code = 0
        self._size = self._measured = 0  # of the first `_measured` texts
        self._blocks: list[tuple[Block, list[_OpenLink]]] = []
        self._read(events)

    @property
    def blocks(self) -> list[Block]:
        """The blocks in reading order."""
        return [block._replace(links=tuple(link.placed for link in links)) for block, links in self._blocks]

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """What is left out."""
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
            self._image(attributes.get("alt", ""))
        if tag in ("sup", "a"):
            note = any(_NOTE.search(attributes.get(name, "")) for name in ("role", "class", "epub:type"))
            if note or tag == "sup":
                words = len(self._link.words) if self._link else 0
                self._mark = _Mark(len(self._texts), len(self._links), words, note)

    def _end(self, tag: str) -> None:
        if tag == "title" and not self.title:
            self.title = self._taken()
        elif self._mark is not None and (tag == "sup" or (tag == "a" and self._mark.note)):
            self._end_mark(self._mark)
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

    def _image(self, words: str) -> None:
        if words.strip():
            self._add(f" {words} ")
        else:
            self.leave_out("images without alternative text")

    def _end_mark(self, begin: _Mark) -> None:
        """Write what stands in a `<sup>` so that it is no part of the word before it."""
        mark, inside = "".join(self._texts[begin.text :]), len(self._links) > begin.link
        around = None if inside else self._link
        linked = (
            begin.note or inside or (around is not None and not any(map(str.strip, islice(around.words, begin.word))))
        )
        written = superscript("".join(self._texts[max(0, begin.text - 3) : begin.text]), mark, linked=linked)
        self._measure()
        self._size += size(written) - size(mark)
        self._texts[begin.text :] = [written]
        self._measured = len(self._texts)
        if around is not None:
            around.words[begin.word :] = [written]
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
        """How many characters the open block has so far, white space not counted."""
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
