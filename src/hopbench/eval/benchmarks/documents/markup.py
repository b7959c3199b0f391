"""Turn events of markup into blocks of text and sections with links; leave out, and count, what no browser shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import NamedTuple

from hopbench.eval.benchmarks.documents.document import CODE_BEGIN, CODE_END, PlacedLink, Section, size
from hopbench.eval.benchmarks.documents.elements import (
    BLOCKS,
    HEADINGS,
    SPACED,
    TABLE_PARTS,
    VOID,
    Event,
    skipped_regions,
    superscript,
)
from hopbench.eval.benchmarks.documents.tables import Table
from hopbench.eval.types import Omission
from hopbench.retrieval.types import Link

__all__ = ["Block", "Event", "Page", "outline"]

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOTE = re.compile(r"(?:footnote|fn)[-_]?ref|noteref")
_BLANK_ENDS = re.compile(r"\A(?:[^\S\n]*\n)+|\s+\Z")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|highlight)-([\w+#.-]+)")
_BACKTICKS = re.compile(r"`{3,}")
_CODE_SPAN = re.compile(r"(?<!\w)\x0e([^`\x0e\x0f]*[^`\x0e\x0f\s])\x0f(?!\w)")
_CELL_BLOCKS = frozenset(
    "address blockquote br center dd details dir div dl dt figcaption figure li menu ol p section summary ul".split()
)
"""Parted by a space within a cell of a table, so that its row stays one paragraph."""


def _with_backticks(text: str) -> str:
    """Put code within a line into backticks, unless words would join with its end: `flow`s stays the word flows."""
    if CODE_BEGIN not in text:
        return text
    return _CODE_SPAN.sub(r"`\1`", text).replace(CODE_BEGIN, "").replace(CODE_END, "")


class Block(NamedTuple):
    """Text between two block tags, on one line unless it is code, which is fenced as in Markdown.

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
        self._anchor = self._language = ""
        self._tables: list[Table] = []
        self._in_cell = False  # a cell whose row stays one paragraph
        self._cell = 0  # the text with which it begins
        self._before_cell: tuple[str, int] = "", -1  # what separates and names it, once it has a word; its column
        self._repeated = set[int]()  # blocks of headings that all stand in the rows below
        self._level = self._main = self._articles = self._open_articles = self._code = 0
        self._size = self._measured = 0  # of the first `_measured` texts
        self._blocks: list[tuple[Block, list[_OpenLink]]] = []
        self._read(events)

    @property
    def blocks(self) -> list[Block]:
        """The blocks in reading order."""
        return [
            block._replace(
                links=tuple(
                    (link.before, Link(_with_backticks(" ".join("".join(link.words).split())), link.target))
                    for link in links
                )
            )
            for place, (block, links) in enumerate(self._blocks)
            if place not in self._repeated
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
                    self.leave_out(event.attributes.get("kind", "comments"), event.value)
        self._flush()
        while self._tables:
            self._end_table()
        self._abandon_link()
        if self._blocks:
            self._blocks[-1][1].extend(self._links)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in TABLE_PARTS:
            self._start_table_part(tag, attributes)
        else:
            self._break(tag)
        if attributes and tag in ("pre", "code", "div") and (found := _LANGUAGE.search(attributes.get("class", ""))):
            self._language = found[1]
        if tag in HEADINGS:
            self._level, self._anchor = HEADINGS[tag], attributes.get("anchor", "")
            self._in_cell = False
        elif tag == "pre":
            self._code += 1
            self._language = attributes.get("code", self._language)
        elif tag in ("code", "tt"):
            self._mark_code(CODE_BEGIN)
        elif tag == "main":
            self._main += 1
        elif tag == "article":
            self._articles += not self._open_articles
            self._open_articles += 1
        else:
            self._start_inline(tag, attributes)

    def _start_inline(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "a":
            self._abandon_link()
            if target := attributes.get("href", "").strip():
                self._name_cell()
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
        if tag in TABLE_PARTS:
            self._end_table_part(tag)
        elif tag in ("code", "tt"):
            self._mark_code(CODE_END)
        elif tag not in VOID:
            self._break(tag)
        if tag in HEADINGS:
            self._level, self._anchor = 0, ""
        if tag == "pre" and self._code > 0:
            self._code, self._language = self._code - 1, ""
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
        elif self._in_cell and tag in _CELL_BLOCKS:
            self._add(" ")
        elif tag in BLOCKS:
            self._flush()
        elif tag in SPACED:
            self._add(" ")

    def _end_mark(self, first_text: int, first_link: int, first_word: int, note: bool) -> None:
        """Write what stands in a `<sup>` so that it is no part of the word before it."""
        mark, inside = "".join(self._texts[first_text:]), len(self._links) > first_link
        around = None if inside else self._link
        begins_link = around is not None and not any(map(str.strip, islice(around.words, first_word)))
        before = "".join(self._texts[max(0, first_text - 3) : first_text]).replace(CODE_END, "")
        written = superscript(before, mark, linked=note or inside or begins_link)
        self._measure()
        self._size += size(written) - size(mark)
        self._texts[first_text:] = [written]
        self._measured = len(self._texts)
        if around is not None:
            around.words[first_word:] = [written]
        self._mark = None

    def _start_table_part(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in ("td", "th"):
            self._end_cell()
            table = self._tables[-1] if self._tables else Table()
            column, separator, label = table.open_cell(tag, attributes), " | ", ""
            if table.labelled:
                label = table.label(column)
                separator = " " if "".join(self._texts[-2:]).rstrip()[-1:] in (*".!?:;…。",) else "; "
            elif table.headings and not table.in_head:
                self._texts += [separator] * (column > 0)  # an empty cell too keeps its column
                separator = ""
            is_later_cell = any(map(str.strip, self._texts))
            self._before_cell, self._cell = (f"{separator * is_later_cell}{label}", column), len(self._texts)
            self._in_cell = bool(self._tables) and (tag == "th" or bool(table.headings))
            return
        self._end_row()
        if tag == "table":
            self._flush()
            self._tables.append(Table())
        elif self._tables and tag != "tr":
            self._tables[-1].in_head = tag == "thead"

    def _end_table_part(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._end_cell()
            return
        self._end_row()
        if self._tables and tag == "table":
            self._end_table()
        elif self._tables and tag == "thead":
            self._tables[-1].in_head = False

    def _end_table(self) -> None:
        """Drop the rows of headings if the rows below show all of them."""
        table = self._tables.pop()
        if not table.unused and not any(self._blocks[block][1] for block in table.heading_blocks):
            self._repeated.update(table.heading_blocks)

    def _end_row(self) -> None:
        self._end_cell()
        count = len(self._blocks)
        self._flush()
        if not self._tables:
            return
        table, made = self._tables[-1], len(self._blocks) > count
        names = table.end_row(count if made else None)
        if made and names and not table.fits_labels:
            self._blocks[-1] = (
                self._blocks[-1][0]._replace(text=" | ".join(table.headings).strip()),
                self._blocks[-1][1],
            )
        elif made and table.heading_blocks[-1:] == [count - 1] and not table.fits_labels:
            (row, links), (head, head_links) = self._blocks.pop(), self._blocks[-1]
            for link in links:
                link.before += size(head.text)
            self._blocks[-1] = head._replace(text=f"{head.text}\n{row.text}"), [*head_links, *links]

    def _end_cell(self) -> None:
        if self._tables:
            text = "".join(self._texts[self._cell :]).replace(CODE_BEGIN, "").replace(CODE_END, "")
            self._tables[-1].close_cell(" ".join(text.split()))
        self._in_cell, self._before_cell = False, ("", -1)

    def _name_cell(self) -> None:
        """Write the separator and heading of a cell that turns out to have words."""
        (text, column), self._before_cell = self._before_cell, ("", -1)
        if text:
            while self._texts and self._texts[-1].isspace():
                self._texts.pop()
            self._measured = min(self._measured, len(self._texts))
            self._texts.append(text)
            self._cell = len(self._texts)
            if self._tables:
                self._tables[-1].unused.discard(column)

    def _mark_code(self, mark: str) -> None:
        if not self._code and not self._level:
            self._add(mark)

    def _add(self, text: str) -> None:
        if self._before_cell[0] and text.strip():
            self._name_cell()
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
        if not self._code or self._level:
            return _with_backticks(" ".join(text.split()))
        lines = text.replace("\r\n", "\n").split("\n")
        code = _BLANK_ENDS.sub("", "\n".join(map(str.rstrip, lines)))
        if not code:
            return ""
        for link in self._links:
            link.before += size(self._language)
        fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(code))])
        return f"{fence}{self._language}\n{code}\n{fence}"
