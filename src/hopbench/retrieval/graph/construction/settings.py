"""The settings that decide a graph's content: the one declaration of their defaults, bounds and help.

Flags (`flows.settings.graph_options`), sweep files (`eval.sweep.entry`) and the build key follow it. It loads little:
commands import it before they know whether they have work to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hopbench.retrieval.graph.extract.extractor_names import BUILT_IN, NAMELESS, extractor_names
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.text import Language
from hopbench.retrieval.types import MAX_TOKENS

EXACT, APPROXIMATE = METHODS = ("exact", "approximate")
EXACT_PASSAGES = 200_000  # comparing all pairs of so many takes about as long as the rest of their graph's build
CELLS_VERSION = "cells-1"  # of the approximate method, whose every change may give other edges


@dataclass(frozen=True)
class Number:
    """A build number: its default, the least and the greatest value allowed, and what it means."""

    default: int | float
    low: int
    high: int
    help: str


def _number(default: int | float, low: int, high: int, help: str) -> Any:
    return field(default=default, metadata={"number": Number(default, low, high, help.format(low=low, high=high))})


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """The settings that decide a graph's content, beside its corpus and triples.

    `recogniser` names the model of the extractors `spacy` and `llm` with its versions (`spacy_names.recogniser()`,
    `model.recogniser()`), or a plug-in's package with its version and a digest of its files. `similar` is how the
    nearest chunks are found, one of `METHODS` (`method_for`). `language` is the code of the corpus's language (`text.
    Language`), empty where its passages tell it. Raises ParameterError for unknown, contradictory and
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
        """Refuse unknown and contradictory settings."""
        if self.extractor not in BUILT_IN and self.extractor not in extractor_names():
            known = ", ".join(dict.fromkeys([*BUILT_IN, *extractor_names()]))
            raise ParameterError(f"extractor {self.extractor!r} is unknown; known: {known}")
        if (self.extractor not in NAMELESS) != bool(self.recogniser):
            given = f"extractor {self.extractor!r} with recogniser {self.recogniser!r}"
            raise ParameterError(f"{given}: 'spacy', 'llm' and plug-ins need one, no other has one")
        if self.similar not in METHODS:
            raise ParameterError(f"similar {self.similar!r} is unknown; known: {', '.join(METHODS)}")
        if self.language:
            Language(self.language)
        for name, number in build_numbers().items():
            if not number.low <= (value := getattr(self, name)) <= number.high:  # NaN is refused, too
                raise ParameterError(f"{name} {value} is outside {number.low}..{number.high}")

    def identity(self) -> Mapping[str, str | int | float]:
        """What these settings add to a build key; `similar` only where it can change the result."""
        from hopbench.retrieval.text.model_tokens import TOKENIZER

        values = asdict(self) | {"tokenizer": TOKENIZER}
        del values["language"]  # the plan adds it, given or told by the passages
        if values.pop("similar") == APPROXIMATE:
            values["similar"] = CELLS_VERSION
        return values


def method_for(passages: int) -> str:
    """How the nearest chunks of so many passages are found where nobody chooses."""
    return EXACT if passages <= EXACT_PASSAGES else APPROXIMATE


def build_numbers() -> Mapping[str, Number]:
    """The numeric build settings by name, in the order of their declaration."""
    return {spec.name: spec.metadata["number"] for spec in fields(BuildSettings) if "number" in spec.metadata}
