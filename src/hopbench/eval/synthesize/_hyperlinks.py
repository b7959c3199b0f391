"""Resolve the hyperlinks of a corpus to its passages: relative and root-relative pages, and anchors."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote

from hopbench.retrieval.types import Link, Passage

LINKED = 0.1  # share of documents that must link to another for their hyperlinks to be the evidence
_ENDING = re.compile(r"(?:(?:^|/)(?:index|readme))?\.(?:mdx?|markdown|html?|xhtml|rst|adoc|txt|ipynb)\Z", re.IGNORECASE)
_LANGUAGE_OR_VERSION = 3  # leading parts of a root-relative address that a folder may lack: /docs/v3/…


class Hyperlink(NamedTuple):
    """A link of `source` (a row of the passages) with its words; `targets` are the passages it leads to, in order."""

    source: int
    text: str
    targets: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pages:
    """The documents of a corpus, by the addresses under which links name them."""

    passages: Sequence[Passage]

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """Document → its passages in reading order."""
        found: dict[str, list[int]] = {}
        for row, passage in enumerate(self.passages):
            found.setdefault(document_of(passage), []).append(row)
        return found

    @cached_property
    def _addresses(self) -> dict[str, str]:
        return {address(document): document for document in reversed(self.rows)}

    @cached_property
    def _anchors(self) -> dict[str, int]:
        return {passage.id.lower(): row for row, passage in enumerate(self.passages)}

    @cached_property
    def hyperlinks(self) -> list[Hyperlink]:
        """The links that lead to another passage, in reading order."""
        found = []
        for row, passage in enumerate(self.passages):
            for link in passage.links:
                targets = tuple(one for one in self.targets(passage, link) if one != row)
                if targets and link.text.strip():
                    found.append(Hyperlink(row, " ".join(link.text.split()), targets))
        return found

    @property
    def linked(self) -> bool:
        """Whether enough documents link to others of the corpus for hyperlinks to be its evidence."""
        documents = [document_of(passage) for passage in self.passages]
        linking = {
            documents[one.source] for one in self.hyperlinks if documents[one.source] != documents[one.targets[0]]
        }
        return bool(linking) and len(linking) >= LINKED * len(self.rows)

    def targets(self, passage: Passage, link: Link) -> Iterable[int]:
        """The passages that a link leads to: its section with the parts of it, else the page; none outside."""
        path, _, anchor = link.target.partition("#")
        path = unquote(path.partition("?")[0])
        if ":" in path.partition("/")[0] or path.startswith("//"):  # another site, or mailto:
            return ()
        document = self._document(document_of(passage), path) if path else document_of(passage)
        if document is None:
            return ()
        key = f"{document}#{unquote(anchor)}".lower()
        if anchor and key in self._anchors:
            return [row for row in self.rows[document] if self.passages[row].id.lower().partition("&part=")[0] == key]
        return self.rows[document] if path else ()

    def _document(self, source: str, path: str) -> str | None:
        if path.startswith("/"):
            parts = address(path.strip("/")).split("/")
            tried = ["/".join(parts[skipped:]) for skipped in range(min(_LANGUAGE_OR_VERSION + 1, len(parts)))]
        else:  # beside the source, or below it where the site serves each page as a folder
            folders = (posixpath.dirname(source), address(source))
            tried = [address(posixpath.normpath(posixpath.join(folder, path)).strip("/")) for folder in folders]
        return next((self._addresses[one] for one in tried if one in self._addresses), None)


def document_of(passage: Passage) -> str:
    """The document that a passage is of."""
    return passage.source.document_id or passage.id.partition("#")[0]


def address(document: str) -> str:
    """A document's path as a site writes it: without the ending, and without `index`."""
    plain = _ENDING.sub("", document).strip("/")
    return plain.removesuffix("/index") if plain != "index" else ""
