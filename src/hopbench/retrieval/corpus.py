"""A corpus as memory-mapped columns: passages that are read from files when they are asked for, and their chunks.

All processes of a machine that read the same corpus share its pages, and opening it takes no time. The columns hold
what was read and checked once; `Passage` and `Chunk` are made of them anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.mapped_arrays import mapped_array
from hopbench.retrieval.support.text_columns import Texts, TextsWriter
from hopbench.retrieval.types import UNKNOWN_SOURCE, Chunk, Link, Passage, Source

COLUMNS = ("id", "title", "text", "source")  # `source` has the links too: most corpora have neither
ORDER = "order.npy"
WHOLE = -1  # the part of a chunk that is a whole passage
TOGETHER = 8192  # passages written, or read by those who read all, at a time

Rows = NDArray[np.int64]


class MappedPassages(Sequence[Passage]):
    """The passages that `write_passages` wrote into a folder, in their order.

    `order` (n,) holds their rows sorted by id. `key` is the folder's name, which stands for the passages' content.
    """

    def __init__(self, folder: Path) -> None:
        self._ids, self._titles, self._texts, self._sources = (Texts(folder / name) for name in COLUMNS)
        self.key = folder.name
        self.order: Rows = mapped_array(folder / ORDER)

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, at: int) -> Passage: ...
    @overload
    def __getitem__(self, at: slice) -> list[Passage]: ...
    def __getitem__(self, at: int | slice) -> Passage | list[Passage]:
        if isinstance(at, slice):
            return self.many(np.arange(*at.indices(len(self))))
        row = range(len(self))[at]  # refuses what is outside, and counts from the end what is negative
        return Passage(self._ids[row], self._titles[row], self._texts[row], *_origin(self._sources[row]))

    def __iter__(self) -> Iterator[Passage]:
        return self.some(np.arange(len(self)))

    def some(self, rows: Rows) -> Iterator[Passage]:
        """The passages of some rows, one after another."""
        for begin in range(0, len(rows), TOGETHER):
            yield from self.many(rows[begin : begin + TOGETHER])

    def many(self, rows: Rows) -> list[Passage]:
        """The passages of some rows."""
        columns = (column.many(rows) for column in (self._ids, self._titles, self._texts, self._sources))
        return [Passage(key, title, text, *_origin(origin)) for key, title, text, origin in zip(*columns, strict=True)]

    @property
    def ids(self) -> list[str]:
        """The ids of all passages."""
        return list(self._ids)

    def some_ids(self, rows: Rows) -> list[str]:
        """The ids of some rows."""
        return self._ids.many(rows)

    @property
    def titles(self) -> list[str]:
        """The titles of all passages."""
        return list(self._titles)

    @property
    def sizes(self) -> Rows:
        """How many bytes of UTF-8 each passage's text has, (n,)."""
        return self._texts.sizes()

    @property
    def blank(self) -> Rows:
        """The rows of passages with neither title nor text."""
        return np.flatnonzero(self._titles.sizes() + self._texts.sizes() == 0)

    @property
    def sourced(self) -> bool:
        """Whether any passage has a source, or links."""
        return bool(self._sources.sizes().any())


class MappedChunks(Sequence[Chunk]):
    """The chunks of mapped passages, sorted by id: a chunk is a passage but for those that `parts` divides.

    `rows` (n,) are the chunks' passages and `numbers` (n,) which of its parts they are, `WHOLE` for all of it.
    """

    def __init__(self, passages: MappedPassages, rows: Rows, numbers: Rows, parts: Mapping[int, Sequence[str]]) -> None:
        self.passages, self._rows, self._numbers, self._parts = passages, rows, numbers, parts

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Chunk: ...
    @overload
    def __getitem__(self, at: slice) -> list[Chunk]: ...
    def __getitem__(self, at: int | slice) -> Chunk | list[Chunk]:
        rows, numbers = self._rows[at], self._numbers[at]
        if isinstance(at, slice):
            return list(map(self._chunk, self.passages.many(rows), rows.tolist(), numbers.tolist()))
        return self._chunk(self.passages[int(rows)], int(rows), int(numbers))

    def __iter__(self) -> Iterator[Chunk]:
        for begin in range(0, len(self), TOGETHER):
            yield from self[begin : begin + TOGETHER]

    def _chunk(self, passage: Passage, row: int, number: int) -> Chunk:
        return chunk_of(passage) if number == WHOLE else chunk_of(passage, number, self._parts[row][number])

    @cached_property
    def ids(self) -> list[str]:
        """The chunks' ids."""
        return self._named(self.passage_ids, self._numbers)

    def some_ids(self, rows: Rows) -> list[str]:
        """The ids of some chunks, read from the passages' files."""
        return self._named(self.passages.some_ids(self._rows[rows]), self._numbers[rows])

    def _named(self, passages: list[str], numbers: Rows) -> list[str]:
        if not self._parts:
            return passages
        listed = zip(passages, numbers.tolist(), strict=True)
        return [one if number == WHOLE else part_id(one, number) for one, number in listed]

    @cached_property
    def passage_ids(self) -> list[str]:
        """The id of each chunk's passage."""
        return self.passages.some_ids(self._rows)


def part_id(passage: str, number: int) -> str:
    """The id of a part of a passage that is more than one chunk."""
    return f"{passage}#{number}"


def chunk_of(passage: Passage, number: int = WHOLE, text: str = "") -> Chunk:
    """A passage as a chunk, or the part of this number, which has this text."""
    if number == WHOLE:
        return Chunk(passage.id, passage.id, 0, passage.title, passage.text, passage.source)
    return Chunk(part_id(passage.id, number), passage.id, number, passage.title, text, passage.source)


def write_passages(passages: Iterable[Passage], folder: Path) -> None:
    """Write passages, each with an id of its own, into an empty folder, part by part."""
    ids: list[str] = []
    passages = iter(passages)
    with ExitStack() as stack:
        columns = [stack.enter_context(TextsWriter(folder / name)) for name in COLUMNS]
        while part := list(islice(passages, TOGETHER)):
            rows = ((one.id, one.title, one.text, _origin_text(one)) for one in part)
            for column, values in zip(columns, zip(*rows, strict=True), strict=True):
                column.add(values)
            ids += [one.id for one in part]
    np.save(folder / ORDER, np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64))


def blank_ids(passages: Sequence[Passage]) -> list[str]:
    """The ids of passages with neither title nor text."""
    if isinstance(passages, MappedPassages):
        return passages.some_ids(passages.blank)
    return [one.id for one in passages if not one.title and not one.text]


def ids_of(records: Sequence[Passage] | Sequence[Chunk]) -> list[str]:
    """The ids of passages or chunks, without reading the texts of mapped ones."""
    return records.ids if isinstance(records, MappedPassages | MappedChunks) else [one.id for one in records]


def _origin_text(passage: Passage) -> str:
    """A passage's source and links; nothing where it has neither."""
    source, links = passage.source, [[link.text, link.target] for link in passage.links]
    facts = [source.page_number, source.document_id, source.document_name]
    return json.dumps([*facts, *([links] if links else [])]) if source or links else ""


def _origin(text: str) -> tuple[Source, tuple[Link, ...]]:
    if not text:
        return UNKNOWN_SOURCE, ()
    page, document_id, document_name, *rest = json.loads(text)
    links = tuple(Link(*link) for link in rest[0]) if rest else ()
    return Source(page, document_id, document_name), links
