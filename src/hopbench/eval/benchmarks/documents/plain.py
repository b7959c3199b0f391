"""Plain text: paragraphs between blank lines, without headings."""

from __future__ import annotations

import re

from hopbench.eval.benchmarks.documents.document import Document, Section

_BLANK = re.compile(r"\n\s*\n")
_UNDERLINE = re.compile(r"([=\-~^\"'#*+.`:_])\1{2,}")


def read_plain(text: str) -> Document:
    """The whole text as one section.

    A first line that is underlined, or over- and underlined (as in reStructuredText), is the title; else there is none.
    """
    paragraphs = [" ".join(part.split()) for part in _BLANK.split(text.replace("\r\n", "\n").replace("\r", "\n"))]
    kept = tuple(filter(None, paragraphs))
    return Document(_title(text), [Section((), kept)] if kept else [])


def _title(text: str) -> str:
    lines = [line.strip() for line in text.lstrip().splitlines()[:3]]
    if lines and _UNDERLINE.fullmatch(lines[0]):
        lines = lines[1:]
    return lines[0] if len(lines) > 1 and _UNDERLINE.fullmatch(lines[1]) else ""
