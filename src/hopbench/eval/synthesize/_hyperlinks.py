"""Resolve the hyperlinks of a corpus to its passages: relative and root-relative pages, and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hopbench.retrieval.graph.construction.hyperlinks import SiteMap, document_of, external
from hopbench.retrieval.types import Link, Passage

LINKED = 0.1  # share of documents that must link to another for their hyperlinks to be the evidence


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
    def _site(self) -> SiteMap:
        return SiteMap(self.passages)

    @cached_property
    def _row(self) -> dict[str, int]:
        return {passage.id: row for row, passage in enumerate(self.passages)}

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

    def targets(self, passage: Passage, link: Link) -> Sequence[int]:
        """The passages that a link leads to: its section with the parts of it, else the page; none outside."""
        if external(link.target):
            return ()
        reached = [name for name, _ in self._site.follow(link.target, document_of(passage)) or ()]
        if len(reached) == 1:  # a section; the parts of a long one follow it
            reached += [name for name in self._row if name.startswith((f"{reached[0]}&part=", f"{reached[0]}#part="))]
        elif link.target.partition("#")[0] == "":
            return ()  # somewhere on its own page
        return [self._row[name] for name in reached]
