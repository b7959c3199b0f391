"""Nodes of a label, found by id through a memory-mapped hash index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.graph.schema import NODE_COLUMNS
from hopbench.retrieval.graph.stores.arrays.columns import Column, open_column
from hopbench.retrieval.support.text_columns import ENCODING, ERRORS, Texts, mapped

ROW = "<i4"
PART = 100_000  # ids that are read at a time


class Nodes:
    """The nodes of a label by row; `columns` are those of the schema."""

    def __init__(self, folder: Path, label: str) -> None:
        self.columns: dict[str, Column] = {name: open_column(folder, label, name) for name in NODE_COLUMNS[label]}
        ids = self.columns["id"]
        if not isinstance(ids, Texts):
            raise TypeError(f"ids of {label} are texts")
        self.ids = ids
        self._begins = mapped(folder / f"{label}.buckets.bin", ROW)
        self._rows = mapped(folder / f"{label}.rows.bin", ROW)

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, node: str) -> int | None:
        """The row of an id, None for an unknown one."""
        wanted = node.encode(ENCODING, ERRORS)
        bucket = crc32(wanted) % (len(self._begins) - 1)
        for row in self._rows[self._begins[bucket] : self._begins[bucket + 1]].tolist():
            if self.ids.encoded(row) == wanted:
                return int(row)
        return None

    def rows(self, nodes: Sequence[str]) -> NDArray[np.int64]:
        """The rows of ids, -1 for an unknown one."""
        wanted = [node.encode(ENCODING, ERRORS) for node in nodes]
        buckets = np.fromiter(map(crc32, wanted), np.int64, len(wanted)) % (len(self._begins) - 1)
        places, ends = self._begins[buckets], self._begins[buckets + 1]
        found = np.full(len(wanted), -1, np.int64)
        open_ = np.flatnonzero(places < ends)
        while len(open_):  # the next row of each bucket, of all that are not found yet
            rows = self._rows[places[open_]]
            texts = zip(self.ids.many_encoded(rows), open_.tolist(), strict=True)
            same = np.fromiter((text == wanted[place] for text, place in texts), np.bool_, len(open_))
            found[open_[same]] = rows[same]
            open_ = open_[~same]
            places[open_] += 1
            open_ = open_[places[open_] < ends[open_]]
        return found


def write_index(folder: Path, label: str) -> None:
    """Write the hash index of a label whose ids are written: the rows of each bucket, bucket by bucket."""
    ids = Texts(folder / f"{label}.id")
    count = max(len(ids), 1)
    hashes = np.zeros(len(ids), np.int64)
    for begin in range(0, len(ids), PART):
        rows = np.arange(begin, min(begin + PART, len(ids)))
        hashes[rows] = np.fromiter(map(crc32, ids.many_encoded(rows)), np.int64, len(rows)) % count
    order = np.argsort(hashes, kind="stable")
    begins = np.searchsorted(hashes[order], np.arange(count + 1))
    (folder / f"{label}.buckets.bin").write_bytes(begins.astype(ROW).tobytes())
    (folder / f"{label}.rows.bin").write_bytes(order.astype(ROW).tobytes())
