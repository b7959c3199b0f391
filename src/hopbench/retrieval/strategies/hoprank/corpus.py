"""The data of a corpus and its graph that hoprank computes once per index: words, mentions, and a random walk."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Arrays, Batch, Linker
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies.hoprank.words import (
    Flags,
    Floats,
    Numbers,
    Relations,
    Words,
    grouped,
    read_words,
    relations,
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

    One per mention (r,): `chunk`, `entity`, `start` (word position; NOWHERE when the name is not in the text), `length`
    in words, `weight` of the edge, `place` among its chunk's from 0, `count` of its chunk's, `sentence` (meaningless
    without a position) and whether it is `in_title`. `own` (n,) is the entity each chunk is titled by, NOWHERE without,
    `own_weight` (n,) the weight of that edge. `of_chunk` (n + 1,) are offsets of each chunk's mentions, `of_entity`
    (m + 1,) those of each entity's in `by_entity` (r,), the mentions sorted by entity; `titled_by` (m + 1,) those of
    the chunks that each entity is the title of, in `titled`.
    """

    chunk: Numbers
    entity: Numbers
    start: Numbers
    length: Numbers
    weight: Floats
    own: Numbers
    own_weight: Floats
    of_chunk: Numbers
    place: Numbers
    count: Numbers
    by_entity: Numbers
    of_entity: Numbers
    titled: Numbers
    titled_by: Numbers
    sentence: Numbers
    in_title: Flags

    @property
    def entities(self) -> int:
        """The number of entities, m."""
        return len(self.of_entity) - 1

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
    names = [_name_words(reader, entity, words.vocabulary) for entity in graph.entities]
    own_weight = np.zeros(len(chunks))
    rows = array("d")  # a tuple for each mention would take five times as much
    for row in range(len(chunks)):
        edges = slice(by_chunk.indptr[row], by_chunk.indptr[row + 1])
        inside = []
        for entity, weight in zip(by_chunk.indices[edges].tolist(), by_chunk.data[edges].tolist(), strict=True):
            if entity == own[row]:
                own_weight[row] = weight
            else:
                inside.append((entity, weight))
        places = _places(words, row, [names[entity] for entity, _ in inside])
        for (entity, weight), found in zip(inside, places, strict=True):
            for place in found:
                rows.extend((row, entity, *place, weight))
    table = np.array(rows, np.float64).reshape(-1, 5)
    chunk, entity, start, length = table[:, :4].T.astype(np.int64)
    order = np.lexsort((entity, np.where(start == NOWHERE, len(words.numbers), start), chunk))
    chunk, entity, start, length = (compact(column[order]) for column in (chunk, entity, start, length))
    of_chunk, entities = np.searchsorted(chunk, np.arange(len(chunks) + 1)), np.arange(len(graph.entities) + 1)
    by_entity = compact(np.argsort(entity, kind="stable"))
    titled = np.flatnonzero(own != NOWHERE)
    titled = titled[np.argsort(own[titled], kind="stable")]
    sentence = compact(np.searchsorted(words.sentence_start, start, "right") - 1)
    return Mentions(
        *(chunk, entity, start, length, table[order, 4], own, own_weight, of_chunk),
        place=compact(np.arange(len(chunk)) - of_chunk[chunk]),
        count=compact(np.diff(of_chunk)[chunk]),
        by_entity=by_entity,
        of_entity=np.searchsorted(entity[by_entity], entities),
        titled=titled,
        titled_by=np.searchsorted(own[titled], entities),
        sentence=sentence,
        in_title=(sentence == words.chunk_start[chunk]) & (start != NOWHERE),
    )


def _title_entities(chunks: Sequence[Chunk], graph: Adjacency, reader: Linker, by_chunk: Any) -> Numbers:
    """Find the entity named by each chunk's title, if the graph has the chunk mention it."""
    own, row_of = np.full(len(chunks), NOWHERE, np.int64), {entity: row for row, entity in enumerate(graph.entities)}
    for row, chunk in enumerate(chunks):
        entity = reader.of_title(chunk.title) if chunk.title else None
        number = row_of.get(entity, NOWHERE) if entity is not None else NOWHERE
        if number in by_chunk.indices[by_chunk.indptr[row] : by_chunk.indptr[row + 1]]:
            own[row] = number
    return own


def _name_words(reader: Linker, entity: str, vocabulary: Mapping[str, int]) -> list[Name]:
    """Convert an entity's names to word numbers; drop names with a word that no chunk has."""
    names = reader.names_of(entity)
    if not reader.language.english:
        names = [tuple(unit for word in one for unit in units(word)) for one in names]
    known = ([vocabulary.get(word, NOWHERE) for word in name] for name in names)
    return [tuple(name) for name in known if name and NOWHERE not in name]


def _places(words: Words, row: int, entities: Sequence[Sequence[Name]]) -> list[list[tuple[int, int]]]:
    """List (position, length) of each occurrence of each entity's longest names in a chunk, or NOWHERE once."""
    starts = words.sentence_start[words.chunk_start[row] : words.chunk_start[row + 1] + 1].tolist()
    numbers = words.numbers[starts[0] : starts[-1]].tolist()
    capital = words.capital[starts[0] : starts[-1]].tolist()
    breaks = {start - starts[0] for start in starts}
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for position, number in enumerate(numbers):
        positions[number].append(position)

    def fits(name: Name, start: int) -> bool:
        if len(name) == 1:
            return bool(capital[start])
        end = start + len(name)
        return tuple(numbers[start:end]) == name and breaks.isdisjoint(range(start + 1, end))

    result = []
    for names in entities:
        hits = {(start, len(name)) for name in names for start in positions.get(name[0], ()) if fits(name, start)}
        longest: list[tuple[int, int]] = []
        for start, length in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
            # "Tulsa" within "Tulsa, Oklahoma" is no second mention.
            if not longest or start + length > sum(longest[-1]):
                longest.append((start, length))
        result.append([(starts[0] + start, length) for start, length in longest] or [(NOWHERE, 0)])
    return result


RESTART, WALK_STEPS, MIN_MASS = 0.3, 8, 1e-4
TEXTS_VERSION = "texts-5"  # of cached files: it changes with what is read of the texts


@dataclass(frozen=True, eq=False)
class CorpusIndex:
    """A corpus of n chunks and its graph of m entities; `rarity` (m,) is each entity's ln((n + 1)/df) + 1.

    `walk` has transitions over entities, then chunks: over mentions, each weighted by its entity's idf/√df.
    """

    words: Words
    mentions: Mentions
    walk: LocalWalk
    vectors: Vectors
    rarity: Floats
    graph: Adjacency
    relations: Relations | None

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.vectors)

    @property
    def nodes(self) -> int:
        """The number of nodes of the walk, m + n."""
        return len(self.walk.start) - 1

    def walk_mass(
        self, seeds: Numbers, shares: Floats, restart: float = RESTART, steps: int = WALK_STEPS, least: float = MIN_MASS
    ) -> tuple[Numbers, Floats, int]:
        """Walk `steps` steps; return the chunks (c,) with mass, their mass (c,), and the number of edges touched.

        `seeds` (s,) are sorted nodes, `shares` (s,) what each begins with and gets back. Of several walks side by side
        a node has the number walk · nodes + node, and a chunk walk · chunks + chunk.
        """
        size, walk = self.nodes, self.walk
        nodes, mass, touched = seeds, shares, 0
        for _ in range(steps):
            own = nodes % size
            begin, end = walk.start[own], walk.start[own + 1]
            passing = np.flatnonzero(mass >= least * (end - begin))
            edges, giver = expand_ranges(begin[passing], end[passing])
            target = walk.target[edges] + (nodes - own)[passing][giver]
            given = (1.0 - restart) * mass[passing][giver] * walk.share[edges]
            nodes, mass = sums_by_key(np.concatenate([target, seeds]), np.concatenate([given, restart * shares]))
            touched += len(edges)
        number, node = np.divmod(nodes, size)
        entities = size - self.chunks
        chunks = np.flatnonzero(node >= entities)
        return (node + number * self.chunks - entities)[chunks], mass[chunks], touched


def sums_by_key(keys: Numbers, values: Floats) -> tuple[Numbers, Floats]:
    """Sum values by key in their order; return the sorted distinct keys and the sums."""
    different, places, group = grouped(keys)
    return different, np.bincount(group, values[places]).astype(np.float64)


def corpus_index(batch: Batch, counters: Counters) -> tuple[CorpusIndex, Linker]:
    """Return the batch's corpus index and the linker, reading the graph in three round trips, once per index."""
    graph, reader, index = adjacency(batch, counters), linker(batch, counters), batch.index

    def texts() -> Arrays:
        arrays: dict[str, NDArray[Any]] = read_words(index.chunks, reader.language)
        return arrays | vars(locate(index.chunks, Words.of_arrays(arrays), graph, reader))

    def build() -> CorpusIndex:
        arrays = index.graph_arrays("hoprank", TEXTS_VERSION, texts)
        words = Words.of_arrays(arrays)
        mentions = Mentions(*(arrays[field.name] for field in fields(Mentions)))
        rarity = log((len(index.chunks) + 1) / np.maximum(graph.frequency, 1)) + 1.0
        stated = relations(batch, Counters(), graph, words)
        walk = LocalWalk.between(graph, index, mention=1.0)
        return CorpusIndex(words, mentions, walk, index.vectors, rarity, graph, stated)

    known = index.memo.get("hoprank", build)
    relations(batch, counters, graph, known.words)
    return known, reader
