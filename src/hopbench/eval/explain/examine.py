"""What became of passages under one strategy or two; the work this takes is done only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hopbench.eval.explain._outcomes import EVERY_KIND, Fate, Kind, Outcome, Routes, helpful, outcomes_of, rivals
from hopbench.eval.explain.answers import Answer, RankedPassage
from hopbench.retrieval.external import first_parts
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.base import KEEP

_FOUND: Mapping[str, Kind] = {"graph": "reached", "foreign": "returned"}


@dataclass(eq=False)
class Examiner:
    """One question, answered by one strategy; `top` is the k that counts as found."""

    batch: Batch
    answer: Answer
    top: int = 10

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The candidates under every single change of a parameter."""
        return outcomes_of(self.answer.strategy, self.batch)

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.batch.index, self.answer.seeds, self._entities, self.answer.strategy.edges)

    @cached_property
    def _all_routes(self) -> Routes:
        return Routes(self.batch.index, self.answer.seeds, self._entities, EVERY_KIND)

    @property
    def _entities(self) -> Sequence[str]:
        """Entities from which the strategy starts in addition to its chunks, where its notes name them."""
        named = self.answer.notes.get("entities", ())
        listed = named if isinstance(named, list | tuple) else []
        return [str(entity[0] if isinstance(entity, list | tuple) and entity else entity) for entity in listed]

    def fate(self, passage: str) -> Fate:
        """Determine the fate of a passage; gold is known here and in no strategy."""
        answer = self.answer
        if answer.failure is not None:
            return Fate(passage, "failed")
        if passage not in first_parts(self.batch.index):
            return Fate(passage, "not in the corpus")
        place, initial = answer.place(passage), answer.initial.get(passage)
        if place is not None and place.rank <= self.top:
            kind = "filled" if not place.candidate else _FOUND.get(place.hit.origin, "seed")
            return Fate(passage, kind, place, initial)
        if place is not None and place.candidate:
            return Fate(
                passage,
                "out-ranked",
                place,
                initial,
                rivals(answer, place, self.top),
                helpful(passage, self.outcomes, self.top),
            )
        return self._lost(passage, place, initial)

    def _lost(self, passage: str, place: RankedPassage | None, initial: int | None) -> Fate:
        """The fate of a passage that the strategy itself did not rank."""
        if self.answer.strategy.foreign:  # the graph was not walked; a way in it says what walking it could add
            return Fate(passage, "not returned", place, initial, route=self._all_routes.to(passage))
        changes = helpful(passage, self.outcomes)
        if not self.answer.strategy.edges:
            return Fate(passage, "not ranked", place, initial, changes=changes)
        if len(self.answer.places) >= KEEP and all(helped.lost for helped in changes):
            within = tuple(helped for helped in changes if helped.place.rank <= self.top)
            return Fate(passage, "out-ranked", place, initial, changes=within)
        route = self._routes.to(passage)
        if route is None and not any(helped.place.hit.origin == "graph" for helped in changes):
            around = self._all_routes.to(passage)
            return Fate(passage, "other edges" if around else "never linked", place, initial, (), changes, around)
        return Fate(passage, "pruned" if changes else "not followed", place, initial, (), changes, route)


class SideBySide(NamedTuple):
    """Fates of the gold passages under both, and the hits that only one has, each with its fate under the other."""

    gold: Sequence[tuple[Fate, Fate]]
    only_first: Sequence[tuple[RankedPassage, Fate]]
    only_second: Sequence[tuple[RankedPassage, Fate]]


def side_by_side(first: Examiner, second: Examiner, gold: Sequence[str]) -> SideBySide:
    """Compare the top k of both strategies; both must have the same k."""
    only = []
    for having, lacking in ((first, second), (second, first)):
        there = {place.passage for place in lacking.answer.places[: lacking.top]}
        missing = [place for place in having.answer.places[: having.top] if place.passage not in there]
        only.append([(place, lacking.fate(place.passage)) for place in missing])
    return SideBySide([(first.fate(passage), second.fate(passage)) for passage in gold], *only)
