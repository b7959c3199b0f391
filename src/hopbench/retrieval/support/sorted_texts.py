"""Distinct texts in order, which stay in UTF-8 until one is asked for: a million of them as Python's take 200 MB."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.text_columns import ENCODING, ERRORS

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
        """Text → row, by a search for each: whoever needs all of them makes a dictionary."""
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
