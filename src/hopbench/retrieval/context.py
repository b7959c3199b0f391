"""The reader's context: the reading budget, and hybrid GraphRAG's block of entities and relations as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import DIRECTED, SYMMETRIC, Statement, statements_of
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.entities import Card
from hopbench.retrieval.text import shortened
from hopbench.retrieval.text.model_tokens import count_tokens, first_tokens
from hopbench.retrieval.types import Chunk, Counters

MAX_TOKENS = 500
MAX_DESCRIPTION = 160  # characters; the source reckons with 50 to 100 tokens an entity
SHOWN_RELATIONS = 5  # per entity, the strongest; the source shows three and four
_WIDTH = 84  # where the source's example wraps
_GLUE = "\u00a0"


@dataclass(frozen=True, slots=True)
class EntityCard:
    """An entity's section of the block.

    `related` are its neighbours: name, the relation's type as it reads from the entity, weight 1..10 where known.
    """

    name: str
    type: str = ""
    related: Sequence[tuple[str, str, float | None]] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relation as text, from subject to object; `weight` 1..10 is shown as its strength.

    One that is not `directed` holds from both ends: the block joins them by another sign.
    """

    source: str
    target: str
    type: str
    description: str
    weight: float
    directed: bool = True


def format_context(
    cards: Sequence[EntityCard], relationships: Sequence[Relationship], max_tokens: int = MAX_TOKENS
) -> str:
    """The block for the question's entities, at most `max_tokens` as `count_tokens` counts; "" when nothing fits.

    Entities go in by their order, then relationships by theirs, up to the first that does not fit whole: a cut line
    would state what the graph does not.
    """
    cards = list(cards)
    while cards and count_tokens(_head(cards)) > max_tokens:
        cards.pop()
    if not cards:
        return ""
    block = _grown(_head(cards), "\n\n", map(_section, cards), max_tokens)
    title = f"{block}\n\n### Relevant Relationships"
    lines = (_wrapped(f"- {relation_words(relation)}") for relation in relationships)
    listed = _grown(title, "\n", lines, max_tokens)
    return block if listed == title else listed


def _grown(text: str, glue: str, parts: Iterable[str], max_tokens: int) -> str:
    for part in parts:
        longer = text + glue + part
        if count_tokens(longer) > max_tokens:
            break
        text = longer
    return text


def _head(cards: Sequence[EntityCard]) -> str:
    names = ", ".join(_one_line(card.name) for card in cards)
    return f"## Knowledge Graph Context\n{_wrapped(f'Query entities: [{names}]')}"


def _section(card: EntityCard) -> str:
    lines = [f"### {_one_line(card.name)}" + (f" ({_one_line(card.type)})" if card.type else "")]
    items = []
    for name, kind, weight in card.related:
        details = ", ".join(part for part in (kind, "" if weight is None else f"weight: {weight:g}") if part)
        # The source wraps between neighbours, never inside one.
        items.append(_one_line(f"{name} ({details})" if details else name).replace(" ", _GLUE))
    if items:
        lines.append(_wrapped("Related: " + ", ".join(items)))
    if card.description:
        lines.append(_wrapped(f"Description: {shortened(card.description, MAX_DESCRIPTION)}"))
    return "\n".join(lines)


def relation_words(relation: Relationship) -> str:
    """`Auth Service -> OAuth Provider: "depends_on" -- its description (strength: 8)`, on one line."""
    ends = f"{relation.source} {DIRECTED if relation.directed else SYMMETRIC} {relation.target}"
    kind = f': "{relation.type}"' if relation.type else ""
    description = f" -- {shortened(relation.description, MAX_DESCRIPTION)}" if relation.description else ""
    return _one_line(f"{ends}{kind}{description} (strength: {relation.weight:g})")


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
    *,
    max_tokens: int = MAX_TOKENS,
    relations: int = SHOWN_RELATIONS,
) -> list[str]:
    """A block per question for its entities (ids, each with a card) and their passing relations; "" without any.

    Relations are read down to `floor` (default: min_strength), those below min_strength neither shown nor charged; of
    an entity the `relations` strongest are shown.
    """
    wanted = sorted({entity for ids in entities for entity in ids})
    if not wanted or not max_tokens:
        return [""] * len(entities)
    least = min_strength if floor is None else floor
    query = {"ids": wanted, "limit": relations, "min_strength": least, "rel_types": list(rel_types)}
    records, _ = batch.read_uncharged(cypher.STRONGEST_RELATIONS, **query)
    counters.round_trips += 1
    # The strongest that pass a threshold are the strongest of all, without those that do not pass.
    edges = {record["id"]: _edges(record, min_strength, rel_types) for record in records}
    counters.rows += sum(map(len, edges.values()))
    name_of = {entity: card.name for entity, card in cards.items()}
    shown = {}
    for entity in wanted:
        related = []
        for neighbour, name, strength, statements in edges[entity]:
            name_of.setdefault(neighbour, name)
            kinds = ", ".join(dict.fromkeys(one.seen_from(entity) for one in statements))
            related.append((name, kinds, round(10.0 * strength, 1)))
        card = cards[entity]
        shown[entity] = EntityCard(card.name, card.type, related, card.description)
    return [
        format_context([shown[entity] for entity in ids], _relationships(ids, edges, name_of), max_tokens)
        for ids in entities
    ]


_Edge = tuple[str, str, float, Sequence[Statement]]  # of an entity: its neighbour, whose name, strength, statements


def _edges(record: Record, least: float, rel_types: Sequence[str]) -> list[_Edge]:
    """An entity's edges of at least this strength, strongest first, ties by the neighbour's id.

    With `rel_types` an edge shows only statements of these types.
    """
    entity, edges = record["id"], []
    columns = ("target", "name", "weight", "types", "description", "statements", "forward")
    for target, name, strength, types, description, statements, forward in zip(
        *(record[column] for column in columns), strict=True
    ):
        if strength >= least:
            first, second = (entity, target) if forward else (target, entity)
            stated = statements_of(first, second, strength, types, description, statements)
            edges.append((target, name, strength, [one for one in stated if one.type in rel_types] or stated))
    return sorted(edges, key=lambda edge: (-edge[2], edge[0]))


def _relationships(
    entities: Sequence[str], edges: Mapping[str, Sequence[_Edge]], name_of: Mapping[str, str]
) -> list[Relationship]:
    """The statements of the shown edges, each once and in its own direction, strongest first."""
    relationships: dict[object, Relationship] = {}
    for one in (one for entity in entities for *_, statements in edges[entity] for one in statements):
        ends, weight = (name_of[one.subject], name_of[one.object]), round(one.weight, 1)
        relationships.setdefault(one.key, Relationship(*ends, one.type, one.description, weight, one.directed))
    return sorted(relationships.values(), key=lambda relation: -relation.weight)


SEPARATOR, SEPARATOR_TOKENS = "\n\n", 2  # two where what follows begins with a slash or line break, else one or none


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `chunks` chunks and `tokens` tokens (`count_tokens`), a graph block included."""

    chunks: int = 5
    tokens: int = 1500

    def fit(self, ranked: Sequence[Chunk], graph_context: str = "") -> tuple[list[Chunk], str]:
        """The chunks that fit, best first, and the context made of them.

        The graph block comes first and counts; one longer than the budget is cut. The chunk at which the tokens run
        out is cut, and is the last.
        """
        read, parts = self.parts(ranked, graph_context)
        return read, SEPARATOR.join(parts)

    def parts(self, ranked: Sequence[Chunk], graph_context: str = "") -> tuple[list[Chunk], list[str]]:
        """As `fit`, with the context in parts: the graph block, if there is one, then the text of each chunk."""
        block, read = first_tokens(graph_context, self.tokens), []
        parts = [block] if block else []
        left = self.tokens - (count_tokens(block) + SEPARATOR_TOKENS if block else 0)
        for chunk in ranked[: self.chunks]:
            text = first_tokens(chunk.content, left) if left > 0 else ""
            if not text:
                break
            left -= count_tokens(text) + SEPARATOR_TOKENS
            read.append(chunk)
            parts.append(text)
        return read, parts
