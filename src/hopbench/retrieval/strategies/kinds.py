"""The kind of a label: documented, tuned, learned, or set by hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict

from hopbench.retrieval.fitted import FittedOn, sets_of
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.registry import preset

DOCUMENTED, TUNED, BY_HAND = "documented", "tuned", "set by hand"


class InSample(TypedDict):
    """The sets on which a label was tuned or learned that share questions with a benchmark, and how many they share."""

    sets: Sequence[str]
    questions: int


@dataclass(frozen=True)
class LabelKind:
    """`kind` in a word or two, and the sets on which the label's numbers were tuned or from which they were learned."""

    kind: str
    fitted_on: tuple[FittedOn, ...] = ()

    def in_sample(self, digest: str, questions: Collection[str]) -> InSample | None:
        """Which of those sets a benchmark is, or shares questions with; None where it has nothing in common with them.

        `questions` are the hashes of the benchmark's questions.
        """
        whole = {one.name for one in self.fitted_on if one.digest == digest}
        shared = {one.name: one.questions & set(questions) for one in self.fitted_on}
        named = sorted(whole | {name for name, common in shared.items() if common})
        if not named:
            return None
        return {"sets": named, "questions": len(questions) if whole else len(frozenset().union(*shared.values()))}


def kind_of(label: str, strategy: Strategy, tuned_on: Sequence[FittedOn] = ()) -> LabelKind:
    """The kind of a label; `tuned_on` are the sets on which its changes were tuned, as a sweep's best.yaml lists them.

    Changes make a label one that was set by hand, except those of fields that name learned numbers. What its other
    numbers were fitted on stays known.
    """
    if strategy.foreign:  # its label is the user's own, and says nothing of presets
        return LabelKind(strategy.kind, tuple(strategy.fitted_on()))
    parts = Label.of_any(label)
    kind, sets = strategy.kind, list(strategy.fitted_on())
    tuned = preset(parts.name) if parts.is_tuned else None
    if tuned is not None:
        kind = TUNED
        sets += sets_of(tuned.provenance["tuned_on"])
    if parts.reranker_changes or set(parts.changes) - set(strategy.fitted_fields):
        kind = TUNED if tuned_on else BY_HAND
        sets += tuned_on
    return LabelKind(kind, tuple(dict.fromkeys(sets)))
