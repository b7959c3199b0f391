"""Names of documents, sections and passages: stable ids, and titles that the graph can take as entities."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from hopbench.eval.benchmarks.documents.document import Section
from hopbench.retrieval.text import shortened

PATH_LIMIT = 1000  # characters, so that an id with its section stays within the limit of 2,000
_SLUG_LIMIT = 100
_TITLE_LIMIT = 200
_NOT_SLUG = re.compile(r"[^\w\- ]")


def fault_of(path: str) -> str:
    """Why a path can name no passage; empty where it can."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8: rename it"
    if any(unicodedata.category(mark) == "Cc" for mark in path):
        return "its name holds a control character: rename it"
    return f"its path has over {PATH_LIMIT:,} characters: shorten it" if len(path) > PATH_LIMIT else ""


def document_id(path: str) -> str:
    """The path in its composed form: macOS writes an accent as a character of its own."""
    return unicodedata.normalize("NFC", path)


class PassageIds:
    """The ids of one document's passages, none twice.

    `guide.md` is the text up to the first heading, or under the heading that is the title; `guide.md#install` is a
    section, named by its own id, else as GitHub names it; `manual.pdf#page=3` a page; `&part=2` the second part of one
    that is too long.
    """

    def __init__(self, document: str) -> None:
        self._document = document
        self._used: Counter[str] = Counter()

    def section(self, section: Section, title: str) -> str:
        """The id of a section's first part."""
        if section.page is not None:
            return f"{self._document}#page={section.page}"
        if not section.headings or (section.headings == (title,) and not self._used[""]):
            self._used[""] += 1
            return self._document if self._used[""] == 1 else self._numbered("text")
        return self._numbered(_anchor(section.anchor) or _slug(section.headings[-1]))

    def _numbered(self, slug: str) -> str:
        number = self._used[slug]
        self._used[slug] += 1
        name = f"{slug}-{number}" if number else slug
        if number and self._used[name]:
            return self._numbered(slug)
        self._used[name] += bool(number)
        return f"{self._document}#{name}"

    @staticmethod
    def part(first: str, index: int) -> str:
        """The id of a section's part, `index` from 0."""
        return first if not index else f"{first}{'&' if '#' in first else '#'}part={index + 1}"


def _anchor(stated: str) -> str:
    """A heading's own id, without the marks by which pages and parts are named."""
    return stated[:_SLUG_LIMIT].replace("&", "-").replace("=", "-")


def _slug(heading: str) -> str:
    return _NOT_SLUG.sub("", heading.lower()).strip().replace(" ", "-")[:_SLUG_LIMIT] or "section"


def passage_title(section: Section, title: str) -> str:
    """`Install (Server guide)`: the section's heading with the headings above it as its qualifier.

    Entities are named by titles without their qualifier, and BM25 and embedders read both.
    """
    above = [title, *(heading for heading in section.headings[:-1] if heading != title)]
    own = section.headings[-1] if section.headings else title
    if own == title:
        return shortened(title, _TITLE_LIMIT)
    qualifier = re.sub(r"[()]", " ", ": ".join(above))
    return f"{shortened(own, _TITLE_LIMIT)} ({shortened(qualifier, _TITLE_LIMIT)})"
