"""Nodes of a label, found by id through a memory-mapped hash index."""

from __future__ import annotations

from pathlib import Path

from hopbench.retrieval.graph.schema import NODE_COLUMNS
from hopbench.retrieval.graph.stores.arrays.columns import Column, open_column
from hopbench.retrieval.support.text_columns import Texts
from hopbench.retrieval.support.text_index import TextIndex


class Nodes(TextIndex):
    """The nodes of a label by row, found by their ids; `columns` are those of the schema."""

    def __init__(self, folder: Path, label: str) -> None:
        self.columns: dict[str, Column] = {name: open_column(folder, label, name) for name in NODE_COLUMNS[label]}
        ids = self.columns["id"]
        if not isinstance(ids, Texts):
            raise TypeError(f"ids of {label} are texts")
        super().__init__(ids, folder / label)
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)
