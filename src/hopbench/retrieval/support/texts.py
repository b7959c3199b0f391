"""Columns of texts that stay in UTF-8 until one is read: memory-mapped files, a hash index over them, sorted texts.

Files hold plain little-endian values, so that a column is written part by part and read anywhere without loading the
rest. Processes that read the same column share its pages.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, overload
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.arrays import distinct

OFFSET = "<i8"
ENCODING, ERRORS = "utf-8", "surrogatepass"
PARTS = ("utf8", "ends", "none")
DECODED_ROWS = 8192  # rows decoded at a time by those who read all


def mapped(file: Path, dtype: str) -> NDArray[Any]:
    """The values of a file, mapped for reading; an empty file has none (and cannot be mapped)."""
    if not file.stat().st_size:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(file, dtype, mode="r"))


class Texts:
    """A column of texts; a row may hold None, which is not the empty text."""

    def __init__(self, stem: Path) -> None:
        self._ends = mapped(stem.with_name(f"{stem.name}.ends.bin"), OFFSET)
        self._absent = frozenset(mapped(stem.with_name(f"{stem.name}.none.bin"), OFFSET).tolist())
        file = stem.with_name(f"{stem.name}.utf8.bin")
        self._bytes: bytes | mmap.mmap = b""
        if file.stat().st_size:
            with file.open("rb") as opened:
                self._bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._ends)

    def encoded(self, row: int) -> bytes:
        """The UTF-8 of a row."""
        return self._bytes[self._ends[row - 1] if row else 0 : self._ends[row]]

    def __getitem__(self, row: int) -> str:
        return self.encoded(row).decode(ENCODING, ERRORS)

    def many(self, rows: NDArray[np.integer[Any]]) -> list[Any]:
        """The values of some rows."""
        texts: list[Any] = [text.decode(ENCODING, ERRORS) for text in self.many_encoded(rows)]
        if self._absent:
            return [None if row in self._absent else text for row, text in zip(rows.tolist(), texts, strict=True)]
        return texts

    def many_encoded(self, rows: NDArray[np.integer[Any]]) -> list[bytes]:
        """The UTF-8 of some rows: their places are looked up together, which takes longer than to read them."""
        begins, ends = np.where(rows > 0, self._ends[rows - 1], 0), self._ends[rows]
        content = self._bytes
        return [content[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]

    def __iter__(self) -> Iterator[Any]:
        for begin in range(0, len(self), DECODED_ROWS):
            yield from self.many(np.arange(begin, min(begin + DECODED_ROWS, len(self))))

    def holds(self, values: Sequence[str]) -> bool:
        """Whether the column is just these texts."""
        if len(values) != len(self) or self._absent:
            return False
        encoded = [value.encode(ENCODING, ERRORS) for value in values]
        ends = np.cumsum([len(text) for text in encoded], dtype=OFFSET)
        return np.array_equal(ends, self._ends) and b"".join(encoded) == self._bytes[:]

    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each row has, (n,)."""
        return np.diff(self._ends, prepend=0)


class TextsOfRows(Sequence[str]):
    """The texts of some rows of a column, each read when it is asked for; equal to any list or tuple of these texts."""

    __slots__ = ("rows", "texts")

    def __init__(self, texts: Texts, rows: NDArray[np.integer[Any]]) -> None:
        self.texts, self.rows = texts, rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> TextsOfRows: ...

    def __getitem__(self, place: int | slice) -> str | TextsOfRows:
        if isinstance(place, slice):
            return TextsOfRows(self.texts, self.rows[place])
        return self.texts[int(self.rows[place])]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts.many(self.rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple, TextsOfRows)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def numbered(lists: Sequence[Sequence[str]]) -> tuple[list[str], list[NDArray[np.int64]]]:
    """The texts in the lists, each once, sorted, and for each list the numbers of its texts among them."""
    of_rows = [each for each in lists if isinstance(each, TextsOfRows)]
    if of_rows and len(of_rows) == len(lists) and len({each.texts for each in of_rows}) == 1:
        rows = distinct(np.concatenate([each.rows for each in of_rows]))
        known, [numbers] = numbered([of_rows[0].texts.many(rows)])  # each row is read once, whatever lists it is in
        return known, [numbers[rows.searchsorted(each.rows)] for each in of_rows]
    known = sorted(set().union(*lists))
    number_of = {text: number for number, text in enumerate(known)}
    return known, [np.array([number_of[text] for text in each], np.int64) for each in lists]


class TextsWriter:
    """Writes a column of texts part by part; a context whose end closes the files."""

    def __init__(self, stem: Path) -> None:
        self._stem, self._stack = stem, ExitStack()
        self._rows = self._size = 0

    def __enter__(self) -> TextsWriter:
        """Create the files, so that a column without rows has them too."""
        places = [self._stem.with_name(f"{self._stem.name}.{part}.bin") for part in PARTS]
        self._utf8, self._ends, self._none = [self._stack.enter_context(place.open("wb")) for place in places]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, values: Sequence[object]) -> None:
        """Append rows; what is no text is absent."""
        encoded = [value.encode(ENCODING, ERRORS) if isinstance(value, str) else b"" for value in values]
        ends = self._size + np.cumsum([len(text) for text in encoded], dtype=OFFSET)
        absent = [row for row, value in enumerate(values, self._rows) if not isinstance(value, str)]
        self._utf8.write(b"".join(encoded))
        self._ends.write(ends.tobytes())
        self._none.write(np.array(absent, OFFSET).tobytes())
        self._rows += len(values)
        self._size = int(ends[-1]) if len(ends) else self._size


ROW = "<i4"
PART = 100_000  # texts that are hashed at a time
T = TypeVar("T")


class TextIndex:
    """Finds the rows of a column's texts through a memory-mapped hash index; texts are unique."""

    def __init__(self, texts: Texts, stem: Path) -> None:
        self.texts = texts
        self._begins = mapped(stem.with_name(f"{stem.name}.buckets.bin"), ROW)
        self._rows = mapped(stem.with_name(f"{stem.name}.rows.bin"), ROW)

    def row(self, text: str) -> int | None:
        """The row of a text, None for an unknown one."""
        wanted = text.encode(ENCODING, ERRORS)
        bucket = crc32(wanted) % (len(self._begins) - 1)
        for row in self._rows[self._begins[bucket] : self._begins[bucket + 1]].tolist():
            if self.texts.encoded(row) == wanted:
                return int(row)
        return None

    def rows(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The rows of texts, -1 for an unknown one."""
        wanted = [text.encode(ENCODING, ERRORS) for text in texts]
        buckets = np.fromiter(map(crc32, wanted), np.int64, len(wanted)) % (len(self._begins) - 1)
        places, ends = self._begins[buckets], self._begins[buckets + 1]
        found = np.full(len(wanted), -1, np.int64)
        open_ = np.flatnonzero(places < ends)
        while len(open_):  # the next row of each bucket, of all that are not found yet
            rows = self._rows[places[open_]]
            candidates = zip(self.texts.many_encoded(rows), open_.tolist(), strict=True)
            same = np.fromiter((text == wanted[place] for text, place in candidates), np.bool_, len(open_))
            found[open_[same]] = rows[same]
            open_ = open_[~same]
            places[open_] += 1
            open_ = open_[places[open_] < ends[open_]]
        return found


class RowValues(Mapping[str, T]):
    """Text → the value of its row."""

    def __init__(self, index: TextIndex, value: Callable[[int], T]) -> None:
        self._index, self.value = index, value

    def __getitem__(self, text: str) -> T:
        if (row := self._index.row(text)) is None:
            raise KeyError(text)
        return self.value(row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index.texts)

    def __len__(self) -> int:
        return len(self._index.texts)


def write_index(texts: Texts, stem: Path) -> None:
    """Write the hash index of a column that is written: the rows of each bucket, bucket by bucket."""
    count = max(len(texts), 1)
    hashes = np.zeros(len(texts), np.int64)
    for begin in range(0, len(texts), PART):
        rows = np.arange(begin, min(begin + PART, len(texts)))
        hashes[rows] = np.fromiter(map(crc32, texts.many_encoded(rows)), np.int64, len(rows)) % count
    order = np.argsort(hashes, kind="stable")
    begins = np.searchsorted(hashes[order], np.arange(count + 1))
    stem.with_name(f"{stem.name}.buckets.bin").write_bytes(begins.astype(ROW).tobytes())
    stem.with_name(f"{stem.name}.rows.bin").write_bytes(order.astype(ROW).tobytes())


SAMPLED = 256  # one row of so many is kept as bytes: twelve of the twenty steps of a search among a million
Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]


class SortedTexts(Sequence[str]):
    """n distinct texts, ascending: `utf8` (bytes,) has them end to end, `ends` (n,) where each ends."""

    def __init__(self, utf8: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._utf8, self._ends = utf8.data, ends

    @staticmethod
    def arrays(texts: Sequence[str]) -> Arrays:
        """What the texts, in order, are made from again."""
        encoded = [text.encode(ENCODING, ERRORS) for text in texts]
        return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([*map(len, encoded)], dtype=np.int64)

    def encoded(self, row: int) -> bytes:
        """The UTF-8 of a text, by its row from 0 on: it sorts as the text does."""
        return bytes(self._utf8[self._ends.item(row - 1) if row else 0 : self._ends.item(row)])

    @cached_property
    def sample(self) -> list[bytes]:
        """The UTF-8 of every row that `SAMPLED` divides."""
        return [self.encoded(row) for row in range(0, len(self), SAMPLED)]

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        """A text by its row, or those of a slice. Raises IndexError."""
        if isinstance(row, slice):
            return [self[one] for one in range(len(self))[row]]
        return self.encoded(range(len(self))[row]).decode(ENCODING, ERRORS)

    @property
    def row_of(self) -> Mapping[str, int]:
        """Text → row, by a search for each: for all of them, make a dictionary."""
        return _RowOf(self)


class _RowOf(Mapping[str, int]):
    def __init__(self, texts: SortedTexts) -> None:
        self._texts = texts

    def __getitem__(self, text: str) -> int:
        wanted, texts = text.encode(ENCODING, ERRORS), self._texts
        begin = max(bisect_right(texts.sample, wanted) - 1, 0) * SAMPLED
        row = bisect_left(range(len(texts)), wanted, begin, min(begin + SAMPLED, len(texts)), key=texts.encoded)
        if row == len(texts) or texts.encoded(row) != wanted:
            raise KeyError(text)
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
