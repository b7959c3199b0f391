"""Positions of the graph's entities in the text: every MENTIONED_IN edge as the word positions of its mentions.

The graph says which entity a chunk mentions; where, is read from the chunk's words by the entity's name and aliases.
So any graph will do: built by rules, from triples, or elsewhere and mapped.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.index import Linker
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, Words
from hopbench.retrieval.support.csr import compact
from hopbench.retrieval.text import units
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Chunk

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
        """The mentions whose `arrays` these are."""
        found = cls(**{name: arrays[name] for name in cls._ARRAYS}, entities=entities)
        vars(found).update({name: arrays[name] for name in cls._DERIVED})  # as if they had been computed
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The mentions as arrays by name, with all that is computed from them."""
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
        """The weights of mentions of the chunks, (k,): of their titles where they are NOWHERE."""
        weight = self.own_weight[chunk]
        inside = mention != NOWHERE
        weight[inside] = self.weight[mention[inside]]
        return weight


def locate(chunks: Sequence[Chunk], words: Words, graph: Adjacency, reader: Linker) -> Mentions:
    """The mentions of a graph in its chunks."""
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
    """The entity named by each chunk's title, where the graph has the chunk mention it."""
    own, row_of = np.full(len(chunks), NOWHERE, np.int64), {entity: row for row, entity in enumerate(graph.entities)}
    for row, chunk in enumerate(chunks):
        entity = reader.of_title(chunk.title) if chunk.title else None
        number = row_of.get(entity, NOWHERE) if entity is not None else NOWHERE
        if number in by_chunk.indices[by_chunk.indptr[row] : by_chunk.indptr[row + 1]]:
            own[row] = number
    return own


def _spelled(reader: Linker, entity: str) -> Sequence[tuple[str, ...]]:
    """An entity's names by the words that `Words` has of them."""
    names = reader.names_of(entity)
    return names if reader.language.english else [tuple(unit for word in one for unit in units(word)) for one in names]


def _numbered(names: Sequence[tuple[str, ...]], vocabulary: Mapping[str, int]) -> list[Name]:
    """Names as word numbers, those with a word that no chunk has left out."""
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
        """(position, length) of each occurrence of a name, the longest name at each; NOWHERE once if there is none."""
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
