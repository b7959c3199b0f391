"""The graph context block of document 5: what the graph knows of the question's entities, in few tokens.

The block competes with the passages for the reader's budget, so it is capped, and it holds whole entities and whole
relationships only: a cut line would state what the graph does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retrieval.chunking import count_tokens
from retrieval.graph import cypher
from retrieval.graph.store import Record
from retrieval.index import Batch
from retrieval.recognition import Card
from retrieval.types import Counters

MAX_TOKENS = 500
MAX_DESCRIPTION = 160  # characters; the source reckons with 50 to 100 tokens an entity
SHOWN_RELATIONS = 5  # per entity, the strongest; the source shows three and four
_WIDTH = 84  # where the source's example wraps
_GLUE = "\u00a0"


@dataclass(frozen=True, slots=True)
class Related:
    """An entity's neighbour: the relation's type, and its weight 1..10 where it is known."""

    name: str
    type: str
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class EntityCard:
    """What the block says of one entity."""

    name: str
    type: str = ""
    related: Sequence[Related] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Relationship:
    """One relation in words; `weight` 1..10 is what the block calls its strength."""

    source: str
    target: str
    type: str
    description: str
    weight: float


def format_context(
    cards: Sequence[EntityCard], relationships: Sequence[Relationship], max_tokens: int = MAX_TOKENS
) -> str:
    """The block for the question's entities, at most `max_tokens` as `count_tokens` counts; "" when nothing fits.

    Entities go in by their order, then relationships by theirs, up to the first that does not fit whole.
    """
    cards = list(cards)
    while cards and count_tokens(_head(cards)) > max_tokens:
        cards.pop()
    if not cards:
        return ""
    left = max_tokens - count_tokens(_head(cards))
    sections, left = _fitting(map(_section, cards), left)
    title = "### Relevant Relationships"
    lines, _ = _fitting(map(_line, relationships), left - count_tokens(title))
    parts = [_head(cards), *sections]
    return "\n\n".join([*parts, "\n".join([title, *lines])] if lines else parts)


def _fitting(texts: Iterable[str], budget: int) -> tuple[list[str], int]:
    """The texts before the first that does not fit, and what they leave of the budget."""
    taken = []
    for text in texts:
        tokens = count_tokens(text)
        if tokens > budget:
            break
        taken.append(text)
        budget -= tokens
    return taken, budget


def _head(cards: Sequence[EntityCard]) -> str:
    names = ", ".join(_one_line(card.name) for card in cards)
    return f"## Knowledge Graph Context\n{_wrapped(f'Query entities: [{names}]')}"


def _section(card: EntityCard) -> str:
    lines = [f"### {_one_line(card.name)}" + (f" ({_one_line(card.type)})" if card.type else "")]
    if card.related:
        # The source wraps between neighbours, never inside one.
        items = [_neighbour(one).replace(" ", _GLUE) for one in card.related]
        lines.append(_wrapped("Related: " + ", ".join(items)))
    if card.description:
        lines.append(_wrapped(f"Description: {_short(card.description)}"))
    return "\n".join(lines)


def _neighbour(related: Related) -> str:
    weight = "" if related.weight is None else f", weight: {related.weight:g}"
    return _one_line(f"{related.name} ({related.type}{weight})")


def _line(relation: Relationship) -> str:
    ends = f'- {relation.source} -> {relation.target}: "{relation.type}"'
    said = f" -- {_short(relation.description)}" if relation.description else ""
    return _wrapped(_one_line(f"{ends}{said} (strength: {relation.weight:g})"))


def _short(text: str) -> str:
    """A text of at most `MAX_DESCRIPTION` characters, cut between words."""
    whole = _one_line(text)
    if len(whole) <= MAX_DESCRIPTION:
        return whole
    return whole[: MAX_DESCRIPTION - 2].rpartition(" ")[0] + "..."


def _one_line(text: str) -> str:
    """A name or text may hold line breaks, which would begin sections of their own."""
    return " ".join(text.split())


def _wrapped(text: str) -> str:
    """Lines of at most `_WIDTH` characters where words allow it (`textwrap` took half of the block's time)."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line]).replace(_GLUE, " ")


def context_blocks(
    batch: Batch,
    counters: Counters,
    entities: Sequence[Sequence[str]],
    cards: Mapping[str, Card],
    min_strength: float = 0.0,
    rel_types: Sequence[str] = (),
    floor: float | None = None,
) -> list[str]:
    """A block per question for its entities (ids, each with a card) and their passing relations; "" without any.

    Relations are read down to `floor` (default: min_strength), those below min_strength neither shown nor charged.
    """
    wanted = sorted({entity for ids in entities for entity in ids})
    if not wanted:
        return [""] * len(entities)
    least = min_strength if floor is None else floor
    query = {"ids": wanted, "limit": SHOWN_RELATIONS, "min_strength": least, "rel_types": list(rel_types)}
    records, _ = batch.read_uncharged(cypher.STRONGEST_RELATIONS, **query)
    # The strongest that pass a threshold are the strongest of all, without those that do not pass.
    relations = {record["id"]: _above(record, min_strength) for record in records}
    counters.round_trips += 1
    counters.rows += sum(len(record["target"]) for record in relations.values())
    shown = {entity: _card(cards[entity], relations[entity]) for entity in wanted}
    return [
        format_context([shown[entity] for entity in ids], _relationships(ids, cards, relations)) for ids in entities
    ]


def _above(record: Record, least: float) -> Record:
    kept = [place for place, weight in enumerate(record["weight"]) if weight >= least]
    if len(kept) == len(record["weight"]):
        return record
    return {name: value if name == "id" else [value[place] for place in kept] for name, value in record.items()}


def _card(card: Card, relations: Record) -> EntityCard:
    related = [Related(name, _kinds(types), _weight(strength)) for _, name, strength, types, _ in _rows(relations)]
    return EntityCard(card.name, card.type, related, card.description)


def _relationships(
    entities: Sequence[str], cards: Mapping[str, Card], relations: Mapping[str, Record]
) -> list[Relationship]:
    """The shown relations, each pair once, strongest first."""
    found: dict[frozenset[str], Relationship] = {}
    for entity in entities:
        for target, name, strength, types, description in _rows(relations[entity]):
            relation = Relationship(cards[entity].name, name, _kinds(types), description, _weight(strength))
            found.setdefault(frozenset((entity, target)), relation)
    return sorted(found.values(), key=lambda one: -one.weight)


def _rows(record: Record) -> list[tuple[str, str, float, list[str], str]]:
    """The relations of an entity, strongest first, equal ones by the neighbour's id, whatever order the store gave."""
    columns = (record[name] for name in ("target", "name", "weight", "types", "description"))
    return sorted(zip(*columns, strict=True), key=lambda row: (-row[2], row[0]))


def _kinds(types: Sequence[str]) -> str:
    return ", ".join(sorted(types))


def _weight(strength: float) -> float:
    """Strength 0..1 as the weight 1..10 of the source, one decimal."""
    return round(10.0 * strength, 1)
