"""A folder of documents as a newcomer has it: Markdown, a web page, a PDF and notes about a fictional company."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

MARKDOWN = """---
title: Harbour handbook
---
# Harbour handbook

Velmar Ferries was founded by Ilse Brandt in Port Osric. It has four ships.

## Ships

The Kestrel is the oldest ship. She was built by the Talvik yard.

### Crew

Captain Oda Lind has commanded the Kestrel since 2011.

## Timetable

| ship | leaves |
|---|---|
| Kestrel | 07:15 |
| Merganser | 09:40 |
"""
HTML = """<html><head><title>Talvik yard – Velmar</title><style>p { color: red }</style></head><body>
<nav><a href="/">Home</a></nav><main><h1>Talvik yard</h1><p>The Talvik yard lies in <b>Norhaven</b>.</p>
<script>alert(1)</script><h2>Owners</h2><ul><li>Piet Arkema owns the yard.</li><li>His sister audits it.</li></ul>
</main><footer>Imprint</footer></body></html>"""
PAGES = ("Safety on board\nThe lifeboats of the Kestrel were made in Norhaven.", "Drills are led by Oda Lind.")
NOTES = "Meeting notes\n\nIlse Brandt wants a fifth ship from the Talvik yard.\n"
QUESTIONS = (
    ("m1", "In which town lies the yard that built the Kestrel?", "Norhaven", ("handbook.md#ships", "web/talvik.html")),
    ("m2", "Who owns the yard that built the Kestrel?", "Piet Arkema", ("handbook.md#ships", "web/talvik.html#owners")),
    (
        "m3",
        "Where was the company founded whose captain leads the drills?",
        "Port Osric",
        ("handbook.md", "safety.pdf#page=2"),
    ),
)


def pdf(pages: Sequence[str], title: str = "", bookmarks: Sequence[tuple[str, int]] = (), password: str = "") -> bytes:
    """A PDF with these texts, a line of each on a line of its page."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(width=595, height=842)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        content = DecodedStreamObject()
        shown = " T* ".join(f"({_escaped(line)}) Tj" for line in text.splitlines())
        content.set_data(f"BT /F1 12 Tf 14 TL 72 770 Td {shown} ET".encode("latin-1") if text else b"")
        page[NameObject("/Contents")] = writer._add_object(content)
    for words, index in bookmarks:
        writer.add_outline_item(title=words, page_number=index)
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def write_documents(folder: Path, *, questions: bool = True) -> Path:
    """The folder, with `queries.jsonl` whose rows name their gold."""
    (folder / "web").mkdir(parents=True)
    (folder / "handbook.md").write_text(MARKDOWN, encoding="utf-8")
    (folder / "web" / "talvik.html").write_text(HTML, encoding="utf-8")
    (folder / "safety.pdf").write_bytes(pdf(PAGES, title="Safety manual"))
    (folder / "notes.txt").write_text(NOTES, encoding="utf-8")
    if questions:
        write_questions(folder / "queries.jsonl")
    return folder


def write_questions(file: Path) -> Path:
    """The questions about these documents."""
    rows = [
        {"_id": key, "text": text, "answer": answer, "type": "bridge", "gold": list(gold)}
        for key, text, answer, gold in QUESTIONS
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file
