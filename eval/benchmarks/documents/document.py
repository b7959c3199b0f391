"""What a reader makes of one file: a title and sections, before they are cut into passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class UnreadableError(Exception):
    """A file that gives no text; the message is the reason with the remedy, without the file's name."""


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading, or on one page of a PDF.

    `headings` lead from the outermost to the section's own and are empty for text before the first heading;
    `paragraphs` are in reading order; `page` counts from 1, None where the format has no pages.
    """

    headings: tuple[str, ...] = ()
    paragraphs: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content. `title` is empty where the file names none; `remarks` say what of it could not be read."""

    title: str
    sections: Sequence[Section]
    remarks: tuple[str, ...] = ()


class Outline:
    """Collects headings and paragraphs in reading order and returns the sections that they make."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._paragraphs: list[str] = []
        self._sections: list[Section] = []

    def heading(self, level: int, text: str) -> None:
        """Begin a section; `level` is 1 for the outermost. A heading without text changes nothing."""
        words = " ".join(text.split())
        if not words:
            return
        self._close()
        self._path = [(above, heading) for above, heading in self._path if above < level]
        self._path.append((level, words))

    def paragraph(self, text: str) -> None:
        """Add a paragraph to the section that is open; white space is collapsed."""
        if words := " ".join(text.split()):
            self._paragraphs.append(words)

    def sections(self) -> list[Section]:
        """All sections. One with neither text nor a deeper heading below it is kept: its heading is its content."""
        self._close()
        found = self._sections
        return [
            section
            for place, section in enumerate(found)
            if section.paragraphs or not (place + 1 < len(found) and _above(section, found[place + 1]))
        ]

    def _close(self) -> None:
        if self._path or self._paragraphs:
            self._sections.append(Section(tuple(text for _, text in self._path), tuple(self._paragraphs)))
        self._paragraphs = []


def _above(section: Section, other: Section) -> bool:
    return other.headings[: len(section.headings)] == section.headings and other.headings != section.headings
