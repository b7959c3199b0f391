"""What the tests of the two entity strategies share: graphs with names and mention counts, and a shuffling store."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st
from tests.support.graphs import CosineEmbedder, CountingStore, PlainGraph, plain_graphs

from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, GraphTables
from hopbench.retrieval.graph.stores.base import Record
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.index import Index
from hopbench.retrieval.text import ENGLISH
from hopbench.retrieval.types import Chunk, Question


def mentions_of(entity: str, chunk: str) -> int:
    """How often an entity stands in a chunk of a random graph: 1..40, by a rule that any reader can follow."""
    return 1 + (7 * int(entity[-1]) + 11 * int(chunk[-1])) % 40


def with_counts(tables: GraphTables, counts: Mapping[tuple[str, str], int] | None = None) -> GraphTables:
    """The same graph, its mentions counted."""
    mentions = tables.edges[MENTIONED_IN]
    pairs = list(zip(mentions["source"], mentions["target"], strict=True))
    counted = mentions.assign(count=[counts[pair] if counts else mentions_of(*pair) for pair in pairs])
    return replace(tables, edges={**tables.edges, MENTIONED_IN: counted})


def with_names(
    tables: GraphTables, names: Mapping[str, str], descriptions: Mapping[str, str] | None = None
) -> GraphTables:
    """The same graph, its entities named."""
    entities = tables.nodes[ENTITY]
    named = entities.assign(
        name=[names.get(entity, entity) for entity in entities["id"]],
        description=[(descriptions or {}).get(entity, "") for entity in entities["id"]],
    )
    return replace(tables, nodes={**tables.nodes, ENTITY: named})


class ShuffledStore(KgliteStore):
    """A store whose rows come in another order each time, as an engine is free to give them."""

    seed: int

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, "hand")
        self.seed = seed

    def read(self, query: str, **parameters: object) -> list[Record]:
        """The records and their parallel lists, shuffled."""
        random_order = random.Random(self.seed)
        records = [_shuffled(record, random_order) for record in super().read(query, **parameters)]
        random_order.shuffle(records)
        return records


def _shuffled(record: Record, random_order: random.Random) -> Record:
    columns = {name: value for name, value in record.items() if isinstance(value, list)}
    rows = list(zip(*columns.values(), strict=False))
    random_order.shuffle(rows)
    return {**record, **{name: [row[place] for row in rows] for place, name in enumerate(columns) if rows}}


def index_of(
    tables: GraphTables, folder: Path, cosines: Mapping[str, float] | None = None, shuffle: int | None = None
) -> Index:
    """An index over a hand-made graph. `cosines` by chunk id or entity name; what is omitted is like any question."""
    store = CountingStore(KgliteStore(folder, "hand") if shuffle is None else ShuffledStore(folder, shuffle))
    store.write(tables, {})
    chunks = sorted((Chunk(r.id, r.id, 0, "", r.content) for r in tables.nodes[CHUNK].itertuples()), key=lambda c: c.id)
    content = {chunk.id: chunk.content for chunk in chunks}
    embedder = CosineEmbedder({content.get(text, text): cosine for text, cosine in (cosines or {}).items()})
    return Index.build(chunks, store, embedder, language=ENGLISH)  # made-up words tell no language


@st.composite
def asked(draw: st.DrawFn, graph: PlainGraph) -> list[Question]:
    """Questions that name entities of a random graph, most of them one or two, and words of its chunks."""
    named = st.lists(st.sampled_from(sorted(graph.mentions) or ["who"]), min_size=1, max_size=2)
    words = st.lists(st.sampled_from([*graph.chunks, "text", "who", "of"]), max_size=2)
    texts = draw(st.lists(st.tuples(named, words), min_size=2, max_size=4))
    return [Question(f"q{number}", " ".join([*names, *others])) for number, (names, others) in enumerate(texts)]


@st.composite
def related_graphs(draw: st.DrawFn) -> PlainGraph:
    """Random graphs with up to 9 chunks and 5 or 6 entities, most of them related: paths of several hops occur."""
    chunks = tuple(f"c{number}" for number in range(draw(st.integers(5, 9))))
    entities = [f"e:{number}" for number in range(draw(st.integers(5, 6)))]
    mentions = {entity: draw(st.frozensets(st.sampled_from(chunks), max_size=3)) for entity in entities}
    pairs = [(first, second) for first in entities for second in entities if first < second]
    strengths = st.sampled_from([0.2, 0.5, 0.75, 0.75, 1.0])
    related = draw(st.dictionaries(st.sampled_from(pairs), strengths, min_size=4, max_size=8))
    return PlainGraph(chunks, mentions, related, {})


worlds = (plain_graphs() | related_graphs()).flatmap(lambda graph: st.tuples(st.just(graph), asked(graph)))
"""A random graph, and questions about it."""


def neighbours_of(graph: PlainGraph) -> dict[str, dict[str, float]]:
    """Entity → related entity → strength, both ways."""
    found: dict[str, dict[str, float]] = {entity: {} for entity in graph.mentions}
    for (first, second), strength in graph.related.items():
        found[first][second] = found[second][first] = strength
    return found


def cosines_of(chunks: Sequence[str]) -> dict[str, float]:
    """A cosine for each chunk of a random graph; some are equal, so that ties occur."""
    return {chunk: 0.2 * (int(chunk[-1]) % 4) for chunk in chunks}
