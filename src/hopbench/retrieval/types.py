"""The nouns that every part of HopBench shares. Nothing here knows a benchmark's gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, overload


@dataclass(frozen=True, slots=True)
class Source:
    """A passage's file and page, which Graph Expansion Flow and ADR-041 return with a chunk; empty where unknown."""

    page_number: int | str | None = None
    document_id: str = ""
    document_name: str = ""

    def __bool__(self) -> bool:
        return self != UNKNOWN_SOURCE

    def facts(self) -> dict[str, int | str]:
        """What is known, by the names of a corpus file."""
        return {name: value for name in SOURCE_FIELDS if (value := getattr(self, name)) not in (None, "")}

    def __str__(self) -> str:
        page = "" if self.page_number is None else f"page {self.page_number}"
        return ", ".join(filter(None, (self.document_name or self.document_id, page)))


SOURCE_FIELDS = ("page_number", "document_id", "document_name")
UNKNOWN_SOURCE = Source()


@dataclass(frozen=True, slots=True)
class Link:
    """A link that stands in a passage: its words, and its target as the document writes it (`other.md#pool`)."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One document of a corpus, as the benchmark gives it; `id` is its `_id`, `links` are in reading order."""

    id: str
    title: str
    text: str
    source: Source = UNKNOWN_SOURCE
    links: tuple[Link, ...] = ()


MAX_TOKENS = 1200  # of a chunk, unless a build is told otherwise


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage, or one part of a long one; `id` equals `passage_id` unless the passage was split."""

    id: str
    passage_id: str
    index: int
    title: str
    text: str
    source: Source = UNKNOWN_SOURCE

    @property
    def content(self) -> str:
        """Title and text in one string: what BM25 and the embedder read."""
        return f"{self.title}. {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """All that a strategy may know of a question."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Triple:
    """A relation stated in one passage; `confidence` in 0..1 becomes the edge's strength.

    What each end is (its type and description), what the relation means and the words it goes by (`tags`) are empty
    where the file or the model does not say.
    """

    passage_id: str
    subject: str
    relation: str
    object: str
    confidence: float = 1.0
    subject_type: str = ""
    object_type: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    subject_description: str = ""
    object_description: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a hit's provenance: `weight` is the edge's own, `score` the path's value after it."""

    edge: str
    source: str
    target: str
    weight: float
    score: float

    def __reduce__(self) -> tuple[type[Step], tuple[str, str, str, float, float]]:
        return Step, (self.edge, self.source, self.target, self.weight, self.score)


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked chunk with what made its score.

    `origin` says how it came into the ranking: `seed` (the strategy's own initial ranking), `graph` (an edge led
    to it), `fill` (completed from the initial ranking) or `foreign` (a retriever that is not ours returned it). `path`
    is empty for all but `graph`. `source` is the chunk's.
    """

    chunk_id: str
    score: float
    origin: str = "seed"
    components: Mapping[str, float] = field(default_factory=dict)
    path: tuple[Step, ...] = ()
    source: Source = UNKNOWN_SOURCE


@dataclass(slots=True)
class Counters:
    """What a strategy spent on a batch of questions, and what it met on the way.

    `observed` counts what a source's formulas make of this corpus, in the strategy's own words; reports show each count
    as a number a question. `once` holds, by name, the part that a trial pays once, however many batches it has.
    """

    round_trips: int = 0
    rows: int = 0
    edges_touched: int = 0
    llm_calls: int = 0
    tokens: int = 0
    terminations: Counter[str] = field(default_factory=Counter)
    stage_seconds: Counter[str] = field(default_factory=Counter, compare=False)  # equal work takes unequal time
    observed: Counter[str] = field(default_factory=Counter)
    once: dict[str, Counters] = field(default_factory=dict)

    def add(self, other: Counters) -> None:
        """Add another batch's spending to this one; what both paid once is counted once."""
        self._count(other, 1)
        for name, cost in other.once.items():
            if name in self.once:
                self._count(cost, -1)
            self.once[name] = cost

    def add_once(self, name: str, cost: Counters) -> None:
        """Add what is paid once under this name, unless it is counted already."""
        if name not in self.once:
            self._count(cost, 1)
            self.once[name] = cost

    def _count(self, other: Counters, times: int) -> None:
        for name in ("round_trips", "rows", "edges_touched", "llm_calls", "tokens"):
            setattr(self, name, getattr(self, name) + times * getattr(other, name))
        for name in ("terminations", "stage_seconds", "observed"):
            own: Counter[str] = getattr(self, name)
            (own.update if times > 0 else own.subtract)(getattr(other, name))


@dataclass(slots=True)
class Ranking:
    """A strategy's answer to one question: hits in total order, best first.

    `seeds` are the chunks from which the strategy expanded; `notes` says in plain words what an engineer needs to
    know (entities recognised, fallbacks taken, limits reached); `graph_context` is the block a strategy wants to
    put beside the passages (empty for most). `failure` is the reason when the question could not be answered.
    """

    question_id: str
    hits: Sequence[Hit] = ()
    seeds: Sequence[str] = ()
    notes: Mapping[str, object] = field(default_factory=dict)
    graph_context: str = ""
    failure: str | None = None


DETAILED = 20  # hits whose components and paths a trial stores; of others it stores ids and scores


class LazyHits(Sequence[Hit]):
    """Hits whose ids and scores are known; the hits are made `DETAILED` at a time, the first at once, others on access.

    `make` makes the hits of a range of indices. Making a hundred hits with their paths can take longer than finding
    them. Equal to any list or tuple of the same hits.
    """

    def __init__(self, scored: Sequence[tuple[str, float]], make: Callable[[range], Sequence[Hit]]) -> None:
        self.scored, self._make = scored, make
        self._made = {0: make(range(len(scored))[:DETAILED])}

    @classmethod
    def one_by_one(cls, scored: Sequence[tuple[str, float]], make: Callable[[int], Hit]) -> Self:
        """Make hits by a function of one index."""
        return cls(scored, lambda places: [*map(make, places)])

    def some(self, places: Sequence[int]) -> LazyHits:
        """Select hits by index, in that order; only blocks that hold one of them are made."""
        return self.one_by_one([self.scored[place] for place in places], lambda number: self[places[number]])

    def __len__(self) -> int:
        return len(self.scored)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> list[Hit]: ...

    def __getitem__(self, place: int | slice) -> Hit | list[Hit]:
        places = range(len(self))[place]
        return self._at(places) if isinstance(places, int) else [self._at(one) for one in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple, LazyHits)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def _at(self, place: int) -> Hit:
        block, within = divmod(place, DETAILED)
        if block not in self._made:
            self._made[block] = self._make(range(len(self))[place - within :][:DETAILED])
        return self._made[block][within]


def scored(hits: Sequence[Hit]) -> Iterable[tuple[str, float]]:
    """Return chunk ids with scores, without making any hit."""
    return hits.scored if isinstance(hits, LazyHits) else ((hit.chunk_id, hit.score) for hit in hits)
