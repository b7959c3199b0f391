"""The plan of a graph: settings, corpus and triples, and the build key, a digest of all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hopbench.retrieval.chunking import MAX_TOKENS
from hopbench.retrieval.graph.extract.extractor_names import BUILT_IN, NAMELESS, extractor_names
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Passage, Triple

if TYPE_CHECKING:
    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.graph.extract.model import TripleReader

BUILDER_VERSION = 4


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """The settings that decide a graph's content, beside its corpus and triples.

    `recogniser` names the model of the extractors `spacy` and `llm` with its versions (`spacy_names.recogniser()`,
    `model.recogniser()`), or a plug-in's package with its version and a digest of its files.
    """

    extractor: str = "rules"
    recogniser: str = ""
    similar_top_k: int = 10
    similar_floor: float = 0.3
    max_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        """Refuse unknown and contradictory settings."""
        if self.extractor not in BUILT_IN and self.extractor not in extractor_names():
            known = ", ".join(dict.fromkeys([*BUILT_IN, *extractor_names()]))
            raise ParameterError(f"extractor {self.extractor!r} is unknown; known: {known}")
        if (self.extractor not in NAMELESS) != bool(self.recogniser):
            given = f"extractor {self.extractor!r} with recogniser {self.recogniser!r}"
            raise ParameterError(f"{given}: 'spacy', 'llm' and plug-ins need one, no other has one")
        if not 1 <= self.similar_top_k <= 1000:
            raise ParameterError(f"similar_top_k {self.similar_top_k} is outside 1..1000")
        if not 0.0 <= self.similar_floor <= 1.0:
            raise ParameterError(f"similar_floor {self.similar_floor} is outside 0..1")
        if not 1 <= self.max_tokens <= 1_000_000:
            raise ParameterError(f"max_tokens {self.max_tokens} is outside 1..1000000")


@dataclass(frozen=True)
class GraphPlan:
    """The inputs of a graph, and the build key made of them.

    `reader` is the model of the extractor `llm`, wanted only where the graph has still to be built.
    """

    name: str
    passages: Sequence[Passage]
    settings: BuildSettings
    embedder: Embedder
    triples: Sequence[Triple] = ()
    reader: TripleReader | None = None

    @property
    def build_key(self) -> str:
        """SHA-256 of corpus, triples, settings, embedder and builder version."""
        return _digest(
            {
                "builder": BUILDER_VERSION,
                "corpus": corpus_digest(self.passages),
                "triples": _digest(sorted(map(str, self.triples))),
                "settings": asdict(self.settings),
                "embedder": self.embedder.name,
            }
        )

    @property
    def namespace(self) -> str:
        """The benchmark's name and the beginning of the build key, so that two builds never share a namespace."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return f"{safe}-{self.build_key[:12]}"


def corpus_digest(passages: Sequence[Passage]) -> str:
    """SHA-256 of the passages, in any order."""
    return _digest(sorted([p.id, p.title, p.text] for p in passages))


def _digest(value: object) -> str:
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
    ).hexdigest()
