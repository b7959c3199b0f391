"""A column of texts as files that are read through a memory map: their UTF-8, where each ends, and which are absent.

Values are plain and little-endian, so that a column is written part by part and read anywhere without loading the rest.
Processes that read the same column share its pages.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.distinct import distinct

OFFSET = "<i8"
ENCODING, ERRORS = "utf-8", "surrogatepass"
PARTS = ("utf8", "ends", "none")
TOGETHER = 8192  # rows decoded at a time by those who read all


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
        for begin in range(0, len(self), TOGETHER):
            yield from self.many(np.arange(begin, min(begin + TOGETHER, len(self))))

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
