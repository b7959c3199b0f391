"""Finds a text in a column of texts, through a hash index that is memory-mapped like the column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.support.text_columns import ENCODING, ERRORS, Texts, mapped

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
