"""Resolve links that name a page or section as only their site knows it: Sphinx's labels, Antora's modules."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hopbench.retrieval.types import Link, Passage

LABEL = ":ref:"
_ANTORA = re.compile(
    r"(?:[^:@/]+@)?(?:(?P<component>[^:/]*):)??(?:(?P<module>[^:/]*):)?(?P<page>[^:#]+\.adoc)(?P<id>#.*)?"
)
_MODULE = re.compile(r"(.*?/?)modules/([^/]+)/pages/")


def with_references(
    passages: Sequence[Passage], labels: Mapping[str, str], documents: Collection[str]
) -> tuple[Passage, ...]:
    """Give links a path from the corpus's folder where their target names a label, a module or the root of a site.

    `labels` are those of all documents, with the id of their passage. What leads nowhere stays as it is written.
    """
    sites: dict[str, str] = {}
    for name in documents:
        if (module := _MODULE.match(name)) is not None:
            sites.setdefault(name[module.start(2) :], name)

    def target_of(link: Link, document: str) -> str:
        target = link.target
        if target.startswith(LABEL):
            found = labels.get(target.removeprefix(LABEL), "")
        elif document.endswith(".rst") and target.startswith("/"):
            found = _below_root(target, document, documents)
        elif document.endswith((".adoc", ".asciidoc")):
            found = _antora_page(target, document, documents, sites)
        else:
            found = ""
        return f"/{found}" if found else target

    made = []
    for passage in passages:
        links = tuple(replace(link, target=target_of(link, passage.source.document_id)) for link in passage.links)
        made.append(passage if links == passage.links else replace(passage, links=links))
    return tuple(made)


def _below_root(target: str, document: str, documents: Collection[str]) -> str:
    """A page by its path from the root of the site: the outermost folder around the document that has such a page."""
    path, mark, identity = target.strip("/").partition("#")
    folders = document.split("/")[:-1]
    found = ("/".join([*folders[:depth], path]) for depth in range(len(folders) + 1))
    page = next((name for name in found if name in documents), "")
    return f"{page}{mark}{identity}" if page else ""


def _antora_page(target: str, document: str, documents: Collection[str], sites: Mapping[str, str]) -> str:
    """A page by component, module and path in the module's pages."""
    own, found = _MODULE.match(document), _ANTORA.fullmatch(target)
    if own is None or found is None or found["page"].startswith((".", "/")):
        return ""
    module = own[2] if found["module"] is None else found["module"] or "ROOT"
    name = f"{own[1]}modules/{module}/pages/{found['page']}"
    if found["component"] is not None or name not in documents:
        name = sites.get(f"{module}/pages/{found['page']}", "")
    return f"{name}{found['id'] or ''}" if name else ""
