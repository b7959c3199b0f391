"""PDF, read by pypdf: a section for each page, so that a passage knows its page number."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.benchmarks.documents.document import Document, Section, UnreadableError

if TYPE_CHECKING:
    from pypdf import PdfReader

_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[^\W\d_A-Z])")  # "evi-\ndence"; "Anglo-\nSaxon" keeps its hyphen
_BLANK = re.compile(r"\n[ \t]*\n")
_NO_WORDS = re.compile(r"[^\w]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
OCR = "run OCR over it first, such as `ocrmypdf IN OUT`"
AGAIN = "export or download it again"


def read_pdf(path: Path) -> Document:
    """The pages with text, each under the bookmark in which it lies; the title is that of the metadata.

    Raises
    ------
    UnreadableError
        For a file that is damaged, needs a password, or has no text on any page.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it repairs by itself concerns nobody
    try:
        with path.open("rb") as file:
            return _read(_opened(file))
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged file leads pypdf to whatever Python can raise
        raise UnreadableError(f"is damaged, or no PDF ({_reason(error)}): {AGAIN}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _opened(file: Any) -> PdfReader:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(file)
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise UnreadableError("is encrypted: save it without a password, such as `qpdf --decrypt IN OUT`")
    return reader


def _read(reader: PdfReader) -> Document:
    title, untitled = _title(reader)
    bookmarks, unmarked = _bookmarks(reader)
    sections: list[Section] = []
    without: list[int] = []
    damaged: dict[int, str] = {}
    headings: tuple[str, ...] = ()
    for index in range(len(reader.pages)):
        headings = bookmarks.get(index, headings)
        try:
            text = reader.pages[index].extract_text()
        except MemoryError:
            raise
        except Exception as error:  # one damaged page among good ones
            damaged[index + 1] = _reason(error)
            continue
        if _NO_WORDS.fullmatch(text):
            without.append(index + 1)
        else:
            sections.append(Section(headings, _paragraphs(text), index + 1))
    left_out = (*_left_out(damaged, _damage(damaged), AGAIN), *_left_out(without, "without text", OCR))
    if not sections:
        raise UnreadableError(_nothing(len(reader.pages), damaged))
    return Document(title, sections, (*untitled, *unmarked, *left_out))


def _left_out(pages: Collection[int], what: str, remedy: str) -> tuple[str, ...]:
    if not pages:
        return ()
    named = ", ".join(map(str, list(pages)[:5])) + (", …" if len(pages) > 5 else "")
    return (f"{len(pages)} of its pages are {what} and left out ({named}): if they matter, {remedy}",)


def _damage(damaged: Mapping[int, str]) -> str:
    return f"damaged ({next(iter(damaged.values()))})" if damaged else ""


def _nothing(pages: int, damaged: Mapping[int, str]) -> str:
    """What is said of a PDF none of whose pages gives text."""
    if not damaged:
        return f"has no text on any of its {pages} pages: if they are images, {OCR}"
    rest = "" if len(damaged) == pages else ", and no text on the others"
    return f"has {len(damaged)} of its {pages} pages {_damage(damaged)}{rest}: {AGAIN}"


def _paragraphs(text: str) -> tuple[str, ...]:
    """The page's paragraphs, with words joined that were hyphenated at the end of a line."""
    plain = _SURROGATE.sub(" ", text).replace("\r\n", "\n").replace("\0", " ")
    whole = (" ".join(part.split()) for part in _BLANK.split(_HYPHEN.sub("", plain)))
    return tuple(filter(None, whole))


def _title(reader: PdfReader) -> tuple[str, tuple[str, ...]]:
    """The title of the metadata, and a remark where these are damaged; empty without one."""
    try:
        title = reader.metadata.title if reader.metadata else None
    except MemoryError:
        raise
    except Exception as error:  # damaged metadata beside good pages
        return "", (f"its metadata are damaged ({_reason(error)}), so its title is the file's name: {AGAIN}",)
    return (" ".join(_SURROGATE.sub(" ", title).split()) if isinstance(title, str) else ""), ()


def _bookmarks(reader: PdfReader) -> tuple[Mapping[int, tuple[str, ...]], tuple[str, ...]]:
    """Page index → the path of the last bookmark that points to the page; none, and a remark, for a damaged outline."""
    found: dict[int, tuple[str, ...]] = {}

    def walk(entries: Any, path: tuple[str, ...]) -> None:
        here = path
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, here)
                continue
            title = " ".join(_SURROGATE.sub(" ", str(entry.title)).split())
            here = (*path, title) if title else path
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0:
                found[page] = here

    try:
        walk(reader.outline, ())
    except MemoryError:
        raise
    except Exception:  # also RecursionError, for one that contains itself
        return {}, (f"its outline is damaged, so no passage is named by a bookmark: {AGAIN}",)
    return found, ()
