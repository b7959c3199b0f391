"""What a reader makes of one file, title and sections, and the bytes of a text file as a string."""

from __future__ import annotations

import codecs
import re
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
        found: list[Section] = []
        carried: tuple[PlacedLink, ...] = ()
        for section, after in zip_longest(self._sections, self._sections[1:]):
            if not section.paragraphs and after is not None and _above(section, after):
                carried += section.links
            else:
                found.append(replace(section, links=carried + section.links) if carried else section)
                carried = ()
        return found

    def _close(self) -> None:
        if self._path or self._paragraphs:
            headings = tuple(text for _, text in self._path)
            self._sections.append(Section(headings, tuple(self._paragraphs), None, self._anchor, tuple(self._links)))
        self._paragraphs, self._links, self._size = [], [], 0


def _above(section: Section, other: Section) -> bool:
    return other.headings[: len(section.headings)] == section.headings and other.headings != section.headings


_BYTE_ORDER_MARKS = (  # UTF-32's begins as UTF-16's does
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_GUESS_FROM = 1 << 20  # bytes: charset-normalizer reads all that it is given
SAVE_AS_UTF8 = "save it as UTF-8"


def decode(content: bytes, declared: str = "") -> tuple[str, str]:
    """The text, and the encoding in which it was read where that is not UTF-8 (else empty).

    A byte order mark decides, then UTF-8 where the bytes are valid, then the encoding that the file declares, then a
    guess by charset-normalizer.

    Raises
    ------
    UnreadableError
        For bytes that are no text, or are not valid in the encoding that their mark names.
    """
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "")
    if encoding:
        try:
            return _readable(content.decode(encoding)), "" if encoding == "utf-8-sig" else encoding
        except UnicodeDecodeError as error:
            raise UnreadableError(
                f"is not valid {encoding} at byte {error.start:,}, though it begins as such: {SAVE_AS_UTF8}"
            ) from error
    try:
        return _readable(content.decode()), ""
    except UnicodeDecodeError:
        pass
    return _guessed(content, declared)


def _guessed(content: bytes, declared: str) -> tuple[str, str]:
    if declared:
        try:
            return _readable(content.decode(declared)), declared
        except (LookupError, UnicodeDecodeError, ValueError):
            pass  # what is declared wrongly is guessed as if nothing were declared
    if b"\0" in content[:_GUESS_FROM]:
        raise UnreadableError(_NO_TEXT)
    from charset_normalizer import from_bytes

    guesses = from_bytes(content[:_GUESS_FROM])
    found = guesses.best()
    if found is None:
        raise UnreadableError(f"is in no encoding that can be recognised: {SAVE_AS_UTF8}")
    if found.encoding == "cp1250":  # first by its name where several are as likely
        for other in guesses:
            as_likely = other.chaos <= found.chaos and other.coherence >= found.coherence
            if other.encoding == "cp1252" and as_likely and not _CENTRAL_EUROPEAN.intersection(str(other)):
                found = other
                break
    return _readable(content.decode(found.encoding, errors="replace")), found.encoding


_CENTRAL_EUROPEAN = frozenset("ŠšŽž")
"""Letters that Windows' two Latin code pages write alike; languages that use them rather take cp1250."""


_NO_TEXT = "is binary, not text: give it the ending of what it is, or move it out of the folder"


def _readable(text: str) -> str:
    """The text without control characters; refused where so many stand in it that it is none."""
    marks = len(_CONTROL.findall(text))
    if "\0" in text or marks * 20 > len(text):
        raise UnreadableError(_NO_TEXT)
    return _CONTROL.sub(" ", text) if marks else text
