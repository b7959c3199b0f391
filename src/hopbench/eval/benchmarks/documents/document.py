"""The record that a reader makes of one file, and decoding of text files."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

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
    out on purpose; `encoding` is that of a text which is not UTF-8.
    """

    title: str
    sections: Sequence[Section]
    remarks: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()
    encoding: str = ""


def size(text: str) -> int:
    """Count the characters of a text but for white space: cutting and joining lines does not change the count."""
    return len("".join(text.split()))


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
    """Return the text, and the encoding in which it was read where that is not UTF-8 (else empty).

    A byte order mark decides, then UTF-8 where the bytes are valid, then the encoding that the file declares, then a
    guess by charset-normalizer. Raises UnreadableError for bytes that are no text, or are not valid in the encoding
    that their mark names.
    """
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "")
    if encoding:
        try:
            return _readable(content.decode(encoding)), "" if encoding == "utf-8-sig" else encoding
        except UnicodeDecodeError as error:
            raise UnreadableError(
                f"is not valid {encoding} at byte {error.start:,}, though it begins as such: {SAVE_AS_UTF8}"
            ) from error
    with suppress(UnicodeDecodeError):
        return _readable(content.decode()), ""
    if declared:
        with suppress(LookupError, ValueError):  # what is declared wrongly is guessed as if nothing were declared
            return _readable(content.decode(declared)), declared
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
    """Blank control characters; refuse a text with so many that it is none."""
    marks = len(_CONTROL.findall(text))
    if "\0" in text or marks * 20 > len(text):
        raise UnreadableError(_NO_TEXT)
    return _CONTROL.sub(" ", text) if marks else text
