"""Read PDF by pypdf: a section for each page, so that a passage knows its page number."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hopbench.eval.benchmarks.documents.document import Document, Section, UnreadableError
from hopbench.eval.types import Omission

if TYPE_CHECKING:
    from pypdf import PdfReader

T = TypeVar("T")

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[^\W\d_A-Z])")  # "evi-\ndence"; "Anglo-\nSaxon" keeps its hyphen
_BLANK = re.compile(r"\n[ \t]*\n")
_NO_WORDS = re.compile(r"[^\w]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
OCR = "run OCR over it first, such as `ocrmypdf IN OUT`"
AGAIN = "export or download it again"


def read_pdf(path: Path) -> Document:
    """Read the pages with text, each under the bookmark in which it lies; the title is that of the metadata."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings about repairs are of no use to a user
    try:
        with path.open("rb") as file:
            return _read(PdfReader(file))
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged file leads pypdf to whatever Python can raise
        raise UnreadableError(f"is damaged, or no PDF ({_reason(error)}): {AGAIN}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _read(reader: PdfReader) -> Document:
    from pypdf import PasswordType

    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise UnreadableError("is encrypted: save it without a password, such as `qpdf --decrypt IN OUT`")
    title, untitled = _tried(lambda: reader.metadata.title if reader.metadata else None)
    bookmarks, unmarked = _tried(lambda: _bookmarks(reader))
    sections: list[Section] = []
    without: list[int] = []
    damaged: dict[int, str] = {}
    headings: tuple[str, ...] = ()
    pages = len(reader.pages)
    for index in range(pages):
        headings = (bookmarks or {}).get(index, headings)
        text, reason = _tried(reader.pages[index].extract_text)
        if text is None:
            damaged[index + 1] = reason
        elif _NO_WORDS.fullmatch(text):
            without.append(index + 1)
        else:
            sections.append(Section(headings, _paragraphs(text), index + 1))
    damage = f"damaged ({next(iter(damaged.values()), '')})"
    if not sections and damaged:
        rest = ", and no text on the others" if without else ""
        raise UnreadableError(f"has {len(damaged)} of its {pages} pages {damage}{rest}: {AGAIN}")
    if not sections:
        raise UnreadableError(f"has no text on any of its {pages} pages: if they are images, {OCR}")
    remarks = (
        f"its metadata are damaged ({untitled}), so its title is the file's name: {AGAIN}" if untitled else "",
        f"its outline is damaged ({unmarked}), so no passage is named by a bookmark: {AGAIN}" if unmarked else "",
        *(
            f"{len(numbers)} of its pages are {what} and left out ({', '.join(map(str, numbers[:5]))}"
            f"{', …' if len(numbers) > 5 else ''}): if they matter, {remedy}"
            for numbers, what, remedy in (([*damaged], damage, AGAIN), (without, "without text", OCR))
            if numbers
        ),
    )
    named = _plain(title) if isinstance(title, str) else ""
    return Document(named, sections, tuple(filter(None, remarks)), _annotations(reader))


def _annotations(reader: PdfReader) -> tuple[Omission, ...]:
    """Count the values of form fields and the comments, which are not in the text of the pages."""
    fields, _ = _tried(reader.get_form_text_fields)
    notes, _ = _tried(
        lambda: [one.get_object().get("/Contents") for page in reader.pages for one in page.annotations or ()]
    )
    found = {"values of form fields": list((fields or {}).values()), "comments": notes or []}
    texts = {
        kind: [text for text in values if isinstance(text, str) and text.strip()] for kind, values in found.items()
    }
    return tuple(Omission(kind, len(own), len(" ".join(own).split())) for kind, own in texts.items() if own)


def _tried(read: Callable[[], T]) -> tuple[T | None, str]:
    """Read a part of a file; for a damaged part return None and the reason."""
    try:
        return read(), ""
    except (OSError, MemoryError):
        raise
    except Exception as error:  # also RecursionError, for an outline that contains itself
        return None, _reason(error)


def _paragraphs(text: str) -> tuple[str, ...]:
    plain = _SURROGATE.sub(" ", text).replace("\r\n", "\n").replace("\0", " ")
    whole = (" ".join(part.split()) for part in _BLANK.split(_HYPHEN.sub("", plain)))
    return tuple(filter(None, whole))


def _plain(title: str) -> str:
    return " ".join(_SURROGATE.sub(" ", title).split())


def _bookmarks(reader: PdfReader) -> Mapping[int, tuple[str, ...]]:
    """Page index → the path of the last bookmark that points to the page."""
    found: dict[int, tuple[str, ...]] = {}

    def walk(entries: Any, path: tuple[str, ...]) -> None:
        here = path
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, here)
                continue
            title = _plain(str(entry.title))
            here = (*path, title) if title else path
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0:
                found[page] = here

    walk(reader.outline, ())
    return found
