"""What a reader makes of one file: a title and sections, before they are cut into passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from hopbench.eval.types import Omission
from hopbench.retrieval.types import Link

PlacedLink = tuple[int, Link]
"""How many characters stand before a link, white space not counted, and the link."""


class UnreadableError(Exception):
    """A file that gives no text; the message is the reason with the remedy, without the file's name."""


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading, or on one page of a PDF.

    `headings` lead from the outermost to the section's own and are empty for text before the first heading;
    `paragraphs` are in reading order, on one line each but for code; `page` counts from 1, None where the format has no
    pages; `anchor` is the section's own id, where it states one; `links` are placed in the paragraphs together.
    """

    headings: tuple[str, ...] = ()
    paragraphs: tuple[str, ...] = ()
    page: int | None = None
    anchor: str = ""
    links: tuple[PlacedLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content.

    `title` is empty where the file names none; `remarks` say what of it could not be read, `omissions` what is left
    out on purpose.
    """

    title: str
    sections: Sequence[Section]
    remarks: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()


def size(text: str) -> int:
    """The characters of a text, white space not counted: cutting and joining lines does not change it."""
    return len("".join(text.split()))


class Outline:
    """Collects headings and paragraphs in reading order and returns the sections that they make."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._anchor = ""
        self._paragraphs: list[str] = []
        self._links: list[PlacedLink] = []
        self._sections: list[Section] = []
        self._size = 0

    def heading(self, level: int, text: str, anchor: str = "", links: Sequence[PlacedLink] = ()) -> None:
        """Begin a section; `level` is 1 for the outermost. A heading without text changes nothing."""
        words = " ".join(text.split())
        if not words:
            return
        self._close()
        self._path = [(above, heading) for above, heading in self._path if above < level]
        self._path.append((level, words))
        self._anchor, self._links = anchor, [(0, link) for _, link in links]

    def paragraph(self, text: str, links: Sequence[PlacedLink] = ()) -> None:
        """Add a paragraph, as it is, to the section that is open."""
        if text.strip():
            self._paragraphs.append(text)
            self._links += [(self._size + before, link) for before, link in links]
            self._size += size(text)

    def sections(self) -> list[Section]:
        """All sections but those that hold only deeper headings, whose links go to the first section below."""
        self._close()
        kept: list[Section] = []
        carried: tuple[PlacedLink, ...] = ()
        for section, after in zip_longest(self._sections, self._sections[1:]):
            if not section.paragraphs and after is not None and _above(section, after):
                carried += section.links
            else:
                kept.append(replace(section, links=carried + section.links) if carried else section)
                carried = ()
        return kept

    def _close(self) -> None:
        if self._path or self._paragraphs:
            headings = tuple(text for _, text in self._path)
            self._sections.append(Section(headings, tuple(self._paragraphs), None, self._anchor, tuple(self._links)))
        self._paragraphs, self._links, self._size = [], [], 0


def _above(section: Section, other: Section) -> bool:
    return other.headings[: len(section.headings)] == section.headings and other.headings != section.headings
