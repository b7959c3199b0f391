"""Read Word documents (.docx) by mammoth, which turns styles into HTML; only the parts with text are unpacked."""

from __future__ import annotations

import re
import zipfile
from html import unescape
from io import BytesIO
from itertools import count
from pathlib import Path

from hopbench.eval.benchmarks.documents.converted import read_converted
from hopbench.eval.benchmarks.documents.document import Document, UnreadableError

XML_LIMIT = 32 * 1024 * 1024  # bytes of text parts, unpacked; a document of 1,000 pages has some 10 MB
PARTS_LIMIT = 10_000
AGAIN = "save it again as .docx"
_OLD_FORMAT = b"\xd0\xcf\x11\xe0"  # of .doc, and of documents with a password
_MAIN = re.compile(r"word/document\d*\.xml")
_LEFT_OUT = (
    (re.compile(r"word/comments\d*\.xml"), "t", "comments"),
    (re.compile(r"word/(?:header|footer)\d*\.xml"), "t", "headers and footers"),
    (_MAIN, "delText", "deleted text"),
    (_MAIN, "m:t", "formulas"),
)
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Heading 7'] => h6:fresh
p[style-name='Heading 8'] => h6:fresh
p[style-name='Heading 9'] => h6:fresh
p[style-name='Code'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Preformatted Text'] => pre:separator('\\n')
r[style-name='Code'] => code
r[style-name='HTML Code'] => code
r[style-name='Verbatim Char'] => code
r[style-name='Source Text'] => code
"""
_BACK = re.compile(r"\s*<a href=\"#(?:foot|end)note-ref-[^\"]*\">↑</a>")
_NOTE = re.compile(r"(<li id=\"(?:foot|end)note-\d+\">)\s*<p>")
_CELL = re.compile(r"<(t[dh])([^>]*)><p>((?:(?!</?p>|</t[dh]>).)*)</p></\1>", re.DOTALL)
_FIRST_ROW = re.compile(r"<table><tr>((?:<td[^>]*>(?:<strong>(?:(?!</?t[dr]).)*</strong>)?</td>)+)</tr>", re.DOTALL)


def read_docx(path: Path) -> Document:
    """Read the sections by heading style; the title is that of the style Title, else the first heading.

    Headings of tables are the rows that Word repeats, else a first row that is bold. Comments, headers, footers,
    deleted text and formulas are left out.
    """
    import mammoth

    try:
        parts = _text_parts(path)
        found = mammoth.convert_to_html(
            _packed(parts),
            style_map=_STYLES,
            include_embedded_style_map=False,
            convert_image=mammoth.images.img_element(lambda _: {}),
        )
    except (UnreadableError, MemoryError, RecursionError):
        raise
    except Exception as error:  # a damaged file leads mammoth to whatever Python can raise
        if isinstance(error, OSError) and error.errno:
            raise
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise UnreadableError(f"is damaged, or no Word document ({reason}): {AGAIN}") from error
    return read_converted(_tidy(found.value), _left_out(parts))


def _text_parts(path: Path) -> dict[str, bytes]:
    """Unpack the parts that are XML; refuse those that would grow beyond all measure."""
    with path.open("rb") as file:
        if file.read(4) == _OLD_FORMAT:
            raise UnreadableError(f"has a password, or is in Word's old format: {AGAIN}, without a password")
        with zipfile.ZipFile(file) as archive:
            members = [one for one in archive.infolist() if one.filename.lower().endswith((".xml", ".rels"))]
            size = sum(one.file_size for one in members)
            if size > XML_LIMIT or len(members) > PARTS_LIMIT:
                raise UnreadableError(
                    f"unpacks to {size:,} bytes of text in {len(members):,} parts, over the limit of {XML_LIMIT:,} in "
                    f"{PARTS_LIMIT:,}: split it into several files"
                )
            parts = {one.filename: archive.read(one) for one in members}
    for name, content in parts.items():
        if b"<!DOCTYPE" in content.replace(b"\0", b""):  # also in UTF-16
            raise UnreadableError(f"declares entities in {name}, as Word never does: {AGAIN}")
    return parts


def _packed(parts: dict[str, bytes]) -> BytesIO:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made


def _tidy(markup: str) -> str:
    """Number the notes at the end, write cells of one paragraph as words, and name bold first rows as headings."""
    numbers = count(1)
    markup = _NOTE.sub(lambda found: f"{found[1]}<p>[{next(numbers)}] ", _BACK.sub("", markup))
    markup = _CELL.sub(r"<\1\2>\3</\1>", markup)
    return _FIRST_ROW.sub(lambda found: f"<table><thead><tr>{_headings(found[1])}</tr></thead>", markup)


def _headings(cells: str) -> str:
    return cells.replace("<td", "<th").replace("</td>", "</th>")


def _left_out(parts: dict[str, bytes]) -> list[tuple[str, str]]:
    found = []
    for part, tag, kind in _LEFT_OUT:
        name = tag if ":" in tag else f"w:{tag}"
        pattern = re.compile(rf"<{name}(?: [^>]*)?>([^<]*)</{name}>")
        for path, content in parts.items():
            if part.fullmatch(path):
                text = " ".join(unescape(one) for one in pattern.findall(content.decode(errors="replace")))
                if text.strip():
                    found.append((kind, text))
    return found
