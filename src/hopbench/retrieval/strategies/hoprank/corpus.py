"""The data of a corpus and its graph that hoprank computes once per index: words, mentions, and a random walk."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Batch, Index, Linker
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies.hoprank.words import (
    Flags,
    Floats,
    Numbers,
    Relations,
    Words,
    grouped,
    on_weight_grid,
    relations,
    vector_lengths,
    word_vectors,
)
from hopbench.retrieval.support.arithmetic import log
from hopbench.retrieval.support.arrays import compact, expand_ranges
from hopbench.retrieval.text import units
from hopbench.retrieval.traversal.adjacency import Adjacency, adjacency
from hopbench.retrieval.traversal.random_walk import LocalWalk
from hopbench.retrieval.types import Chunk, Counters

NOWHERE = -1
Name = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Mentions:
    """Mentions of m entities in n chunks, sorted by chunk, position and entity; a chunk's own title is left out.

    `chunk`, `entity`, `start` (word position; NOWHERE when the name is not found in the text), `length` in words and
    `weight` (of the edge) are (r,), one per mention. `own` (n,) is the entity each chunk is titled by, NOWHERE without,
    and `own_weight` (n,) the weight of that edge.
    """

    chunk: Numbers
    entity: Numbers
    start: Numbers
    length: Numbers
    weight: Floats
    own: Numbers
    own_weight: Floats
    entities: int

    _ARRAYS: ClassVar[Sequence[str]] = ("chunk", "entity", "start", "length", "weight", "own", "own_weight")
    _DERIVED: ClassVar[Sequence[str]] = (
        "of_chunk",
        "place",
        "count",
        "by_entity",
        "of_entity",
        "titled",
        "titled_by",
    )

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], entities: int) -> Mentions:
        """Restore mentions from their `arrays`."""
        found = cls(**{name: arrays[name] for name in cls._ARRAYS}, entities=entities)
        vars(found).update({name: arrays[name] for name in cls._DERIVED})  # as if they had been computed
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the mentions as arrays by name, with everything derived from them."""
        return {name: getattr(self, name) for name in (*self._ARRAYS, *self._DERIVED)}

    @cached_property
    def of_chunk(self) -> Numbers:
        """Offsets of each chunk's mentions, (n + 1,)."""
        return np.searchsorted(self.chunk, np.arange(len(self.own) + 1))

    @cached_property
    def place(self) -> Numbers:
        """Each mention's place among its chunk's, from 0, (r,)."""
        return compact(np.arange(len(self.chunk)) - self.of_chunk[self.chunk])

    @cached_property
    def count(self) -> Numbers:
        """How many mentions each mention's chunk has, (r,)."""
        return compact(np.diff(self.of_chunk)[self.chunk])

    @cached_property
    def by_entity(self) -> Numbers:
        """Mention numbers sorted by entity, (r,)."""
        return compact(np.argsort(self.entity, kind="stable"))

    @cached_property
    def of_entity(self) -> Numbers:
        """Offsets of each entity's mentions in `by_entity`, (m + 1,)."""
        return np.searchsorted(self.entity[self.by_entity], np.arange(self.entities + 1))

    @cached_property
    def titled(self) -> Numbers:
        """Chunks that have a title entity, sorted by it."""
        chunks = np.flatnonzero(self.own != NOWHERE)
        return chunks[np.argsort(self.own[chunks], kind="stable")]

    @cached_property
    def titled_by(self) -> Numbers:
        """Offsets into `titled` of the chunks that each entity is the title of, (m + 1,)."""
        return np.searchsorted(self.own[self.titled], np.arange(self.entities + 1))

    def weight_of(self, chunk: Numbers, mention: Numbers) -> Floats:
        """Return the weights of the chunks' mentions, (k,); NOWHERE stands for the title's."""
        weight = self.own_weight[chunk]
        inside = mention != NOWHERE
        weight[inside] = self.weight[mention[inside]]
        return weight


def locate(chunks: Sequence[Chunk], words: Words, graph: Adjacency, reader: Linker) -> Mentions:
    """Locate the mentions of a graph in its chunks."""
    by_chunk = graph.mentions.tocsc()
    own = _title_entities(chunks, graph, reader, by_chunk)
    names = [_numbered(_spelled(reader, entity), words.vocabulary) for entity in graph.entities]
    own_weight = np.zeros(len(chunks))
    rows = array("d")  # a tuple for each mention would take five times as much
    for row in range(len(chunks)):
        edges = range(by_chunk.indptr[row], by_chunk.indptr[row + 1])
        positions = _Positions(words, row)
        for edge in edges:
            entity, weight = int(by_chunk.indices[edge]), float(by_chunk.data[edge])
            if entity == own[row]:
                own_weight[row] = weight
                continue
            for place in positions.places(names[entity]):
                rows.extend((row, entity, *place, weight))
    table = np.array(rows, np.float64).reshape(-1, 5)
    chunk, entity, start, length = table[:, :4].T.astype(np.int64)
    order = np.lexsort((entity, np.where(start == NOWHERE, len(words.numbers), start), chunk))
    places = compact(chunk[order]), compact(entity[order]), compact(start[order]), compact(length[order])
    return Mentions(*places, table[order, 4], own, own_weight, len(graph.entities))


def _title_entities(chunks: Sequence[Chunk], graph: Adjacency, reader: Linker, by_chunk: Any) -> Numbers:
    """Find the entity named by each chunk's title, if the graph has the chunk mention it."""
    own, row_of = np.full(len(chunks), NOWHERE, np.int64), {entity: row for row, entity in enumerate(graph.entities)}
    for row, chunk in enumerate(chunks):
        entity = reader.of_title(chunk.title) if chunk.title else None
        number = row_of.get(entity, NOWHERE) if entity is not None else NOWHERE
        if number in by_chunk.indices[by_chunk.indptr[row] : by_chunk.indptr[row + 1]]:
            own[row] = number
    return own


def _spelled(reader: Linker, entity: str) -> Sequence[tuple[str, ...]]:
    """Spell an entity's names in the words of `Words`."""
    names = reader.names_of(entity)
    return names if reader.language.english else [tuple(unit for word in one for unit in units(word)) for one in names]


def _numbered(names: Sequence[tuple[str, ...]], vocabulary: Mapping[str, int]) -> list[Name]:
    """Convert names to word numbers; drop names with a word that no chunk has."""
    known = ([vocabulary.get(word, NOWHERE) for word in name] for name in names)
    return [tuple(name) for name in known if name and NOWHERE not in name]


class _Positions:
    """The positions of the words of one chunk."""

    def __init__(self, words: Words, row: int) -> None:
        starts = words.sentence_start[words.chunk_start[row] : words.chunk_start[row + 1] + 1].tolist()
        self._first = starts[0]
        self._numbers = words.numbers[starts[0] : starts[-1]].tolist()
        self._capital = words.capital[starts[0] : starts[-1]].tolist()
        self._breaks = {start - self._first for start in starts}
        self._of: defaultdict[int, list[int]] = defaultdict(list)
        for position, number in enumerate(self._numbers):
            self._of[number].append(position)

    def places(self, names: Sequence[Name]) -> list[tuple[int, int]]:
        """Return (position, length) of each occurrence of the longest names, or NOWHERE once if there is none."""
        kept_places: list[tuple[int, int]] = []
        places = {place for name in names for place in self._places(name)}
        for start, length in sorted(places, key=lambda place: (place[0], -place[1])):
            if not kept_places or start + length > sum(
                kept_places[-1]
            ):  # "Tulsa" within "Tulsa, Oklahoma" is no second mention
                kept_places.append((start, length))
        return kept_places or [(NOWHERE, 0)]

    def _places(self, name: Name) -> Iterator[tuple[int, int]]:
        length = len(name)
        for start in self._of.get(name[0], ()):
            end = start + length
            if length == 1:
                fits = self._capital[start]
            else:
                fits = tuple(self._numbers[start:end]) == name and self._breaks.isdisjoint(range(start + 1, end))
            if fits:
                yield self._first + start, length


RESTART, WALK_STEPS, MIN_MASS = 0.3, 8, 1e-4


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """Transitions over m entities, then n chunks, by column: the share that each node passes to its neighbours."""

    start: Numbers
    target: Numbers
    share: Floats
    entities: int

    @classmethod
    def over(cls, graph: Adjacency, index: Index) -> RandomWalk:
        """Build the walk over the mention edges of an index's graph, each weighted by its entity's idf/√df."""
        walk = LocalWalk.between(graph, index, mention=1.0)
        return cls(walk.start, walk.target, walk.share, len(graph.entities))

    @property
    def nodes(self) -> int:
        """The number of nodes, m + n."""
        return len(self.start) - 1

    def mass(
        self, seeds: Numbers, shares: Floats, restart: float = RESTART, steps: int = WALK_STEPS, least: float = MIN_MASS
    ) -> tuple[Numbers, Floats, int]:
        """Walk `steps` steps; return the chunks (c,) with mass, their mass (c,), and the number of edges touched.

        `seeds` (s,) are sorted nodes, `shares` (s,) what each begins with and gets back. Of several walks side by side
        a node has the number walk · nodes + node, and a chunk walk · chunks + chunk.
        """
        size = self.nodes
        nodes, mass, touched = seeds, shares, 0
        for _ in range(steps):
            own = nodes % size
            begin, end = self.start[own], self.start[own + 1]
            passing = np.flatnonzero(mass >= least * (end - begin))
            edges, giver = expand_ranges(begin[passing], end[passing])
            target = self.target[edges] + (nodes - own)[passing][giver]
            given = (1.0 - restart) * mass[passing][giver] * self.share[edges]
            nodes, mass = _sums(np.concatenate([target, seeds]), np.concatenate([given, restart * shares]))
            touched += len(edges)
        walk, node = np.divmod(nodes, size)
        chunks = np.flatnonzero(node >= self.entities)
        return (node + walk * (size - self.entities) - self.entities)[chunks], mass[chunks], touched


def _sums(keys: Numbers, values: Floats) -> tuple[Numbers, Floats]:
    """Sum values by key in their order; return the sorted distinct keys and the sums."""
    different, places, group = grouped(keys)
    return different, np.bincount(group, values[places]).astype(np.float64)


TEXTS_VERSION = "texts-4"  # of what is kept in files: it grows with each change of what is read of the texts
_DERIVED = ("word_vectors", "sentence", "in_title", "sentence_lengths")  # properties of `Texts` that are kept as well


@dataclass(frozen=True, eq=False)
class Texts:
    """The words of all chunks' texts and their mentions of the graph's entities."""

    words: Words
    mentions: Mentions

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], entities: int) -> Texts:
        """Restore texts from their `arrays`."""
        found = cls(Words.of_arrays(arrays), Mentions.of_arrays(arrays, entities))
        vars(found).update({name: arrays[name] for name in _DERIVED if name in arrays})  # as if computed
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays by name."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return {**self.words.arrays(), **self.mentions.arrays(), **derived}

    @cached_property
    def word_vectors(self) -> NDArray[np.int16]:
        """A vector for each word of the vocabulary, (v, 256)."""
        return word_vectors(list(self.words.vocabulary))

    @cached_property
    def sentence_lengths(self) -> Floats:
        """The length of each sentence's vector, the sum of its words' by their weights, (s,)."""
        words = self.words
        return vector_lengths(self.word_vectors, self.word_weights, words.numbers, words.sentence_start)

    @cached_property
    def word_weights(self) -> Floats:
        """The weight of each word of the vocabulary in a sentence, (v,): its idf, 0 for stop words."""
        return on_weight_grid(self.words.idf * ~self.words.stop)

    @cached_property
    def sentence(self) -> Numbers:
        """The sentence of each mention, (r,); meaningless for a mention without a position."""
        return compact(self.words.sentence_of(self.mentions.start))

    @cached_property
    def in_title(self) -> Flags:
        """Whether each mention stands in a title, (r,)."""
        titles = self.sentence == self.words.chunk_start[self.mentions.chunk]
        return np.asarray(titles & (self.mentions.start != NOWHERE))


@dataclass(frozen=True, eq=False)
class CorpusIndex:
    """A corpus of n chunks and its graph; `rarity` (m,) is each entity's ln((n + 1)/df) + 1."""

    texts: Texts
    walk: RandomWalk
    vectors: Vectors
    rarity: Floats
    graph: Adjacency
    relations: Relations | None

    @property
    def words(self) -> Words:
        """The chunks' words."""
        return self.texts.words

    @property
    def mentions(self) -> Mentions:
        """The chunks' mentions of the graph's entities."""
        return self.texts.mentions

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.vectors)


def corpus_index(batch: Batch, counters: Counters) -> tuple[CorpusIndex, Linker]:
    """Return the batch's corpus index and the linker, reading the graph in three round trips, once per index."""
    graph, reader = adjacency(batch, counters), linker(batch, counters)

    def made() -> CorpusIndex:
        chunks = batch.index.chunks
        texts = _texts(batch, graph, reader)
        rarity = log((len(chunks) + 1) / np.maximum(graph.frequency, 1)) + 1.0
        stated = relations(batch, Counters(), graph, texts.words)
        return CorpusIndex(texts, RandomWalk.over(graph, batch.index), batch.index.vectors, rarity, graph, stated)

    known = batch.index.memo.get("hoprank", made)
    relations(batch, counters, graph, known.words)
    return known, reader


def _texts(batch: Batch, graph: Adjacency, reader: Linker) -> Texts:
    """Read texts from the chunks, or from the cached arrays of an earlier process."""

    def read() -> Texts:
        words = Words.read(batch.index.chunks, reader.language)
        return Texts(words, locate(batch.index.chunks, words, graph, reader))

    if (place := batch.index.kept_of_graph()) is None:
        return read()
    kept, stamp = place
    arrays = kept.arrays("hoprank", f"{TEXTS_VERSION} of {stamp}", lambda: read().arrays())
    return Texts.of_arrays(arrays, len(graph.entities))
