"""Resolve links between documents as their site would: which passages does a target as it is written lead to?"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from hopbench.retrieval.types import Passage

WHOLE_PAGE = 0.5  # weight of a link to a page for the page's passages after the first
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_WRITTEN = re.compile(r"(?:xref:|doc:|link:|@site/|@docs/)")  # AsciiDoc, reStructuredText and Docusaurus before a path
_SHORTCODE = re.compile(r"\{\{[<%]\s*(?:rel)?ref\s+[\"']?([^\"'\s>%]+)|\{%-?\s*link\s+(\S+)")  # Hugo, Jekyll
_ENDING = re.compile(r"\.(?:mdx?|markdown|x?html?|rst|txt|text|adoc|asciidoc|asc|ipynb|pdf|docx)$")
_INDEX = re.compile(r"(?:^|/)_?(?:index|README)$")
_PART = re.compile(r"(?:&|^)part=\d+$")
_NOT_WORD = re.compile(r"[\W_]+")
REF = "ref:"  # the label of a section, unique among all documents


def document_of(passage: Passage) -> str:
    """The path of a passage's document: its `document_id`, else what its id says before the section."""
    return passage.source.document_id or passage.id.partition("#")[0]


def heading_of(passage: Passage) -> str:
    """The heading of a passage's section, without those above it (`passage_title` writes them in brackets)."""
    heading, bracket, _ = passage.title.rpartition(" (")
    return heading if bracket and passage.title.endswith(")") else passage.title


def _anchor(text: str) -> str:
    """A form that headings, their slugs and stated ids share, whichever program wrote the slug."""
    letters = (mark for mark in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(mark))
    return _NOT_WORD.sub("-", "".join(letters)).strip("-")


def _pages(path: str) -> Iterator[str]:
    """The names of a page, the exact one first: `guide/index.md` is `guide/index` and `guide`, too."""
    plain = path.strip("/")
    yield plain
    yield (stem := _ENDING.sub("", plain))
    if _INDEX.search(stem):
        yield _INDEX.sub("", stem)


class SiteMap:
    """The documents of a corpus by the paths that links name them by, and their sections by anchors."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages: dict[str, list[str]] = {}
        self._ids: set[str] = set()
        headings: list[tuple[str, str, str]] = []
        self._sections: dict[tuple[str, str], str] = {}
        self._labels: dict[str, str] = {}
        for passage in passages:
            document, fragment = document_of(passage), passage.id.partition("#")[2]
            self._passages.setdefault(document, []).append(passage.id)
            self._ids.add(passage.id)
            if fragment and not _PART.search(fragment):
                self._sections.setdefault((document, _anchor(fragment)), passage.id)
                self._labels.setdefault(_anchor(fragment), passage.id)
            headings.append((document, _anchor(heading_of(passage)), passage.id))
        for document, heading, passage_id in headings:  # a stated id wins over a heading that reads alike
            self._sections.setdefault((document, heading), passage_id)
        self._documents: dict[str, str] = {}
        for rank in range(3):  # exact names win over shortened ones
            for document in self._passages:
                names = list(_pages(document))
                if rank < len(names):
                    self._documents.setdefault(names[rank], document)

    def candidates(self, path: str, document: str) -> Iterator[str]:
        """The paths in the corpus that a path in a document may mean, the likeliest first.

        A root-relative one may name folders above the corpus. A relative one starts at the document's folder, or, on
        sites where a page is a folder of its own (`guide/` for `guide.md`), at the page or a level up.
        """
        if path.startswith("/"):
            parts = path.strip("/").split("/")
            yield from ("/".join(parts[above:]) for above in range(len(parts)))  # "/" itself is one, ""
            return
        folder, page = posixpath.dirname(document), list(_pages(document))[-1]
        starts = (page, folder) if path.endswith("/") else (folder, page)
        for start in (*starts, posixpath.dirname(folder)):
            yield posixpath.normpath(posixpath.join(start, path)).removeprefix("./")

    def page(self, path: str, document: str) -> str | None:
        """The document that a path in `document` leads to, if there is one."""
        return next(filter(None, map(self.named, self.candidates(path, document))), None)

    def named(self, path: str) -> str | None:
        """The document of exactly this path from the corpus's root, whatever its ending is."""
        path = path.removeprefix(".") if path == "." else path
        names = (name for name in _pages(path) if name or not path)
        return next((self._documents[name] for name in names if name in self._documents), None)

    def follow(self, target: str, document: str) -> list[tuple[str, float]] | None:
        """The passages that a target in a document leads to, with weights; None where it leads to none.

        A section's is its first passage, a page's are its first passage and, weaker, the rest.
        """
        path, anchor = parted(target)
        if path.startswith(REF):
            found = self._labels.get(_anchor(path.removeprefix(REF)))
            return [(found, 1.0)] if found else None
        page = self.page(path, document) if path else document
        if page is None:
            return [(target, 1.0)] if target in self._ids else None
        section = self._sections.get((page, _anchor(anchor))) if anchor else None
        if section:
            return [(section, 1.0)]
        first, *rest = self._passages[page]
        return [(first, 1.0), *((one, WHOLE_PAGE) for one in rest)]


def external(target: str) -> bool:
    """Whether a target leads out of the documents: it has a host, or a scheme such as mailto."""
    return bool(_SCHEME.match(target)) and not _WRITTEN.match(target) and not target.startswith(REF)


def parted(target: str) -> tuple[str, str]:
    """The path and the anchor of a target, decoded, without its query and what a program writes around it."""
    if code := _SHORTCODE.search(target):
        target = code[1] or code[2]
    elif rooted := _WRITTEN.match(target):
        target = ("/" if rooted[0].startswith("@") else "") + target[rooted.end() :]
    path, _, anchor = target.partition("#")
    return unquote(path.partition("?")[0]).strip(), unquote(anchor).strip()


@dataclass
class Hyperlinks:
    """The links of a corpus: `edges` from passage to passage, one for each ordered pair, with weight and texts.

    `internal` counts the links between passages, `external` those that leave the corpus; `unresolved` name the others.
    """

    edges: dict[tuple[str, str], tuple[float, list[str]]] = field(default_factory=dict)
    internal: int = 0
    external: int = 0
    unresolved: list[str] = field(default_factory=list)


def resolve(passages: Iterable[Passage]) -> Hyperlinks:
    """Resolve all links of a corpus; one from a passage to itself counts and is no edge."""
    passages, links = list(passages), Hyperlinks()
    linked = [passage for passage in passages if passage.links]
    site = SiteMap(passages if linked else ())
    for passage in linked:
        for link in passage.links:
            if external(link.target):
                links.external += 1
                continue
            found = site.follow(link.target, document_of(passage))
            if found is None:
                links.unresolved.append(f"{link.target!r} in {passage.id}")
                continue
            links.internal += 1
            for reached, weight in found:
                if reached == passage.id:
                    continue
                known, texts = links.edges.get((passage.id, reached), (0.0, []))
                if link.text and link.text not in texts:
                    texts = [*texts, link.text]
                links.edges[passage.id, reached] = max(known, weight), texts
    return links
