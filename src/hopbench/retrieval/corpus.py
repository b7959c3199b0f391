"""A corpus as memory-mapped columns: passages that are read from files on access, and their chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import islice, pairwise
from operator import attrgetter
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.arrays import mapped_array
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.texts import Texts, TextsWriter
from hopbench.retrieval.text import sentences
from hopbench.retrieval.text.model_tokens import count_tokens, pieces
from hopbench.retrieval.types import MAX_TOKENS, UNKNOWN_SOURCE, Chunk, Link, Passage, Source

COLUMNS = ("id", "title", "text", "source")  # `source` has the links too: most corpora have neither
ORDER = "order.npy"
WHOLE = -1  # the part of a chunk that is a whole passage
READ_BATCH = 8192  # passages written, or read by those who read all, at a time

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
        for begin in range(0, len(rows), READ_BATCH):
            yield from self.many(rows[begin : begin + READ_BATCH])

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
        for begin in range(0, len(self), READ_BATCH):
            yield from self[begin : begin + READ_BATCH]

    def _chunk(self, passage: Passage, row: int, number: int) -> Chunk:
        return chunk_of(passage) if number == WHOLE else chunk_of(passage, number, self._parts[row][number])

    @property
    def divided(self) -> bool:
        """Whether any passage is more than one chunk."""
        return bool(self._parts)

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
        while part := list(islice(passages, READ_BATCH)):
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
    source, links = passage.source, [[link.text, link.target] for link in passage.links]
    facts = [source.page_number, source.document_id, source.document_name]
    return json.dumps([*facts, *([links] if links else [])]) if source or links else ""


def _origin(text: str) -> tuple[Source, tuple[Link, ...]]:
    if not text:
        return UNKNOWN_SOURCE, ()
    page, document_id, document_name, *rest = json.loads(text)
    links = tuple(Link(*link) for link in rest[0]) if rest else ()
    return Source(page, document_id, document_name), links


def chunk_passages(passages: Iterable[Passage], max_tokens: int = MAX_TOKENS) -> Sequence[Chunk]:
    """The chunks of a corpus, sorted by id; a passage over `max_tokens` is split at sentence ends: `ID#0`, `ID#1` …

    A sentence over `max_tokens` is cut between words, in scripts without spaces between characters.
    """
    chunks: Sequence[Chunk]
    if isinstance(passages, MappedPassages):
        chunks = _mapped_chunks(passages, max_tokens)
        if not chunks.divided:
            return chunks
        ids = chunks.ids
    else:
        made: list[Chunk] = []
        for passage in passages:
            # A text of n bytes has at most n tokens: most passages need no counting.
            if len(passage.text.encode(errors="replace")) <= max_tokens or count_tokens(passage.text) <= max_tokens:
                made.append(chunk_of(passage))
            else:
                parts = packed(spaced_sentences(passage.text), max_tokens)
                made += [chunk_of(passage, number, text) for number, text in enumerate(parts)]
        chunks = sorted(made, key=attrgetter("id"))
        ids = [chunk.id for chunk in chunks]
    for before, after in pairwise(ids):
        if before == after:
            raise InputError(f"two chunks have the id {after!r}: rename the passage whose id ends in '#' and a number")
    return chunks


def _mapped_chunks(passages: MappedPassages, max_tokens: int) -> MappedChunks:
    """Only passages of more bytes than `max_tokens` are read: no text has more tokens than bytes."""
    long = np.flatnonzero(passages.sizes > max_tokens)
    parts = {
        row: list(packed(spaced_sentences(one.text), max_tokens))
        for row, one in zip(long.tolist(), passages.some(long), strict=True)
        if count_tokens(one.text) > max_tokens
    }
    if not parts:
        return MappedChunks(passages, passages.order, np.full(len(passages), WHOLE), {})
    ids = passages.ids
    divided = [(part_id(ids[row], number), row, number) for row in parts for number in range(len(parts[row]))]
    listed = sorted([*((one, row, WHOLE) for row, one in enumerate(ids) if row not in parts), *divided])
    rows, numbers = np.array([place for _, *place in listed], np.int64).T.copy()
    return MappedChunks(passages, rows, numbers, parts)


def packed(texts: Iterable[str], max_tokens: int) -> Iterator[str]:
    """Join texts as long as they have at most `max_tokens` together; one that has more is cut."""
    part, size = "", 0
    for text in texts:
        tokens = count_tokens(text)
        if part and size + tokens > max_tokens:
            yield from pieces(part, max_tokens)
            part, size = "", 0
        part += text
        size += tokens
    yield from pieces(part, max_tokens)


def spaced_sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each with the blanks and line breaks before it."""
    end = 0
    for sentence in sentences(text):
        begin, end = end, text.index(sentence, end) + len(sentence)
        yield text[begin:end]
