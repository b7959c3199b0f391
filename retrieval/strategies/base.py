"""What a strategy is: a frozen dataclass of bounded parameters that ranks chunks for a batch of questions."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Counters, Hit, Ranking, Source

FILL_TO = 20
KEEP = 100
Timing = Literal["paced", "wall", "unknown"]


@dataclass(frozen=True)
class Bounds:
    """What values a parameter takes: `low`..`high` for numbers, or one of `choices`; `aliases` are its other names."""

    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def describe(self) -> str:
        """The bounds in words, as the lists and the errors print them."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return "" if self.low is None else f"{self.low:g}..{self.high:g}"


def param(
    default: Any,
    help: str,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    aliases: Sequence[str] = (),
) -> Any:
    """A strategy's field with its documented bounds, and the names that its source has for it."""
    return field(default=default, metadata={"bounds": Bounds(help, low, high, tuple(choices), tuple(aliases))})


@dataclass(frozen=True, kw_only=True)
class Strategy(ABC):
    """Ranks chunks for questions. Subclasses are frozen dataclasses whose fields are their parameters."""

    name: ClassVar[str]
    summary: ClassVar[str]
    edges: ClassVar[tuple[str, ...]] = ()
    # What an ablation changes to remove an edge type; where nothing is left without it, the initial ranking remains.
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    # The parameters that decide what is read and walked: trials equal in these share that work.
    walk: ClassVar[tuple[str, ...]] = ()
    # What its plain label is to be called: documented, tuned, learned, or what its author says.
    kind: ClassVar[str] = "documented"
    # The parameters that name learned numbers: a change of theirs is no setting by hand.
    fitted_fields: ClassVar[tuple[str, ...]] = ()
    # Lower bounds of edges that are read: what is read for one value serves every higher one.
    thresholds: ClassVar[tuple[str, ...]] = ()
    # Whether its rankings come from somebody else's retriever, which names passages and nothing of how it found them.
    foreign: ClassVar[bool] = False
    # What its time is: of this process (paced by the yardstick), of another one (wall time), or unknown.
    timing: ClassVar[Timing] = "paced"

    fill: bool = param(True, "complete rankings shorter than 20 from the initial ranking")

    def __post_init__(self) -> None:
        """Refuse values outside the documented bounds."""
        for spec in dataclasses.fields(self):
            self._check(spec, getattr(self, spec.name))

    def _check(self, spec: dataclasses.Field[Any], value: object) -> None:
        bounds: Bounds = spec.metadata["bounds"]
        wanted = type(spec.default)
        fits = type(value) is wanted or (wanted is float and type(value) is int)
        if fits and bounds.choices:
            fits = value in bounds.choices
        elif fits and bounds.low is not None and bounds.high is not None:
            fits = bounds.low <= value <= bounds.high  # type: ignore[operator]
        if not fits:
            limits = bounds.describe() or f"a {wanted.__name__}"
            raise ParameterError(f"{self.name}.{spec.name} = {value!r} is not allowed: it takes {limits}")

    @classmethod
    def parameters(cls) -> Mapping[str, dataclasses.Field[Any]]:
        """The fields by name, in order of definition."""
        return {spec.name: spec for spec in dataclasses.fields(cls)}

    def spec(self) -> dict[str, Any]:
        """All parameters with their values: enough to make the same strategy again."""
        return dataclasses.asdict(self)

    def shared_work(self) -> tuple[str, ...]:
        """Trials of one strategy in the order of this share the most work with the ones before."""
        return self.name, *(repr(getattr(self, name)) for name in self.walk)

    def identity(self) -> dict[str, Any]:
        """All that decides its rankings: the parameters, and what the files they name hold."""
        return self.spec()

    def fitted_on(self) -> Sequence[FittedOn]:
        """The data sets on which its numbers were tuned, or from which they were learned; none by default."""
        return ()

    def coefficients(self) -> Mapping[str, float]:
        """Weights by component where the score is the sum of its components, each value × weight; empty otherwise."""
        return {}

    def rank(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Rank every question of the batch, in its order: `KEEP` hits each, chunks unique, and no seed is dropped."""
        if not batch.questions:
            return []
        rankings = self.search(batch, counters)
        for number, ranking in enumerate(rankings):
            seeds = set(ranking.seeds)
            hits = [hit for place, hit in enumerate(ranking.hits) if place < KEEP or hit.chunk_id in seeds]
            short = self.fill and len(hits) < FILL_TO
            hits = _filled(hits, self.initial(batch)[number]) if short else hits
            ranking.hits = _sourced(hits, batch.index.sources)
        return rankings

    @abstractmethod
    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The strategy's own algorithm: a ranking per question of the batch, in its order."""

    @abstractmethod
    def initial(self, batch: Batch) -> list[Scored]:
        """The hop-free ranking of each question from which the strategy starts and short rankings are completed."""

    def pasteable(self, batch: Batch) -> Sequence[tuple[str, Mapping[str, object]]]:
        """Queries that the source gives a person to paste for a batch of one question: text and all parameters."""
        return ()


def _sourced(hits: list[Hit], sources: Mapping[str, Source]) -> list[Hit]:
    """Hits with the place of their chunks in the files that these come from, where the corpus tells it."""
    if not sources:
        return hits
    return [dataclasses.replace(hit, source=sources.get(hit.chunk_id, hit.source)) for hit in hits]


def _filled(hits: list[Hit], initial: Scored) -> list[Hit]:
    """Append the initial ranking's chunks that are not there yet until there are 20 hits."""
    present = {hit.chunk_id for hit in hits}
    lowest = min((hit.score for hit in hits), default=0.0)
    missing = [(chunk, score) for chunk, score in initial if chunk not in present]
    # A fill ranks below every hit whatever its initial score, which stands among the components.
    fills = [
        Hit(chunk, round(min(lowest, 0.0) - rank * 1e-6, 9), "fill", {"initial": score})
        for rank, (chunk, score) in enumerate(missing[: FILL_TO - len(hits)], 1)
    ]
    return hits + fills
