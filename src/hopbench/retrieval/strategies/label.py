"""Labels, by which runs name strategies, and the table of built-in ones, without loading any (they load scipy)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from hopbench.retrieval.plugins.registry import STRATEGIES, offered, offered_names
from hopbench.retrieval.support.errors import InputError

HOP_FREE = ("vector", "bm25", "hybrid")
"""The baselines, which follow no edge; of equally good ones the first counts as the best."""

WITHOUT_SOURCE = ("pagerank", "hoprank")
"""Strategies without a source that documents defaults: their plain label is the tuned preset."""

TUNED = "tuned"
_LABEL = re.compile(
    r"^(?P<name>[^:+\[\]]+)(?::(?P<preset>[^+\[\]]+))?(?:\[(?P<changes>[^\[\]]*)\])?"
    r"(?:\+(?P<reranker>[^:+\[\]]+)(?:\[(?P<second>[^\[\]]*)\])?)?$"
)
_COMMA = re.compile(r",(?![^\[]*\])")  # one inside brackets separates changes


@dataclass(frozen=True, slots=True)
class Label:
    """A label in its parts; `changes` are parameters and values as they are written."""

    name: str
    preset: str | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
    reranker: str = field(default="", repr=False)
    reranker_changes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, text: str) -> Label:
        """The parts of a label; raises InputError where `text` has another form or sets a parameter twice.

        >>> Label.parse("hybrid:tuned[fusion=rrf]")
        Label(name='hybrid', preset='tuned', changes={'fusion': 'rrf'})
        """
        match = _LABEL.match(text)
        if match is None:
            raise InputError(
                f"{text!r} is no strategy label: write NAME, NAME:tuned, NAME[field=value,…] or NAME+RERANKER"
            )
        second = _pairs(text, match["second"])
        return cls(match["name"], match["preset"], _pairs(text, match["changes"]), match["reranker"] or "", second)

    @classmethod
    def of_any(cls, text: str) -> Label:
        """As `parse`; a text of any other form is a name without preset and changes."""
        try:
            return cls.parse(text)
        except InputError:
            return cls(text)

    def __str__(self) -> str:
        first = self.unchanged + _brackets(self.changes)
        return f"{first}+{self.reranker}{_brackets(self.reranker_changes)}" if self.reranker else first

    @property
    def stages(self) -> str:
        """Strategy and reranker, without preset and changes: `hoprank+mine`."""
        return f"{self.name}+{self.reranker}" if self.reranker else self.name

    @property
    def unchanged(self) -> str:
        """Name and preset, without changes and reranker."""
        return f"{self.name}:{self.preset}" if self.preset else self.name

    @property
    def is_hop_free(self) -> bool:
        """Whether it names a baseline, which follows no edge: `bm25`, `hybrid:tuned`, `vector[…]`."""
        return self.name in HOP_FREE

    @property
    def is_tuned(self) -> bool:
        """Whether its numbers come from a preset file: `NAME:tuned`, and the plain label of `WITHOUT_SOURCE`."""
        return self.preset == TUNED or (self.preset is None and self.name in WITHOUT_SOURCE)


def _pairs(text: str, written: str | None) -> dict[str, str]:
    changes: dict[str, str] = {}
    for part in (written or "").split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name in changes:
            raise InputError(f"{text!r} sets {name} twice, to {changes[name]} and {value}: keep one")
        if part.strip():
            changes[name] = value
    return changes


def _brackets(changes: Mapping[str, str]) -> str:
    return f"[{','.join(f'{parameter}={value}' for parameter, value in changes.items())}]" if changes else ""


def split_labels(selection: str) -> Iterator[str]:
    """The labels of a comma-separated selection, without blanks; a comma inside brackets belongs to its label."""
    return (label.strip() for label in _COMMA.split(selection) if label.strip())


BUILT_IN: Mapping[str, str] = {
    "vector": "hopbench.retrieval.strategies.baselines:Vector",
    "bm25": "hopbench.retrieval.strategies.baselines:BM25",
    "hybrid": "hopbench.retrieval.strategies.baselines:Hybrid",
    "graph_expansion": "hopbench.retrieval.strategies.graph_expansion:GraphExpansion",
    "expansion_queries": "hopbench.retrieval.strategies.expansion_queries:ExpansionQueries",
    "activation": "hopbench.retrieval.strategies.activation:Activation",
    "entity_expansion": "hopbench.retrieval.strategies.entity_expansion:EntityExpansion",
    "neighborhood": "hopbench.retrieval.strategies.neighborhood:Neighborhood",
    "dual_level": "hopbench.retrieval.strategies.dual_level:DualLevel",
    "kg2rag": "hopbench.retrieval.strategies.kg2rag:KG2RAG",
    "pagerank": "hopbench.retrieval.strategies.pagerank:PageRank",
    "hoprank": "hopbench.retrieval.strategies.hoprank.strategy:HopRank",
}
"""Name → `module:class`, in the order in which `all` runs them; an entry point of a package has the same form."""


def strategy_names() -> list[str]:
    """The names of built-in strategies and of plug-ins, whether or not a plug-in can be loaded."""
    return list(dict.fromkeys([*BUILT_IN, *offered_names(STRATEGIES)]))


def tuned_names() -> list[str]:
    """The strategies that have a second preset, which `all:tuned` selects; of plug-ins those whose package lists it."""
    folder = files("hopbench.retrieval.strategies") / "presets"
    names = [name for name in BUILT_IN if name not in WITHOUT_SOURCE and (folder / f"{name}.yaml").is_file()]
    for point in offered(STRATEGIES):
        wanted = "/".join([*point.module.split(".")[:-1], "presets", f"{point.name}.yaml"])
        if any(file.as_posix() == wanted for file in (point.dist.files if point.dist else None) or ()):
            names.append(point.name)
    return names
