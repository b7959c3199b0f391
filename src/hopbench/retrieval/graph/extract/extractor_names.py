"""The one table of built-in extractors, and the names of all, without loading any."""

from __future__ import annotations

from collections.abc import Mapping

from hopbench.retrieval.plugins.groups import EXTRACTORS, offered_names

_BUILD = "hopbench.retrieval.graph.construction.extraction"
BUILT_IN: Mapping[str, str] = {
    "rules": f"{_BUILD}:by_rules",
    "spacy": f"{_BUILD}:by_spacy",
    "triples": f"{_BUILD}:from_triples",
    "rules+triples": f"{_BUILD}:by_rules_and_triples",
    "llm": f"{_BUILD}:by_model",
}
"""Name → `module:function`; the entry point of a package names a function of chunks (`hopbench.extractors`)."""

ONLY_BY_FILE = "triples"
"""Chosen by naming a file of triples, not by name."""

NAMELESS = ("rules", "rules+triples", "triples")
"""The extractors that no model and no plug-in stands behind."""


def extractor_names() -> list[str]:
    """What `--extractor` takes: built-in ones and plug-ins, whether or not a plug-in can be loaded."""
    ours = [name for name in BUILT_IN if name != ONLY_BY_FILE]
    return list(dict.fromkeys([*ours, *offered_names(EXTRACTORS)]))
