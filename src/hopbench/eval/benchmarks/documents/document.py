"""The record that a reader makes of one file; decoding of text files; cutting of documents into passages.

Passages have stable ids. They are cut by heading or page, then by length at paragraphs, sentences, words.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import PurePosixPath

from hopbench.eval.types import Omission
from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import packed, spaced_sentences
from hopbench.retrieval.text import shortened
from hopbench.retrieval.text.model_tokens import count_tokens, pieces
from hopbench.retrieval.types import Link, Passage, Source

PlacedLink = tuple[int, Link]
"""How many characters stand before a link, white space not counted, and the link."""


class UnreadableError(Exception):
    """A file that gives no text; the message is the reason with the remedy, without the file's name."""


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading, or on one page of a PDF.

    `headings` lead from the outermost to the section's own and are empty for text before the first heading;
    `paragraphs` are in reading order, on one line each but for code, which is fenced as
    in Markdown, and tables with a first line of headings; `page` counts from
    1, None where the format has no pages; `anchor` is the section's own id, where it states one; `links` are placed in
    the paragraphs together.
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
    out on purpose; `encoding` is that of a text which is not UTF-8; `labels` are the names by which other documents
    refer to its sections, with the ids of these.
    """

    title: str
    sections: Sequence[Section]
    remarks: tuple[str, ...] = ()
    omissions: tuple[Omission, ...] = ()
    encoding: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


CODE_BEGIN, CODE_END = "\x0e", "\x0f"
"""Marks around code within a line, until it is known whether backticks may stand there; no text has them."""


def size(text: str) -> int:
    """Count the characters of a text but for white space and marks of code: how a text is cut does not change it."""
    joined = "".join(text.split())
    return len(joined) - joined.count("`") - joined.count(CODE_BEGIN) - joined.count(CODE_END)


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
    marks = len(_CONTROL.findall(text))
    if "\0" in text or marks * 20 > len(text):
        raise UnreadableError(_NO_TEXT)
    return _CONTROL.sub(" ", text) if marks else text


_SLUG_LIMIT = 100
_TITLE_LIMIT = 200
PASSAGE_TOKENS = Budget().tokens // Budget().chunks
"""Tokens of the longest passage (`count_tokens`), 300: as many as fit a reader's budget five times."""
_NOT_SLUG = re.compile(r"[^\w\- ]")
_BRACKETS = re.compile(r"[()]")


def passages_of(document: Document, path: str, max_tokens: int = PASSAGE_TOKENS) -> Iterator[Passage]:
    """Yield the passages of a document in reading order, none over `max_tokens`.

    `path` is the document's path in its folder: it begins every id, is the `document_id`, and its last part the
    `document_name`. A passage that is the second part of a section has `&part=2` after the section's id.
    """
    name = PurePosixPath(path)
    title = " ".join(document.title.split()) or name.stem
    used = Counter[str]()
    shown = set[tuple[str, ...]]()
    for section in document.sections:
        first, named = _section_id(section, title, path, used), passage_title(section, title)
        unshown = _unshown(section, title, named, shown)
        paragraphs, added = _cut_lines(section.paragraphs, max_tokens)
        parts = list(_parts([*unshown, *paragraphs], max_tokens)) or [""]
        links: list[list[Link]] = [[] for _ in parts]
        before, ends = sum(map(size, unshown)), list(accumulate(map(size, parts)))[:-1] if section.links else []
        for place, link in section.links:
            moved = place + sum(count for start, count in added if start <= place)
            links[bisect_right(ends, before + moved)].append(link)
        for index, (text, own) in enumerate(zip(parts, links, strict=True)):
            part = f"{'&' if '#' in first else '#'}part={index + 1}" if index else ""
            yield Passage(first + part, named, text, Source(section.page, path, name.name), tuple(own))


def _section_id(section: Section, title: str, document: str, used: Counter[str]) -> str:
    """The id of a section's first part; `used` counts the slugs of the document.

    `guide.md` is the text up to the first heading, or under the heading that is the title; `guide.md#install` is a
    section, named by its own id, else as GitHub names it; `manual.pdf#page=3` is a page.
    """
    if section.page is not None:
        return f"{document}#page={section.page}"
    if not section.headings or (section.headings == (title,) and not used[""]):
        used[""] += 1
        if used[""] == 1:
            return document
        slug = "text"
    elif section.anchor:  # without the marks by which pages and parts are named
        slug = section.anchor[:_SLUG_LIMIT].replace("&", "-").replace("=", "-")
    else:
        plain = _NOT_SLUG.sub("", section.headings[-1].lower()).strip()
        slug = plain.replace(" ", "-")[:_SLUG_LIMIT] or "section"
    while True:
        number = used[slug]
        used[slug] += 1
        numbered = f"{slug}-{number}" if number else slug
        if not number or not used[numbered]:
            used[numbered] += bool(number)
            return f"{document}#{numbered}"


def passage_title(section: Section, title: str) -> str:
    """Name a section's passages as `Install (Server guide)`: its heading, and those above it as the qualifier.

    Entities are named by titles without their qualifier, and BM25 and embedders read both.
    """
    above = [title, *(heading for heading in section.headings[:-1] if heading != title)]
    own = section.headings[-1] if section.headings else title
    if own == title:
        return shortened(title, _TITLE_LIMIT)
    qualifier = _BRACKETS.sub(" ", ": ".join(above))
    return f"{shortened(own, _TITLE_LIMIT)} ({shortened(qualifier, _TITLE_LIMIT)})"


def _unshown(section: Section, title: str, named: str, shown: set[tuple[str, ...]]) -> list[str]:
    """The document's title and the headings that the titles of its passages have only shortened so far."""
    found = []
    for depth, heading in enumerate((title, *section.headings)):
        path = (title, *section.headings[:depth])
        own = section.page is None and depth == len(section.headings) > 0
        if (own or path not in shown) and _bare(heading) not in _bare(named) and heading not in found:
            found.append(heading)
        shown.add(path)
    return found


def _bare(text: str) -> str:
    return " ".join(_BRACKETS.sub(" ", text).split())


def _parts(paragraphs: Sequence[str], max_tokens: int) -> Iterator[str]:
    """Pack paragraphs as long as they fit; of one that is too long its lines if it has some, else its sentences."""

    def units() -> Iterator[str]:
        for paragraph in paragraphs:
            if count_tokens(paragraph) <= max_tokens:
                yield f"\n{paragraph}"
            elif "\n" in paragraph:
                yield from (f"\n{line}" for line in paragraph.split("\n"))
            else:
                yield "\n"
                yield from spaced_sentences(paragraph)

    return packed(units(), max_tokens)


_FENCED = re.compile(r"(`{3,})[^\n]*\n")


def _cut_lines(paragraphs: Sequence[str], max_tokens: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Cut code and tables that are too long between their lines, each part with the fences or the headings.

    Also return where characters were added (`size` of what stands before), and how many.
    """
    cut: list[str] = []
    added: list[tuple[int, int]] = []
    before = 0
    for paragraph in paragraphs:
        fence = _FENCED.match(paragraph)
        head = fence[0] if fence else paragraph[: paragraph.find("\n") + 1]
        tail = f"\n{fence[1]}" if fence else ""
        room = max_tokens - count_tokens(head + tail) if head else 0
        if room > max_tokens // 2 and count_tokens(paragraph) > max_tokens:
            place = before + size(head)
            for number, part in enumerate(_line_groups(paragraph[len(head) :].removesuffix(tail), room)):
                if number:
                    added.append((place, size(head)))
                place += size(part)
                cut.append(f"{head}{part}{tail}")
        else:
            cut.append(paragraph)
        before += size(paragraph)
    return cut, added


def _line_groups(code: str, max_tokens: int) -> Iterator[str]:
    """Group lines as long as they fit; blanks at their beginning stay."""
    group: list[str] = []
    total = 0
    for line in code.split("\n"):
        tokens = count_tokens(f"\n{line}")
        if group and total + tokens > max_tokens:
            yield "\n".join(group)
            group, total = [], 0
        if tokens > max_tokens:
            yield from pieces(line, max_tokens)
        else:
            group.append(line)
            total += tokens
    if any(group):
        yield "\n".join(group)
