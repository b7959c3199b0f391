"""Finds the earlier label that each of tonight's labels is compared with, so that renaming a label hides no drop.

A label is compared with itself on the last good night that had it. A new label, where the reference night has
labels of its strategy that tonight lacks (`--set` renamed it, `:tuned` replaced the plain one), replaces the nearest of
these. What the reference night had and nothing replaces is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopbench.flows.nights.history import NightlyRecord, last_good
from hopbench.retrieval.strategies.label import Label

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class LabelMatches:
    """`before`: each label that has a past, with the night and the label that it is compared with.

    `new` labels have none. `missing` labels were in the reference night `measure` and are not among
    tonight's; `vanished` is true if the same selection included them then.
    """

    before: Mapping[str, tuple[NightlyRecord, str]] = field(default_factory=dict)
    new: Sequence[str] = ()
    missing: Sequence[str] = ()
    measure: NightlyRecord | None = None
    vanished: bool = False

    @property
    def replaced(self) -> dict[str, str]:
        """Labels that replace another label of their strategy."""
        return {label: known_as for label, (_, known_as) in self.before.items() if label != known_as}


def match_labels(
    tonight: Mapping[str, Parameters], earlier: Sequence[NightlyRecord], selection: Sequence[str]
) -> LabelMatches:
    """Match tonight's labels, by their parameters, with those of `earlier` nights (newest first).

    `selection` is `--strategies` and each `--set`. The reference is the newest good night with the same selection, else
    the newest good night.
    """
    good = [night for night in earlier if night.good]
    if not good:
        return LabelMatches(new=tuple(tonight))
    alike = [night for night in good if night.selection == list(selection)]
    measure = [*alike, *good][0]
    before = {label: (night, label) for label in tonight if (night := last_good(earlier, label)) is not None}
    of_past = {strategy_of(label) for label in before}
    for label in (label for label in tonight if label not in before):
        strategy = strategy_of(label)
        night = measure if _lacking(measure, tonight, strategy) else None
        if night is None and strategy not in of_past:
            night = next((one for one in good if _lacking(one, tonight, strategy)), None)
        if night is not None:
            before[label] = (night, nearest(label, tonight[label], _lacking(night, tonight, strategy)))
    taken = {known_as for _, known_as in before.values()}
    missing = tuple(label for label in measure.labels if label not in tonight and label not in taken)
    new = tuple(label for label in tonight if label not in before)
    return LabelMatches(
        {label: before[label] for label in tonight if label in before}, new, missing, measure, bool(alike and missing)
    )


def strategy_of(label: str) -> str:
    """`NAME:tuned[field=value]` → `NAME`; with a reranker, `NAME+RERANKER`."""
    return Label.of_any(label).stages


def nearest(label: str, parameters: Parameters, candidates: Mapping[str, Parameters]) -> str:
    """The candidate of the same preset, then with the fewest other parameters, then the first by name."""

    def distance(candidate: str) -> tuple[bool, int, str]:
        other = candidates[candidate]
        differing = sum(parameters.get(name) != other.get(name) for name in {*parameters, *other})
        return Label.of_any(candidate).unchanged != Label.of_any(label).unchanged, differing, candidate

    return min(candidates, key=distance)


def _lacking(night: NightlyRecord, tonight: Mapping[str, Parameters], strategy: str) -> dict[str, Parameters]:
    """The night's labels of a strategy that tonight lacks, with their parameters."""
    specs = night.circumstances.get("specs", {})
    return {
        label: specs.get(label, {}) for label in night.labels if label not in tonight and strategy_of(label) == strategy
    }
