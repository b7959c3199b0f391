"""The reader's context: the reading budget, and hybrid GraphRAG's block of entities and relations as text.

The budget is the same for all strategies: none wins by giving the reader more context. The block competes with the
passages for it, so it is capped, and it holds whole entities and whole relationships only: a cut line would state what
the graph does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
class BlockShape:
    """How large a block may be: its tokens, and the relations shown of each entity."""

    tokens: int = MAX_TOKENS
    relations: int = SHOWN_RELATIONS


@dataclass(frozen=True, slots=True)
class Related:
    """An entity's neighbour: the relation's type as it reads from the entity, and its weight 1..10 where known."""

    name: str
    type: str
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class EntityCard:
    """An entity's section of the block."""

    name: str
    type: str = ""
    related: Sequence[Related] = ()
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

    Entities go in by their order, then relationships by theirs, up to the first that does not fit whole.
    """
    cards = list(cards)
    while cards and count_tokens(_head(cards)) > max_tokens:
        cards.pop()
    if not cards:
        return ""
    block = _grown(_head(cards), "\n\n", map(_section, cards), max_tokens)
    title = f"{block}\n\n### Relevant Relationships"
    listed = _grown(title, "\n", map(_line, relationships), max_tokens)
    return block if listed == title else listed


def _grown(text: str, glue: str, parts: Iterable[str], max_tokens: int) -> str:
    """The text with the parts before the first that does not fit."""
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
    if card.related:
        # The source wraps between neighbours, never inside one.
        items = [_neighbour(one).replace(" ", _GLUE) for one in card.related]
        lines.append(_wrapped("Related: " + ", ".join(items)))
    if card.description:
        lines.append(_wrapped(f"Description: {shortened(card.description, MAX_DESCRIPTION)}"))
    return "\n".join(lines)


def _neighbour(related: Related) -> str:
    weight = "" if related.weight is None else f"weight: {related.weight:g}"
    details = ", ".join(part for part in (related.type, weight) if part)
    return _one_line(f"{related.name} ({details})" if details else related.name)


def relation_words(relation: Relationship) -> str:
    """`Auth Service -> OAuth Provider: "depends_on" -- its description (strength: 8)`, on one line."""
    ends = f"{relation.source} {DIRECTED if relation.directed else SYMMETRIC} {relation.target}"
    kind = f': "{relation.type}"' if relation.type else ""
    description = f" -- {shortened(relation.description, MAX_DESCRIPTION)}" if relation.description else ""
    return _one_line(f"{ends}{kind}{description} (strength: {relation.weight:g})")


def _line(relation: Relationship) -> str:
    return _wrapped(f"- {relation_words(relation)}")


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
    shape: BlockShape = BlockShape(),
) -> list[str]:
    """A block per question for its entities (ids, each with a card) and their passing relations; "" without any.

    Relations are read down to `floor` (default: min_strength), those below min_strength neither shown nor charged.
    """
    wanted = sorted({entity for ids in entities for entity in ids})
    if not wanted or not shape.tokens:
        return [""] * len(entities)
    least = min_strength if floor is None else floor
    query = {"ids": wanted, "limit": shape.relations, "min_strength": least, "rel_types": list(rel_types)}
    records, _ = batch.read_uncharged(cypher.STRONGEST_RELATIONS, **query)
    # The strongest that pass a threshold are the strongest of all, without those that do not pass.
    relations = {record["id"]: _above(record, min_strength) for record in records}
    counters.round_trips += 1
    counters.rows += sum(len(record["target"]) for record in relations.values())
    edges = {entity: _edges(entity, record, rel_types) for entity, record in relations.items()}
    name_of = {entity: card.name for entity, card in cards.items()}
    for edge in (edge for shown_edges in edges.values() for edge in shown_edges):
        name_of.setdefault(edge.neighbour, edge.name)
    shown = {entity: _card(entity, cards[entity], edges[entity]) for entity in wanted}
    return [
        format_context([shown[entity] for entity in ids], _relationships(ids, edges, name_of), shape.tokens)
        for ids in entities
    ]


def _above(record: Record, least: float) -> Record:
    places = [place for place, weight in enumerate(record["weight"]) if weight >= least]
    if len(places) == len(record["weight"]):
        return record
    return {name: value if name == "id" else [value[place] for place in places] for name, value in record.items()}


@dataclass(frozen=True, slots=True)
class _Edge:
    """An edge of an entity: its neighbour, the strength 0..1, and the statements about the pair."""

    neighbour: str
    name: str
    strength: float
    statements: Sequence[Statement]


def _edges(entity: str, record: Record, rel_types: Sequence[str]) -> list[_Edge]:
    """An entity's edges, strongest first, ties by the neighbour's id, whatever the order of the store's rows.

    With `rel_types` an edge shows only statements of these types.
    """
    columns = ("target", "name", "weight", "types", "description", "statements", "forward")
    shown = []
    for target, name, strength, types, description, statements, forward in zip(
        *(record[column] for column in columns), strict=True
    ):
        first, second = (entity, target) if forward else (target, entity)
        stated = statements_of(first, second, strength, types, description, statements)
        wanted = [statement for statement in stated if statement.type in rel_types]
        shown.append(_Edge(target, name, strength, wanted or stated))
    return sorted(shown, key=lambda edge: (-edge.strength, edge.neighbour))


def _card(entity: str, card: Card, edges: Sequence[_Edge]) -> EntityCard:
    related = [Related(edge.name, _kinds(entity, edge), _weight(10.0 * edge.strength)) for edge in edges]
    return EntityCard(card.name, card.type, related, card.description)


def _kinds(entity: str, edge: _Edge) -> str:
    return ", ".join(dict.fromkeys(one.seen_from(entity) for one in edge.statements))


def _relationships(
    entities: Sequence[str], edges: Mapping[str, Sequence[_Edge]], name_of: Mapping[str, str]
) -> list[Relationship]:
    """The statements of the shown edges, each once and in its own direction, strongest first."""
    relationships: dict[object, Relationship] = {}
    for statement in (statement for entity in entities for edge in edges[entity] for statement in edge.statements):
        ends = name_of[statement.subject], name_of[statement.object]
        relation = Relationship(
            *ends, statement.type, statement.description, _weight(statement.weight), statement.directed
        )
        relationships.setdefault(statement.key, relation)
    return sorted(relationships.values(), key=lambda statement: -statement.weight)


def _weight(weight: float) -> float:
    """A weight of 0..10, rounded to one decimal."""
    return round(weight, 1)


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
        block = first_tokens(graph_context, self.tokens)
        parts = [block] if block else []
        left = self.tokens - (count_tokens(block) + SEPARATOR_TOKENS if block else 0)
        read = []
        for chunk, text in self._cut(ranked, left):
            read.append(chunk)
            parts.append(text)
        return read, parts

    def _cut(self, ranked: Sequence[Chunk], left: int) -> Iterator[tuple[Chunk, str]]:
        for chunk in ranked[: self.chunks]:
            if left <= 0:
                return
            text = first_tokens(chunk.content, left)
            if not text:
                return
            left -= count_tokens(text) + SEPARATOR_TOKENS
            yield chunk, text
