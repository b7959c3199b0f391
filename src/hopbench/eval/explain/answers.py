"""One question's ranking by one strategy, and the words that explain it: linked entities, notes, quoted sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice

import regex

from hopbench.eval.trials.trial import to_passages
from hopbench.eval.types import PassageRanking
from hopbench.retrieval.context import Budget, Relationship, relation_words
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO, RULE_RELATIONS, statements_of
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.linking import Names, linker
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import HopBenchError
from hopbench.retrieval.text import is_unspaced, sentences, split_qualifier
from hopbench.retrieval.traversal.adjacency import mentioning
from hopbench.retrieval.types import Counters, Hit, Step

FILL = "fill"
__all__ = ["Linked", "Names", "linked_entities"]
Name = Callable[[str], str]
MAX_NOTES = 10
MAX_QUOTED = 240  # characters shown on either side of the mention
MAX_RELATIONS = 3  # relations shown of one pair, strongest first
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage at its rank (from 1), by the first of its chunks."""

    passage: str
    rank: int
    hit: Hit

    @property
    def candidate(self) -> bool:
        """Whether the strategy itself ranked it; the rest only completes a short ranking."""
        return self.hit.origin != FILL


@dataclass(frozen=True)
class Answer:
    """A strategy's ranking of one question. `seeds` are passages, best first; `initial` is passage → initial rank.

    `context` is what a reader would get, within the budget that all strategies share.
    """

    label: str
    strategy: Strategy
    places: Sequence[RankedPassage] = ()
    seeds: Sequence[str] = ()
    initial: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    failure: str | None = None
    context: PassageRanking | None = None

    @cached_property
    def _place_of(self) -> Mapping[str, RankedPassage]:
        return {place.passage: place for place in self.places}

    def place(self, passage: str) -> RankedPassage | None:
        """A passage with its rank and hit; None when it is not in the ranking."""
        return self._place_of.get(passage)

    def rank(self, passage: str) -> int | None:
        """The rank of a passage, from 1."""
        place = self.place(passage)
        return place.rank if place else None


def answer(label: str, strategy: Strategy, batch: Batch) -> Answer:
    """Rank the batch's one question. A strategy's exception becomes `failure`; HopBenchErrors are raised."""
    counters = Counters()
    try:
        (ranking,) = strategy.rank(batch, counters)
    except HopBenchError:
        raise
    except Exception as error:  # a strategy may raise anything; its reason is what is to be explained then
        return Answer(label, strategy, counters=counters, failure=f"{type(error).__name__}: {error}")
    if ranking.failure is not None:
        return Answer(label, strategy, counters=counters, failure=ranking.failure)
    (scored,) = strategy.initial(batch)
    initial = dict.fromkeys(batch.index.passage_of[chunk] for chunk, _ in scored)
    return Answer(
        label,
        strategy,
        places(ranking.hits, batch.index),
        tuple(dict.fromkeys(batch.index.passage_of[chunk] for chunk in ranking.seeds)),
        {passage: rank for rank, passage in enumerate(initial, 1)},
        ranking.notes,
        counters,
        context=to_passages(ranking, batch.index, Budget()),
    )


def places(hits: Sequence[Hit], index: Index) -> tuple[RankedPassage, ...]:
    """Convert chunks to passages: a passage ranks where its first chunk does."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(index.passage_of[hit.chunk_id], hit)
    return tuple(RankedPassage(passage, rank, hit) for rank, (passage, hit) in enumerate(first.items(), 1))


@dataclass(frozen=True, slots=True)
class Linked:
    """Words of the question and their entity, which `chunks` chunks mention; `weight` is the linker's."""

    words: str
    entity: str
    name: str
    weight: float
    chunks: int


def linked_entities(batch: Batch) -> Sequence[Linked]:
    """List the entities that the surface linker recognises in the batch's one question, left to right."""
    (question,) = batch.questions
    reader = linker(batch, Counters())
    words, links = reader.tokens(question.text), reader.links(question.text)
    return [
        Linked(
            " ".join(word.text for word in words[link.start : link.end]),
            link.entity,
            reader.name_of.get(link.entity, link.entity),
            link.weight,
            chunks,
        )
        for link, chunks in zip(links, mentioning(batch, [link.entity for link in links]), strict=True)
    ]


def note_words(value: object, name: Name) -> str:
    """Format a strategy's notes: ids as names, the first items of long lists, nested lists as chains."""
    if isinstance(value, Mapping):
        items = [f"{name(str(key))}: {_item_words(item, name)}" for key, item in islice(value.items(), MAX_NOTES)]
    elif isinstance(value, list | tuple):
        items = [_item_words(item, name) for item in value[:MAX_NOTES]]
    else:
        return _item_words(value, name)
    more = f", and {len(value) - MAX_NOTES} more" if len(value) > MAX_NOTES else ""
    return ", ".join(items) + more if items else "none"


def _item_words(value: object, name: Name) -> str:
    if isinstance(value, Mapping):
        return "(" + "; ".join(f"{key} {_item_words(item, name)}" for key, item in value.items()) + ")"
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        return note_words(value, name)
    if isinstance(value, list | tuple):
        links = []
        for item in value:
            if isinstance(item, list | tuple):  # one link of the chain, such as the tags of an edge
                links.append("{" + ", ".join(_item_words(one, name) for one in item) + "}")
            else:
                links.append(_item_words(item, name))
        return " → ".join(links)
    return f"{value:.4g}" if isinstance(value, float) else name(str(value)) or "none"


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence around a mention."""

    before: str
    mention: str
    after: str


@lru_cache(maxsize=16_384)  # labels reach the same passages by the same entities
def quote(title: str, text: str, name: str) -> Quote | None:
    """Quote the first sentence of the text (else the title) that spells `name`, or its part before a comma.

    None where neither is spelled so, as when an alias was meant.
    """
    plain = split_qualifier(name)[0]
    first, comma, _ = plain.partition(",")
    for spelling in (plain, first.strip()) if comma and first.strip() else (plain,):
        pattern = _pattern(spelling)
        for sentence in (*sentences(text), title):
            match = pattern.search(sentence)
            if match:
                before, after = sentence[: match.start()], sentence[match.end() :]
                return Quote(before[-MAX_QUOTED:], match.group(), after[:MAX_QUOTED])
    return None


@lru_cache(maxsize=4096)
def _pattern(spelling: str) -> regex.Pattern[str]:
    """A name as a word of its own, but for scripts without spaces, where it may stand anywhere but before a mark."""
    before = "" if is_unspaced(spelling[:1]) else r"(?<![\w\p{M}])"
    after = r"(?!\p{M})" if is_unspaced(spelling[-1:]) else r"(?![\w\p{M}])"
    return regex.compile(f"{before}{regex.escape(spelling)}{after}", regex.IGNORECASE)


def pairs_of(path: Iterable[Step]) -> list[Pair]:
    """List the pairs of entities that RELATED_TO steps join, sorted, each pair once."""
    joined = (sorted((step.source, step.target)) for step in path if step.edge == RELATED_TO)
    return list(dict.fromkeys((first, second) for first, second in joined))


def stated(index: Index, pairs: Iterable[Pair], name: Callable[[str], str]) -> Mapping[Pair, Sequence[str]]:
    """List the statements about pairs of entities: `Auth Service -> OAuth Provider: "depends_on" (strength: 8)`.

    Pairs without a stated fact are left out: entities that the rules related by co-occurrence have no direction.
    """
    wanted = [{"id": first, "other_id": second} for first, second in sorted(set(pairs))]
    if not wanted:
        return {}
    relations: dict[Pair, dict[object, Relationship]] = {}
    for record in index.store.read(cypher.STATED, pairs=wanted, usual=list(RULE_RELATIONS)):
        pair = record["source"], record["target"]
        first, second = pair if record["forward"] else pair[::-1]
        unit = record["types"] or (), record["description"] or ""
        for statement in statements_of(first, second, record["weight"], *unit, record["statements"]):
            if statement.directed:
                ends = name(statement.subject), name(statement.object)
                relation = Relationship(*ends, statement.type, statement.description, round(statement.weight, 1))
                known = relations.setdefault(pair, {}).get(statement.key, relation)
                relations[pair][statement.key] = max(known, relation, key=lambda stated: stated.weight)
    words = {}
    for pair, by_key in relations.items():
        ordered = sorted(by_key.values(), key=lambda r: (-r.weight, r.source, r.type, r.target, r.description))
        words[pair] = list(map(relation_words, ordered[:MAX_RELATIONS]))
    return words
