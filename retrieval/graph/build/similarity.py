"""SIMILAR_TO: each chunk's nearest neighbours by cosine, the union of both ends' top k.

All pairs are compared (`exact`), or those of near cells (`approximate`). A float32 product finds the pairs that may be
among the best; what is kept, compared with the floor and put in order are exact cosines of vectors on the grid
(`arithmetic`), rounded to 6 decimals. So edges depend neither on the processor nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopbench.retrieval.graph.build.all_pairs import exact_pairs
from hopbench.retrieval.graph.build.cell_pairs import cell_pairs
from hopbench.retrieval.graph.build.recall import measured_recall
from hopbench.retrieval.graph.build.settings import APPROXIMATE, EXACT
from hopbench.retrieval.graph.build.shared_stems import SharedStems
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, SIMILAR_TO
from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.search.neighbours import Pairs
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

PAIRS = 100_000  # whose tags are found at a time: 100 MB


class Nearest(NamedTuple):
    """The pairs of nearest chunks, and how they were found: `method`, `recall`, and what `method` adds."""

    pairs: Pairs
    search: Mapping[str, Any]


def nearest(vectors: NDArray[np.float32], method: str, *, top_k: int, floor: float) -> Nearest:
    """The nearest pairs of (n, d) unit vectors, by `EXACT` or `APPROXIMATE`, whose recall is measured on a sample."""
    if method == EXACT:
        return Nearest(exact_pairs(vectors, top_k=top_k, floor=floor), {"method": EXACT, "recall": 1.0})
    pairs, effort = cell_pairs(vectors, top_k=top_k, floor=floor)
    recall = measured_recall(pairs, vectors, top_k=top_k, floor=floor)
    return Nearest(pairs, {"method": APPROXIMATE, "recall": round(recall, 4), **effort._asdict()})


def similar_parts(chunks: Sequence[Chunk], pairs: Pairs, tagger: Tagger) -> Iterator[pd.DataFrame]:
    """The SIMILAR_TO table of pairs of chunks in parts; similarity is the raw cosine, 6 decimals.

    Tags are the most salient stems that both chunks share.
    """
    stems = SharedStems.of(chunks, tagger)
    ids = np.array([chunk.id for chunk in chunks], object)
    for part in blocks(len(pairs.first), PAIRS):
        first, second = pairs.first[part], pairs.second[part]
        turned = ids[first] > ids[second]
        source, target = np.where(turned, second, first), np.where(turned, first, second)
        columns = ids[source], ids[target], pairs.cosine[part], stems.shared(first, second)
        yield pd.DataFrame(dict(zip(EDGE_COLUMNS[SIMILAR_TO], columns, strict=True)))
