"""Columns of a graph's tables as files that are read through a memory map: numbers, texts, and lists of texts.

A file holds plain little-endian values, so that a column is written part by part and read anywhere without loading the
rest. Processes that read the same graph share its pages: the machine holds one copy of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import LIST_COLUMNS, WEIGHT_OF
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.support.text_columns import OFFSET, Texts, TextsWriter, mapped

INTEGERS = frozenset({"index", "count"})
NUMBERS: Mapping[str, str] = {
    **dict.fromkeys(INTEGERS, "<i8"),
    **dict.fromkeys(WEIGHT_OF.values(), "<f8"),
}
CODE = "<i4"


class Numbers:
    """A column of numbers."""

    def __init__(self, stem: Path, name: str) -> None:
        self.values = mapped(stem.with_name(f"{stem.name}.bin"), NUMBERS[name])

    def many(self, rows: NDArray[np.int64]) -> list[Any]:
        """The values of some rows."""
        values: list[Any] = self.values[rows].tolist()
        return values


class Lists:
    """A column of lists of texts: numbers into a pool that holds each text once."""

    def __init__(self, stem: Path) -> None:
        self._ends = mapped(stem.with_name(f"{stem.name}.ends.bin"), OFFSET)
        self._codes = mapped(stem.with_name(f"{stem.name}.codes.bin"), CODE)
        self._pool = Texts(stem.with_name(f"{stem.name}.pool"))
        self._known = _TextsRead(self._pool)

    def many(self, rows: NDArray[np.int64]) -> list[Any]:
        """The lists of some rows."""
        begins, ends = np.where(rows > 0, self._ends[rows - 1], 0), self._ends[rows]
        places, _ = expand_ranges(begins, ends)
        texts = list(map(self._known.__getitem__, self._codes[places].tolist()))
        stops = np.cumsum(ends - begins).tolist()
        return [texts[begin:end] for begin, end in zip([0, *stops], stops, strict=False)]

    def with_others(self, usual: Sequence[str]) -> NDArray[np.int64]:
        """The rows whose list has a text that is not among `usual`."""
        unusual = np.array([self._pool[code] not in usual for code in range(len(self._pool))], np.bool_)
        places = np.flatnonzero(unusual[self._codes]) if len(unusual) else np.zeros(0, np.int64)
        return distinct(np.searchsorted(self._ends, places, side="right"))


class _TextsRead(dict[int, str]):
    """The texts of a column by their rows, each read once."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def __missing__(self, row: int) -> str:
        text = self[row] = self._texts[row]
        return text


Column = Numbers | Texts | Lists


def open_column(folder: Path, table: str, name: str) -> Column:
    """A column of a table in a graph's folder."""
    stem = folder / f"{table}.{name}"
    if name in NUMBERS:
        return Numbers(stem, name)
    return Lists(stem) if name in LIST_COLUMNS else Texts(stem)


class ColumnWriter:
    """Writes the columns of a table part by part; a context whose end closes the files."""

    def __init__(self, folder: Path, table: str, names: Sequence[str]) -> None:
        self._folder, self._table, self._names = folder, table, names
        self._files: dict[str, IO[bytes]] = {}
        self._texts: dict[str, TextsWriter] = {}
        self._sizes: dict[str, int] = {}
        self._pools: dict[str, dict[str, int]] = {name: {} for name in names if name in LIST_COLUMNS}
        self._stack = ExitStack()
        self.rows = 0

    def __enter__(self) -> ColumnWriter:
        """Create all files, so that a table without rows has its columns too."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in self._names:
            if name in NUMBERS:
                self._open(name)
            elif name in LIST_COLUMNS:
                self._open(f"{name}.ends")
                self._open(f"{name}.codes")
                self._open_texts(f"{name}.pool")
            else:
                self._open_texts(name)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows, given as a sequence for each column."""
        for name in self._names:
            values = columns[name]
            if name in NUMBERS:
                self._files[name].write(np.asarray(values, NUMBERS[name]).tobytes())
            elif name in LIST_COLUMNS:
                self._add_lists(name, values)
            else:
                self._texts[name].add(values)
        self.rows += len(next(iter(columns.values()), ()))

    def _add_lists(self, name: str, values: Sequence[object]) -> None:
        pool = self._pools[name]
        before = len(pool)
        codes: list[int] = []
        sizes: list[int] = []
        for value in values:
            texts = value if isinstance(value, list) else ()
            sizes.append(len(texts))
            codes.extend(pool.setdefault(text, len(pool)) for text in texts)
        ends = self._sizes.get(name, 0) + np.cumsum(sizes, dtype=OFFSET)
        self._sizes[name] = int(ends[-1]) if len(ends) else self._sizes.get(name, 0)
        self._files[f"{name}.ends"].write(ends.tobytes())
        self._files[f"{name}.codes"].write(np.array(codes, CODE).tobytes())
        self._texts[f"{name}.pool"].add(_from(pool, before))

    def _open_texts(self, name: str) -> None:
        self._texts[name] = self._stack.enter_context(TextsWriter(self._folder / f"{self._table}.{name}"))

    def _open(self, name: str) -> None:
        file = self._folder / f"{self._table}.{name}.bin"
        self._files[name] = self._stack.enter_context(file.open("wb"))


def _from(pool: dict[str, int], number: int) -> list[str]:
    """The pool's texts from a number on, in the order of their numbers."""
    return list(islice(reversed(pool), len(pool) - number))[::-1]
