"""Labels, by which runs speak of strategies, without loading any (they load scipy).

A label is `NAME` (the documented preset: the source's defaults), `NAME:tuned` (the preset file of that name), or either
with changed parameters: `NAME[field=value,…]`, `NAME:tuned[field=value,…]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hopbench.retrieval.support.errors import InputError

HOP_FREE = ("vector", "bm25", "hybrid")
"""The baselines, which follow no edge; of equally good ones the first counts as the best."""

WITHOUT_SOURCE = ("pagerank", "hoprank")
"""Strategies without a source that documents defaults: their plain label is the tuned preset."""

TUNED = "tuned"
_LABEL = re.compile(r"^(?P<name>[^:\[\]]+)(?::(?P<preset>[^\[\]]+))?(?:\[(?P<changes>[^\[\]]*)\])?$")
_COMMA = re.compile(r",(?![^\[]*\])")  # one inside brackets separates changes


@dataclass(frozen=True, slots=True)
class Label:
    """A label in its parts; `changes` are parameters and values as they are written."""

    name: str
    preset: str | None = None
    changes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Label:
        """The parts of a label; raises InputError where `text` has another form or sets a parameter twice.

        >>> Label.parse("hybrid:tuned[fusion=rrf]")
        Label(name='hybrid', preset='tuned', changes={'fusion': 'rrf'})
        """
        match = _LABEL.match(text)
        if match is None:
            raise InputError(f"{text!r} is no strategy label: write NAME, NAME:tuned or NAME[field=value,…]")
        pairs = (part.partition("=") for part in (match["changes"] or "").split(",") if part.strip())
        changes: dict[str, str] = {}
        for parameter, _, value in pairs:
            name = parameter.strip()
            if name in changes:
                raise InputError(f"{text!r} sets {name} twice, to {changes[name]} and {value.strip()}: keep one")
            changes[name] = value.strip()
        return cls(match["name"], match["preset"], changes)

    @classmethod
    def of_any(cls, text: str) -> Label:
        """As `parse`; a text of another form, such as one of another version, is a name without preset and changes."""
        try:
            return cls.parse(text)
        except InputError:
            return cls(text)

    def __str__(self) -> str:
        """The label as it is written: `Label.parse(str(label)) == label`."""
        changes = ",".join(f"{parameter}={value}" for parameter, value in self.changes.items())
        return f"{self.unchanged}[{changes}]" if changes else self.unchanged

    @property
    def unchanged(self) -> str:
        """Name and preset, without the changes."""
        return f"{self.name}:{self.preset}" if self.preset else self.name

    @property
    def is_hop_free(self) -> bool:
        """Whether it names a baseline, which follows no edge: `bm25`, `hybrid:tuned`, `vector[…]`."""
        return self.name in HOP_FREE

    @property
    def is_tuned(self) -> bool:
        """Whether its numbers come from a preset file: `NAME:tuned`, and the plain label of `WITHOUT_SOURCE`."""
        return self.preset == TUNED or (self.preset is None and self.name in WITHOUT_SOURCE)

    def with_changes(self, changes: Mapping[str, str]) -> Label:
        """The label with these changes beside its own; of two changes of one parameter the new one holds."""
        return replace(self, changes={**self.changes, **changes})


def split_labels(selection: str) -> Iterator[str]:
    """The labels of a comma-separated selection, without blanks; a comma inside brackets belongs to its label."""
    return (label.strip() for label in _COMMA.split(selection) if label.strip())
