"""The base class of strategies: frozen dataclasses of bounded parameters that rank chunks for questions."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.index import Batch
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.parameters import Bounds, Parameters, param
from hopbench.retrieval.types import Counters, Hit, LazyHits, Ranking, scored

FILL_TO = 20
KEEP = 100
Timing = Literal["paced", "wall", "unknown"]

__all__ = ["FILL_TO", "KEEP", "Bounds", "Strategy", "Timing", "param"]


@dataclass(frozen=True, kw_only=True)
class Strategy(Parameters, ABC):
    """Ranks chunks for questions. Subclasses are frozen dataclasses whose fields are their parameters.

    A subclass names itself, declares each parameter with its bounds, and implements `initial` and `search`. This one
    uses the graph: chunks that mention an entity of the question move up. (`index` is an `Index`.)

    >>> from dataclasses import dataclass
    >>> from hopbench.retrieval.index import Batch
    >>> from hopbench.retrieval.question.linking import linker
    >>> from hopbench.retrieval.search.fusion import ordered
    >>> from hopbench.retrieval.strategies.base import Strategy, param
    >>> from hopbench.retrieval.traversal.entity_expansion import read_mentions
    >>> from hopbench.retrieval.types import Counters, Hit, Question, Ranking, Step
    >>> @dataclass(frozen=True, kw_only=True)
    ... class MentionBoost(Strategy):
    ...     name = "mention_boost"
    ...     summary = "the vector ranking, with a bonus for chunks that mention the question's entities"
    ...     edges = ("MENTIONED_IN",)
    ...     ablations = {"MENTIONED_IN": {"bonus": 0.0}}
    ...     bonus: float = param(0.5, "added to the cosine of a chunk that mentions an entity", 0.0, 2.0)
    ...     def initial(self, batch):
    ...         return batch.vector_rankings
    ...     def search(self, batch, counters):
    ...         names = linker(batch, counters)
    ...         asked = [[link.entity for link in names.links(question.text)] for question in batch.questions]
    ...         mentions = read_mentions(batch, counters, sorted({entity for entities in asked for entity in entities}))
    ...         rankings = []
    ...         for question, entities, scored in zip(batch.questions, asked, self.initial(batch), strict=True):
    ...             steps = {}
    ...             for entity in entities if self.bonus else ():
    ...                 for row, weight in zip(*mentions[entity], strict=True):
    ...                     chunk = batch.index.ids[row]
    ...                     steps[chunk] = (Step("MENTIONED_IN", entity, chunk, float(weight), self.bonus),)
    ...             scores = {chunk: value + self.bonus * (chunk in steps) for chunk, value in scored}
    ...             hits = [
    ...                 Hit(chunk, score, "graph" if chunk in steps else "seed", path=steps.get(chunk, ()))
    ...                 for chunk, score in ordered(scores)
    ...             ]
    ...             rankings.append(Ranking(question.id, hits, [chunk for chunk, _ in scored[:10]]))
    ...         return rankings
    >>> batch, counters = Batch(index, [Question("q1", "Where was Tim Burton born?")]), Counters()
    >>> (ranking,) = MentionBoost(bonus=1.0).rank(batch, counters)
    >>> ranking.hits[0].origin, counters.round_trips  # a round trip for the names, one for the mentions
    ('graph', 2)
    >>> MentionBoost(bonus=3.0)
    Traceback (most recent call last):
    hopbench.retrieval.support.errors.ParameterError: mention_boost.bonus = 3.0 is not allowed: it takes 0..2

    An installed package offers its strategies under the entry point group `hopbench.strategies`.

    Class attributes, beside `name` and the `summary` of one line: `edges` are the edge types that it follows.
    `ablations` holds, by edge type, the changes that remove it (where nothing is left without it, those that leave the
    initial ranking). `traversal_parameters` are the parameters that decide what is read and traversed: trials with
    equal ones share that work. `thresholds` are lower bounds of edges that are read: what is read for one value serves
    every higher one. `kind` is the kind of its plain label: documented, tuned, learned, or its author's word.
    `fitted_fields` are the parameters that name learned numbers: changing one does not make a label set by hand.
    `contributions` says that the components of a hit are contributions, which add up to its score.
    `foreign` says that its rankings come from somebody else's retriever, which names passages and not how it found
    them; `timing`, whether its time is this process's (paced by the yardstick), another one's (wall time) or unknown.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    edges: ClassVar[tuple[str, ...]] = ()
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    traversal_parameters: ClassVar[tuple[str, ...]] = ()
    thresholds: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = "documented"
    fitted_fields: ClassVar[tuple[str, ...]] = ()
    contributions: ClassVar[bool] = False
    foreign: ClassVar[bool] = False
    keep: ClassVar[int] = KEEP
    timing: ClassVar[Timing] = "paced"

    fill: bool = param(True, "complete rankings shorter than 20 from the initial ranking")

    def shared_work(self) -> tuple[str, ...]:
        """A sort key: trials in its order share as much work as possible with the trial before."""
        return self.name, *(repr(getattr(self, name)) for name in self.traversal_parameters)

    def lowest_weights(self) -> Mapping[str, float]:
        """By edge type the lowest weight (0..1) of edges that it follows, where a parameter sets one.

        A graph holds no edge below the floor it was built with, so a lower value here promises edges that do not exist.
        """
        return {}

    def identity(self) -> dict[str, Any]:
        """Everything that decides its rankings: the parameters, and the content of files that they name."""
        return self.spec()

    def implementations(self) -> Sequence[type[Any]]:
        """The classes whose code decides its rankings: its own, and those of what it is made of."""
        return (type(self),)

    def fitted_on(self) -> Sequence[FittedOn]:
        """The data sets on which its parameters were tuned or its weights learned; none by default."""
        return ()

    def coefficients(self) -> Mapping[str, float]:
        """Weights by component where the score is the sum of its components, each value × weight; empty otherwise."""
        return {}

    def rank(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """A ranking per question of the batch, in its order: at most `keep` hits and all seeds, each chunk once."""
        if not batch.questions:
            return []
        rankings, sources = self.search(batch, counters), batch.index.sources
        for number, ranking in enumerate(rankings):
            hits = ranking.hits if isinstance(ranking.hits, LazyHits) else list(ranking.hits)
            if len(hits) > self.keep:
                seeds = set(ranking.seeds)
                kept = [place for place, (chunk, _) in enumerate(scored(hits)) if place < self.keep or chunk in seeds]
                hits = hits.some(kept) if isinstance(hits, LazyHits) else [hits[place] for place in kept]
            if self.fill and len(hits) < FILL_TO:
                present = {hit.chunk_id for hit in hits}
                lowest = min([0.0, *(hit.score for hit in hits)])
                missing = [(chunk, score) for chunk, score in self.initial(batch)[number] if chunk not in present]
                # A fill ranks below every hit whatever its initial score, which stands among the components.
                hits = [
                    *hits,
                    *(
                        Hit(chunk, round(lowest - rank * 1e-6, 9), "fill", {"initial": score})
                        for rank, (chunk, score) in enumerate(missing[: FILL_TO - len(hits)], 1)
                    ),
                ]
            if sources:
                hits = [dataclasses.replace(hit, source=sources.get(hit.chunk_id, hit.source)) for hit in hits]
            ranking.hits = hits
        return rankings

    @abstractmethod
    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The strategy's own algorithm: a ranking per question of the batch, in its order."""

    @abstractmethod
    def initial(self, batch: Batch) -> list[Scored]:
        """The hop-free ranking of each question from which the strategy starts and short rankings are completed."""

    def pasteable(self, batch: Batch) -> Sequence[tuple[str, Mapping[str, object]]]:
        """For a batch of one question, the queries of its source for a Neo4j browser: text and all parameters."""
        return ()
