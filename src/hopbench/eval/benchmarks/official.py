"""Detects from a record which format it belongs to, and returns the reader of that format."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache

from hopbench.eval.benchmarks.beir import Parsed
from hopbench.eval.benchmarks.fields import Record, Rows
from hopbench.eval.benchmarks.formats import Loader, detects, read_by, usable
from hopbench.retrieval.plugins.registry import LOADERS, Registry
from hopbench.retrieval.support.errors import InputError

BUILT_IN: Mapping[str, str] = {
    "hotpotqa": "hopbench.eval.benchmarks.hotpotqa:HOTPOTQA",
    "2wiki": "hopbench.eval.benchmarks.hotpotqa:TWOWIKI",
    "musique": "hopbench.eval.benchmarks.musique:MUSIQUE",
}
"""Format → `module:loader`; an entry point of a package has the same form."""


@cache
def loaders() -> Registry[Loader]:
    """The built-in loaders and those that installed packages offer under the entry point `hopbench.loaders`."""
    return Registry("benchmark format", LOADERS, BUILT_IN, usable)


def detect(rows: Rows, source: str, format: str | None) -> tuple[Rows, Callable[[str, Rows], Parsed]]:
    """The reader for these records, chosen by the first one's fields, and an iterator over all of them."""
    iterator = iter(rows)
    first = next(iterator, None)
    if first is None:
        raise InputError(f"{source}: is empty: it must hold at least one record")
    name = format or _format_of(source, first[1])
    if name is None:
        fields = ", ".join(map(str, first[1])) or "none"
        others = loaders().plugins()
        also = f", nor one of the loaders installed ({', '.join(others)})" if others else ""
        raise first[0].error(
            f"not a HotpotQA, 2WikiMultihopQA or MuSiQue record{also} (fields: {fields}): "
            "for a corpus of your own give the folder that holds corpus.jsonl, and queries.jsonl if it has questions"
        )
    loader = loaders().get(name)
    return itertools.chain([first], iterator), loader.read if name in BUILT_IN else read_by(name, loader)


def _format_of(source: str, record: Record) -> str | None:
    """The format of a record: one of ours, else that of the one plug-in that takes it."""
    ours = next((name for name in BUILT_IN if loaders().get(name).detects(record)), None)
    if ours is not None:
        return ours
    theirs = [name for name in loaders().plugins() if detects(name, loaders().get(name), record)]
    if len(theirs) > 1:
        raise InputError(f"{source}: the loaders {', '.join(theirs)} all take it: uninstall all but one")
    return theirs[0] if theirs else None
