"""The nearest of the many rows beside the chunks that strategies search, such as the names of a graph's entities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index.index import APPROXIMATE, Index
from hopbench.retrieval.search.cell_recall import Asked
from hopbench.retrieval.search.cell_search import LEAST_ROWS, SAMPLE, VERSION, CellSearch
from hopbench.retrieval.search.exact import TopRows, dense_top
from hopbench.retrieval.support.notice import notice

T = TypeVar("T", bound=np.generic)


def nearest_rows(
    index: Index, what: str, vectors: Vectors, asking: Callable[[], Asked], questions: Asked, depth: int
) -> list[TopRows]:
    """The best `depth` of `vectors` (n, d) by cosine for each of the questions.

    Where the index's dense search is approximate, many rows are searched by cells: `asking` then gives a sample of what
    is asked for (`CellSearch.fit`). They depend on the graph alone, and are kept with it under the name `what`.
    """
    if index.search != APPROXIMATE or len(vectors) < LEAST_ROWS:
        return dense_top(questions.vectors, vectors, depth)
    cells = index.memo.get(("cells", what), lambda: _cells(index, what, vectors, asking))
    return cells.top(questions, depth)


def _cells(index: Index, what: str, vectors: Vectors, asking: Callable[[], Asked]) -> CellSearch:
    def made() -> CellSearch:
        notice(f"putting {len(vectors):,} vectors ({what}) into cells, once: a minute for each million")
        found = CellSearch.fit(vectors, asking())
        notice(f"search of {what} is approximate (cells): {found}")
        return found

    name = f"cells-{what.replace(' ', '-')}"
    return CellSearch.of_arrays(vectors, index.graph_arrays(name, VERSION, lambda: made().arrays()))


def spread(rows: NDArray[T], count: int = SAMPLE) -> NDArray[T]:
    """Some of the rows (n, …), at equal distances."""
    return rows if len(rows) <= count else np.asarray(rows[np.arange(count) * len(rows) // count])
