"""Small graphs, corpora and stores for tests of the retrieval core: hand-made, random, and counted."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.construction.plan import BuildSettings, GraphPlan
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_COLUMNS,
    ENTITY,
    LINKS_TO,
    MENTIONED_IN,
    NEXT,
    NODE_COLUMNS,
    PART_OF,
    RELATED_TO,
    SIMILAR_TO,
    GraphTables,
    document_id,
)
from hopbench.retrieval.graph.stores.base import GraphStore, Record
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore
from hopbench.retrieval.index import INDEX_VALUES, Index, Memo, ReadCache
from hopbench.retrieval.text import tokens
from hopbench.retrieval.types import Chunk, Passage, Question, Triple

T = TypeVar("T")


def plain(_: str, fn: Callable[[], T], /) -> T:
    """A build step that is only a call."""
    return fn()


@dataclass(frozen=True)
class WordEmbedder:
    """A bag of words: each word has a fixed random direction, a text is the sum of its words'."""

    name: str = "words-1"
    dimension: int = 24
    synonym_threshold: float = 0.7

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows; a text without words is zero."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            total = sum((self._direction(token.folded) for token in tokens(text)), np.zeros(self.dimension))
            length = float(np.linalg.norm(total))
            rows[row] = total / length if length else 0.0
        return rows

    def _direction(self, word: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
        return np.random.default_rng(seed).normal(size=self.dimension)


@dataclass(frozen=True)
class CosineEmbedder:
    """Chunks at given cosines from every question: `cosines` by the chunk's content, 0 for what it does not list."""

    cosines: Mapping[str, float]
    name: str = "cosines-1"
    synonym_threshold: float = 0.7

    @property
    def dimension(self) -> int:
        """The question's direction, and one for each chunk."""
        return 1 + len(self.cosines)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A listed text is c·e0 + √(1 − c²)·e_i, any other text e0."""
        place = {content: row for row, content in enumerate(self.cosines, 1)}
        rows = np.zeros((len(texts), self.dimension))
        for row, text in enumerate(texts):
            cosine = self.cosines.get(text, 1.0)
            rows[row, 0] = cosine
            if text in place:
                rows[row, place[text]] = np.sqrt(1.0 - cosine**2)
        return rows.astype(np.float32)


def graph_tables(
    chunks: Mapping[str, str],
    *,
    entities: Iterable[str] = (),
    mentions: Iterable[tuple[str, str]] = (),
    related: Iterable[tuple[str, str, float]] = (),
    similar: Iterable[tuple[str, str, float]] = (),
    titles: Mapping[str, str] | None = None,
    links: Iterable[tuple[str, str, float]] = (),
    following: Iterable[tuple[str, str]] = (),
    above: Iterable[tuple[str, str]] = (),
) -> GraphTables:
    """A graph by hand. `chunks` are id → content; ends of an edge are given in any order, ids as they are."""
    titles = titles or {}
    rows: dict[str, list[tuple[object, ...]]] = {
        DOCUMENT: [(document_id(chunk), titles.get(chunk, "")) for chunk in chunks],
        CHUNK: [(chunk, chunk, 0, content) for chunk, content in chunks.items()],
        ENTITY: [(entity, entity, "entity", "", []) for entity in entities],
        CONTAINS: [(document_id(chunk), chunk) for chunk in chunks],
        MENTIONED_IN: [(entity, chunk, 1, 1.0, []) for entity, chunk in mentions],
        RELATED_TO: [(*sorted(ends), strength, ["related"], "", [], []) for *ends, strength in related],
        SIMILAR_TO: [(*sorted(ends), similarity, []) for *ends, similarity in similar],
        LINKS_TO: [(source, target, f"to {target}", weight, ["link"]) for source, target, weight in links],
        NEXT: list(following),
        PART_OF: list(above),
    }
    return GraphTables(
        {label: pd.DataFrame(rows[label], columns=list(columns)) for label, columns in NODE_COLUMNS.items()},
        {kind: pd.DataFrame(rows[kind], columns=list(columns)) for kind, columns in EDGE_COLUMNS.items()},
    )


@dataclass
class CountingStore:
    """A store that keeps a list of the queries put to it."""

    inner: GraphStore
    queries: list[str] = field(default_factory=list)

    @property
    def engine(self) -> str:
        """The inner store's."""
        return self.inner.engine

    @property
    def namespace(self) -> str:
        """The inner store's."""
        return self.inner.namespace

    def read(self, query: str, **parameters: object) -> list[Record]:
        """The inner store's answer, noted."""
        self.queries.append(query)
        return self.inner.read(query, **parameters)

    def read_parts(self, query: str) -> Iterator[list[Record]]:
        """The inner store's answers, noted as one query."""
        self.queries.append(query)
        return self.inner.read_parts(query)

    def write(self, tables: GraphTables, record: Mapping[str, object]) -> None:
        """Pass on."""
        self.inner.write(tables, record)

    def record(self) -> Mapping[str, Any] | None:
        """Pass on."""
        return self.inner.record()

    def stamp(self) -> str | None:
        """Pass on."""
        return self.inner.stamp()

    def drop(self) -> None:
        """Pass on."""
        self.inner.drop()

    def close(self) -> None:
        """Pass on."""
        self.inner.close()


def fresh(index: Index, store: Any) -> Index:
    """The same index over another store, with nothing kept of what was read before."""
    return replace(index, store=store, reads=ReadCache(), memo=Memo(INDEX_VALUES))


@contextmanager
def neo4j_namespaces(connection: Connection) -> Iterator[Callable[[str], GraphStore]]:
    """Opens stores whose namespaces are this block's own; they are dropped at its end."""
    mark = f"test-{secrets.token_hex(6)}"
    opened: list[Neo4jStore] = []

    def at(namespace: str) -> GraphStore:
        opened.append(Neo4jStore(connection, f"{mark}-{namespace}"))
        return opened[-1]

    try:
        yield at
    finally:
        for store in opened:
            store.drop()
            store.close()


def plan_of(
    passages: Sequence[Passage],
    *,
    triples: Sequence[Triple] = (),
    embedder: Embedder | None = None,
    name: str = "small",
    **settings: Any,
) -> GraphPlan:
    """A build plan with small defaults; triples choose their extractor."""
    settings.setdefault("extractor", "triples" if triples else "rules")
    return GraphPlan(name, passages, BuildSettings(**settings), embedder or WordEmbedder(), triples)


def built_index(plan: GraphPlan, folder: Path) -> Index:
    """Build the plan's graph in `folder` and index it, its store counted."""
    store = CountingStore(KgliteStore(folder / "graphs", plan.namespace))
    build_graph(plan, store, folder / "staging", plain)
    store.queries.clear()
    return Index.build(chunk_passages(plan.passages, plan.settings.max_tokens), store, plan.embedder)


def hand_index(tables: GraphTables, folder: Path, cosines: Mapping[str, float]) -> Index:
    """An index over a hand-made graph whose chunks have `cosines` (by chunk id) with every question."""
    store = CountingStore(KgliteStore(folder, "hand"))
    store.write(tables, {})
    chunks = [Chunk(row.id, row.id, 0, "", row.content) for row in tables.nodes[CHUNK].itertuples()]
    content = {chunk.id: chunk.content for chunk in chunks}
    embedder = CosineEmbedder({content[chunk]: cosine for chunk, cosine in cosines.items()})
    return Index.build(sorted(chunks, key=lambda chunk: chunk.id), store, embedder)


WORLD = [
    Passage("p01", "Ed Wood (film)", "Ed Wood is a 1994 film directed by Tim Burton. It stars Johnny Depp as Ed Wood."),
    Passage("p02", "Tim Burton", "Tim Burton was born in Burbank, California. He directed Beetlejuice in 1988."),
    Passage("p03", "Burbank, California", "Burbank is in Los Angeles County. The Walt Disney Company sits there."),
    Passage("p04", "Johnny Depp", "Johnny Depp was born in Owensboro, Kentucky. He lived in Los Angeles County."),
    Passage("p05", "Owensboro, Kentucky", "Owensboro lies on the Ohio River. It is known for barbecue festivals."),
    Passage("p06", "Beetlejuice", "Beetlejuice stars Michael Keaton. Tim Burton made it for Geffen Company."),
    Passage("p07", "Michael Keaton", "Michael Keaton was born in Coraopolis. He played Batman for Tim Burton."),
    Passage("p08", "Ohio River", "The Ohio River flows past Coraopolis and Owensboro, Kentucky to the Mississippi."),
    Passage("p09", "Mississippi River", "The Mississippi River is long. Steamboats once ran on it."),
    Passage("p10", "Geffen Company", "Geffen Company was founded by David Geffen in Los Angeles County."),
    Passage("p11", "Untitled notes", "nothing in here is a name, only small words about rivers and films."),
    Passage("p12", "", "A passage without title names Johnny Depp and the Ohio River."),
]
"""A corpus on which every rule of the extractor has something to do."""

ASKED = [
    Question("q1", "Where was the director of Ed Wood born?"),
    Question("q2", "Which river flows past the birthplace of Johnny Depp?"),
    Question("q3", "Who founded the company that made Beetlejuice?"),
    Question("q4", "what flows where?"),
    Question("q5", "Zyzzyva?"),
]

_NAMES = ["Ada Krell", "Bo Marn", "Tolva", "Lake Ister", "Ister Guild", "Corin (poet)", "Corin (city)", "Vell, Norland"]
_PLAIN = ["river", "wrote", "born", "city", "guild", "music", "old", "stone", "sings", "won"]


@st.composite
def corpora(draw: st.DrawFn, low: int = 1, high: int = 8) -> list[Passage]:
    """Passages that name each other now and then; ids are not in the order of the list."""
    count = draw(st.integers(low, high))
    ids = draw(st.permutations([f"p{number}" for number in range(count)]))
    word = st.sampled_from([*_NAMES, *_PLAIN, "the", "of", "in"])
    sentence = st.lists(word, min_size=1, max_size=8).map(lambda words: "He " + " ".join(words) + ".")
    text = st.lists(sentence, max_size=4).map(" ".join)
    title = st.sampled_from([*_NAMES, ""])
    return [Passage(passage, draw(title), draw(text)) for passage in ids]


@st.composite
def question_lists(draw: st.DrawFn, high: int = 4) -> list[Question]:
    """Questions of the same words, some without any name."""
    words = st.lists(st.sampled_from([*_NAMES, *_PLAIN, "where", "who"]), min_size=1, max_size=6)
    texts = draw(st.lists(words.map(" ".join), min_size=1, max_size=high))
    return [Question(f"q{number}", text + "?") for number, text in enumerate(texts)]


@dataclass(frozen=True)
class PlainGraph:
    """A graph as dictionaries: what an independent reading of an algorithm walks on."""

    chunks: tuple[str, ...]
    mentions: Mapping[str, frozenset[str]]  # entity → chunks
    related: Mapping[tuple[str, str], float]  # (entity, entity), ordered, → strength
    similar: Mapping[tuple[str, str], float]  # (chunk, chunk), ordered, → similarity

    def tables(self) -> GraphTables:
        """The same graph for a store."""
        return graph_tables(
            {chunk: f"text of {chunk}" for chunk in self.chunks},
            entities=sorted(self.mentions),
            mentions=sorted((entity, chunk) for entity, chunks in self.mentions.items() for chunk in chunks),
            related=[(*pair, strength) for pair, strength in self.related.items()],
            similar=[(*pair, similarity) for pair, similarity in self.similar.items()],
        )


_WEIGHTS = st.sampled_from([0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0])


@st.composite
def plain_graphs(draw: st.DrawFn) -> PlainGraph:
    """Up to 9 chunks and 6 entities, any edges between them."""
    chunks = tuple(f"c{number}" for number in range(draw(st.integers(1, 9))))
    entities = [f"e:{number}" for number in range(draw(st.integers(0, 6)))]
    mentions = {entity: draw(st.frozensets(st.sampled_from(chunks), max_size=4)) for entity in entities}
    return PlainGraph(chunks, mentions, _edges(draw, entities), _edges(draw, chunks))


def _edges(draw: st.DrawFn, ends: Sequence[str]) -> dict[tuple[str, str], float]:
    pairs = [(first, second) for first in ends for second in ends if first < second]
    if not pairs:
        return {}
    return draw(st.dictionaries(st.sampled_from(pairs), _WEIGHTS, max_size=12))
