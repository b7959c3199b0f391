"""Keeps docs/strategies.md true: parameter tables written from the strategies themselves.

    python -m tools.docs.strategies docs/strategies.md

replaces the text between `<!-- parameters NAME -->` and `<!-- /parameters -->` for every strategy, and between
`<!-- aliases -->` and `<!-- /aliases -->` the documents' own names. A second call changes nothing; a test compares
the committed page with the output.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hopbench.eval.files import write_atomically
from hopbench.retrieval.strategies.base import Bounds, Strategy
from hopbench.retrieval.strategies.registry import preset, registry
from tools.docs.places import read_page, run

_BLOCK = re.compile(r"(<!-- parameters (?P<name>[\w-]+) -->\n).*?(<!-- /parameters -->)", re.DOTALL)
_ALIASES = re.compile(r"(<!-- aliases -->\n).*?(<!-- /aliases -->)", re.DOTALL)


def parameter_table(strategy: type[Strategy]) -> str:
    """Markdown: a row per parameter with default, tuned value where it differs, bounds and meaning; then the edges."""
    second = preset(strategy.name)
    tuned = second.parameters if second else {}
    titles = ["parameter", "default", *(["tuned"] if tuned else []), "bounds", "meaning"]
    rows = [" | ".join(titles), " | ".join("---" for _ in titles)]
    for name, spec in strategy.parameters().items():
        bounds: Bounds = spec.metadata["bounds"]
        changed = [_shown(tuned[name]) if name in tuned else ""] if tuned else []
        limits, meaning = _limits(bounds, spec.default), bounds.help.replace("|", "\\|")
        rows.append(" | ".join([f"`{name}`", _shown(spec.default), *changed, limits, meaning]))
    return "\n".join(f"| {row} |" for row in rows) + "\n" + _edges(strategy)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value) or "(empty)"


def _limits(bounds: Bounds, default: object) -> str:
    return bounds.describe() or ("true or false" if isinstance(default, bool) else "text")


def _edges(strategy: type[Strategy]) -> str:
    """Which edges the strategy follows, and the setting that takes each away."""
    if not strategy.edges:
        return ""
    listed = [f"{edge} ({_setting(strategy.ablations.get(edge, {}))})" for edge in strategy.edges]
    return f"\nEdges, each with what its ablation sets: {'; '.join(listed)}.\n"


def _setting(changes: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}={_shown(value)}`" for name, value in changes.items()) or "no ablation"


def alias_table(strategies: Iterable[type[Strategy]]) -> str:
    """Markdown: a row per parameter that its source document calls by another name."""
    rows = ["source | its name | here | default | bounds", "--- | --- | --- | --- | ---"]
    for strategy in strategies:
        source = strategy.summary.partition(":")[0]
        for name, spec in strategy.parameters().items():
            bounds: Bounds = spec.metadata["bounds"]
            if bounds.aliases:
                theirs = ", ".join(f"`{alias}`" for alias in bounds.aliases)
                limits = _limits(bounds, spec.default)
                rows.append(f"{source} | {theirs} | `{strategy.name}.{name}` | {_shown(spec.default)} | {limits}")
    return "".join(f"| {row} |\n" for row in rows)


def written(text: str) -> str:
    """The page with all its tables written anew; InputError for a block whose strategy is not registered."""
    known = registry()
    listed = alias_table(known.get(name) for name in known.names())
    page = _ALIASES.sub(lambda block: f"{block[1]}{listed}{block[2]}", text)
    return _BLOCK.sub(lambda block: f"{block[1]}{parameter_table(known.get(block['name']))}{block[3]}", page)


def main() -> None:
    """Rewrite the page that is named."""
    parser = argparse.ArgumentParser(description="Write the parameter tables of docs/strategies.md.")
    parser.add_argument("page", type=Path)
    page: Path = parser.parse_args().page
    write_atomically(page, written(read_page(page)).encode())


if __name__ == "__main__":
    run(main)
