"""The plan of a graph: extractors by name, settings, corpus and triples, and the build key, a digest of them all.

`BuildSettings` is the one declaration of defaults, bounds and help: flags (`flows.settings.graph_options`), sweep files
(`eval.sweep.entry`) and the build key follow it. This module imports little, since commands load it before they know
whether there is work to do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.plugins.registry import EXTRACTORS, offered_names
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import MAX_TOKENS, Passage, Triple

if TYPE_CHECKING:
    from hopbench.retrieval.embedding.base import Embedder
    from hopbench.retrieval.graph.extract.model import TripleReader
    from hopbench.retrieval.text import Language

_BUILD = "hopbench.retrieval.graph.construction.extraction"
BUILT_IN: Mapping[str, str] = {
    "rules": f"{_BUILD}:by_rules",
    "spacy": f"{_BUILD}:by_rules",
    "triples": f"{_BUILD}:from_triples",
    "rules+triples": f"{_BUILD}:by_rules_and_triples",
    "llm": f"{_BUILD}:by_model",
}
"""Name → `module:function`. Packages offer a function of chunks under the entry point `hopbench.extractors`."""

ONLY_BY_FILE = "triples"
"""Selected by passing a file of triples, not by name."""

NAMELESS = ("rules", "rules+triples", "triples")
"""The extractors that use neither a model nor a plug-in."""


def extractor_names() -> list[str]:
    """The values of `--extractor`: built-in extractors and plug-ins, whether or not a plug-in can be loaded."""
    built_in = [name for name in BUILT_IN if name != ONLY_BY_FILE]
    return list(dict.fromkeys([*built_in, *offered_names(EXTRACTORS)]))


EXACT, APPROXIMATE = METHODS = ("exact", "approximate")
EXACT_PASSAGES = 200_000  # above this, comparing all pairs takes longer than the rest of the build
CELLS_VERSION = "cells-1"  # of the approximate method: part of the build key, since a change may alter edges


@dataclass(frozen=True)
class Number:
    """A numeric build setting: default, smallest and largest allowed value, and help text."""

    default: int | float
    low: int
    high: int
    help: str


def _number(default: int | float, low: int, high: int, help: str) -> Any:
    return field(default=default, metadata={"number": Number(default, low, high, help.format(low=low, high=high))})


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """The settings that determine a graph's content, together with its corpus and triples.

    `recogniser` names the model of the extractors `spacy` and `llm` with its versions (`spacy_names.recogniser()`,
    `model.recogniser()`), or a plug-in's package with its version and a digest of its files. `similar` is the
    method of finding the nearest chunks, one of `METHODS` (`method_for`). `language` is the code of the corpus's
    language (`text.Language`); if empty it is detected. Raises ParameterError for unknown, contradictory and
    out-of-range values.
    """

    extractor: str = "rules"
    recogniser: str = ""
    similar_top_k: int = _number(10, 1, 1000, "SIMILAR_TO edges of a chunk, {low}..{high}")
    similar_floor: float = _number(0.3, 0, 1, "least similarity of such an edge, {low}..{high}")
    max_tokens: int = _number(MAX_TOKENS, 1, 1_000_000, "tokens above which a passage is split")
    similar: str = EXACT
    language: str = ""

    def __post_init__(self) -> None:
        """Reject unknown and contradictory settings."""
        if self.extractor not in BUILT_IN and self.extractor not in extractor_names():
            known = ", ".join(dict.fromkeys([*BUILT_IN, *extractor_names()]))
            raise ParameterError(f"extractor {self.extractor!r} is unknown; known: {known}")
        if (self.extractor not in NAMELESS) != bool(self.recogniser):
            given = f"extractor {self.extractor!r} with recogniser {self.recogniser!r}"
            raise ParameterError(f"{given}: 'spacy', 'llm' and plug-ins need one, no other has one")
        if self.similar not in METHODS:
            raise ParameterError(f"similar {self.similar!r} is unknown; known: {', '.join(METHODS)}")
        if self.language:
            from hopbench.retrieval.text import Language

            Language(self.language)
        for name, number in build_numbers().items():
            if not number.low <= (value := getattr(self, name)) <= number.high:  # false for NaN, too
                raise ParameterError(f"{name} {value} is outside {number.low}..{number.high}")

    def identity(self) -> Mapping[str, str | int | float]:
        """The settings' part of the build key; `similar` only if it can change the result."""
        from hopbench.retrieval.text.model_tokens import TOKENIZER

        values = asdict(self) | {"tokenizer": TOKENIZER}
        del values["language"]  # the plan adds it, whether set or detected
        if values.pop("similar") == APPROXIMATE:
            values["similar"] = CELLS_VERSION
        return values


def method_for(passages: int) -> str:
    """The default method of finding the nearest chunks of so many passages."""
    return EXACT if passages <= EXACT_PASSAGES else APPROXIMATE


def build_numbers() -> Mapping[str, Number]:
    """The numeric build settings by name, in the order of their declaration."""
    return {spec.name: spec.metadata["number"] for spec in fields(BuildSettings) if "number" in spec.metadata}


BUILDER_VERSION = 5


@dataclass(frozen=True)
class GraphPlan:
    """The inputs of a graph, and the build key derived from them.

    `reader` is the model of the extractor `llm`, needed only if the graph is not built yet. `corpus` is `corpus_digest`
    of the passages, if known.
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
        """The language in the settings, else the one most passages are in."""
        from hopbench.retrieval.text import Language

        code = self.settings.language
        return Language(code) if code else passages_language(self.passages)

    @cached_property
    def structure(self) -> str:
        """SHA-256 of the passages' documents, order and links; empty where they have none: then no edges follow."""
        return structure_digest(self.passages)

    @cached_property
    def build_key(self) -> str:
        """SHA-256 of corpus, triples, settings, embedder and builder version: takes seconds for a million passages."""
        return _digest(
            {
                **({"structure": self.structure} if self.structure else {}),
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
        """The benchmark's name and the first 12 digits of the build key, so that two builds never share a namespace."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return f"{safe}-{self.build_key[:12]}"


def passages_language(passages: Sequence[Passage]) -> Language:
    """Detect the language of most passages, independent of their order."""
    from hopbench.retrieval.corpus import MappedPassages
    from hopbench.retrieval.text import detect, sampled  # with regex, which takes as long to load as all flags

    rows = sampled(len(passages))
    if isinstance(passages, MappedPassages):
        sample = passages.many(passages.order[rows])
    else:
        ordered = sorted(passages, key=attrgetter("id"))
        sample = [ordered[row] for row in rows]
    return detect(f"{one.title}. {one.text}" for one in sample)


def corpus_digest(passages: Sequence[Passage]) -> str:
    """SHA-256 of the passages in any order: of the sorted JSON list of [id, title, text], streamed."""
    from hopbench.retrieval.corpus import MappedPassages

    if isinstance(passages, MappedPassages):
        rows = ([one.id, one.title, one.text] for one in passages.some(passages.order))
    else:
        rows = (row for row in sorted([one.id, one.title, one.text] for one in passages))
    digest = hashlib.sha256(b"[")
    for number, row in enumerate(rows):
        text = json.dumps(row, ensure_ascii=False)
        digest.update((f", {text}" if number else text).encode("utf-8", "surrogatepass"))
    digest.update(b"]")
    return digest.hexdigest()


def structure_digest(passages: Sequence[Passage]) -> str:
    """SHA-256 of each passage's id, document and links, in the corpus's order.

    Empty for a corpus without links in which no two passages are of one document.
    """
    from hopbench.retrieval.corpus import MappedPassages

    if isinstance(passages, MappedPassages) and not passages.sourced:
        return ""
    rows = [
        [one.id, one.source.document_id, [[link.text, link.target] for link in one.links]]
        for one in passages
        if one.source.document_id or one.links
    ]
    documents = [document for _, document, _ in rows if document]
    divided = len(documents) > len(set(documents))
    return _digest(rows) if divided or any(links for *_, links in rows) else ""


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
