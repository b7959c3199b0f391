"""The plan of a graph: settings, corpus and triples, and the build key, a digest of all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from hopbench.retrieval.corpus import MappedPassages
from hopbench.retrieval.graph.construction.settings import BuildSettings
from hopbench.retrieval.text import Language, detect, sampled
from hopbench.retrieval.types import Passage, Triple

if TYPE_CHECKING:
    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.graph.extract.model import TripleReader

BUILDER_VERSION = 5


@dataclass(frozen=True)
class GraphPlan:
    """The inputs of a graph, and the build key made of them.

    `reader` is the model of the extractor `llm`, wanted only where the graph has still to be built. `corpus` is
    `corpus_digest` of the passages, where it is known.
    """

    name: str
    passages: Sequence[Passage]
    settings: BuildSettings
    embedder: Embedder
    triples: Sequence[Triple] = ()
    reader: TripleReader | None = None
    corpus: str = ""

    @cached_property
    def language(self) -> Language:
        """The language of the settings, else that of most passages."""
        code = self.settings.language
        return Language(code) if code else passages_language(self.passages)

    @cached_property
    def build_key(self) -> str:
        """SHA-256 of corpus, triples, settings, embedder and builder version: seconds for a million passages."""
        return _digest(
            {
                **({} if self.language.english else {"language": self.language.code}),
                "builder": BUILDER_VERSION,
                "corpus": self.corpus or corpus_digest(self.passages),
                "triples": _digest(sorted(map(str, self.triples))),
                "settings": self.settings.identity(),
                "embedder": self.embedder.name,
            }
        )

    @property
    def namespace(self) -> str:
        """The benchmark's name and the beginning of the build key, so that two builds never share a namespace."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return f"{safe}-{self.build_key[:12]}"


def passages_language(passages: Sequence[Passage]) -> Language:
    """The language of most passages, in any order."""
    return detect(f"{one.title}. {one.text}" for one in _sample(passages))


def corpus_digest(passages: Sequence[Passage]) -> str:
    """SHA-256 of the passages, in any order: of the JSON list of [id, title, text], sorted, written part by part."""
    digest, rows = hashlib.sha256(b"["), _sorted_rows(passages)
    for number, row in enumerate(rows):
        text = json.dumps(row, ensure_ascii=False)
        digest.update((f", {text}" if number else text).encode("utf-8", "surrogatepass"))
    digest.update(b"]")
    return digest.hexdigest()


def _sample(passages: Sequence[Passage]) -> list[Passage]:
    if isinstance(passages, MappedPassages):
        return passages.many(passages.order[sampled(len(passages))])
    ordered = sorted(passages, key=attrgetter("id"))
    return [ordered[row] for row in sampled(len(ordered))]


def _sorted_rows(passages: Sequence[Passage]) -> Iterator[list[str]]:
    if isinstance(passages, MappedPassages):
        return ([p.id, p.title, p.text] for p in passages.some(passages.order))
    return iter(sorted([p.id, p.title, p.text] for p in passages))


def _digest(value: object) -> str:
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
    ).hexdigest()
