"""SIMILAR_TO: each chunk's nearest neighbours by cosine, the union of both ends' top k.

All pairs are compared (`exact`), or those of near cells (`approximate`). A float32 product finds the pairs that may be
among the best; what is kept, compared with the floor and put in order are exact cosines of vectors on the grid
(`arithmetic`), rounded to 6 decimals. So edges depend neither on the processor nor on the number of threads.

A killed build goes on with what its last minute of comparing found (`rounds`), and with the tags of its last stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopbench.retrieval.graph.construction.all_pairs import exact_pairs
from hopbench.retrieval.graph.construction.cell_pairs import cell_pairs
from hopbench.retrieval.graph.construction.recall import measured_recall
from hopbench.retrieval.graph.construction.rounds import Rounds, Search, at_once
from hopbench.retrieval.graph.construction.settings import APPROXIMATE, EXACT, BuildSettings
from hopbench.retrieval.graph.construction.shared_stems import SharedStems
from hopbench.retrieval.graph.construction.staging import Part, Stage, Stages, Staging
from hopbench.retrieval.graph.schema import EDGE_COLUMNS, SIMILAR_TO
from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.search.neighbours import Pairs
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

SEARCH = "search"  # the table that says how the pairs were found
PAIRS = "pairs"  # the table of pairs by rows, before their tags are found
TAGGED = 100_000  # pairs whose tags are found at a time: 100 MB
STAGED = 5 * TAGGED  # those that are a stage of their own


class Nearest(NamedTuple):
    """The pairs of nearest chunks, and how they were found: `method`, `recall`, and what `method` adds."""

    pairs: Pairs
    search: Mapping[str, Any]


def similar_stages(
    settings: BuildSettings,
    chunks: Sequence[Chunk],
    vectors: NDArray[np.float32],
    tagger: Tagger,
    staging: Staging,
) -> Stages:
    """SIMILAR_TO of chunks with vectors (n, d), and how it was found (`SEARCH`), in stages that `staging` keeps."""
    rounds = Rounds(staging, "near-rounds")
    near = staging.load_or_compute("near", lambda: _near(settings, vectors, rounds))
    staging.forget(rounds.name)
    stems = cache(lambda: SharedStems.of(chunks, tagger))
    ids = np.array([chunk.id for chunk in chunks], object)
    pairs = _pairs(near)

    def tagged(rows: slice) -> Iterator[Part]:
        return ((SIMILAR_TO, table) for table in similar_parts(ids, pairs.part(rows), stems()))

    parts = [partial(tagged, rows) for rows in blocks(len(pairs.first), STAGED)]
    return Stages([near, *staging.each("similar", parts)])


def _near(settings: BuildSettings, vectors: NDArray[np.float32], search: Search) -> Iterator[Part]:
    pairs, how = nearest(
        vectors, settings.similar, top_k=settings.similar_top_k, floor=settings.similar_floor, search=search
    )
    yield SEARCH, pd.DataFrame([how])
    for rows in blocks(len(pairs.first), STAGED):
        yield PAIRS, pd.DataFrame(pairs.part(rows)._asdict())


def _pairs(near: Stage) -> Pairs:
    none = pd.DataFrame({"first": np.zeros(0, np.intp), "second": np.zeros(0, np.intp), "cosine": np.zeros(0)})
    table = pd.concat(chain([none], near.parts(PAIRS)))
    return Pairs(table["first"].to_numpy(), table["second"].to_numpy(), table["cosine"].to_numpy())


def nearest(
    vectors: NDArray[np.float32], method: str, *, top_k: int, floor: float, search: Search = at_once
) -> Nearest:
    """The nearest pairs of (n, d) unit vectors, by `EXACT` or `APPROXIMATE`, whose recall is measured on a sample."""
    if method == EXACT:
        pairs = exact_pairs(vectors, top_k=top_k, floor=floor, search=search)
        return Nearest(pairs, {"method": EXACT, "recall": 1.0})
    pairs, effort = cell_pairs(vectors, top_k=top_k, floor=floor, search=search)
    recall = measured_recall(pairs, vectors, top_k=top_k, floor=floor)
    return Nearest(pairs, {"method": APPROXIMATE, "recall": round(recall, 4), **effort._asdict()})


def similar_parts(ids: NDArray[np.object_], pairs: Pairs, stems: SharedStems) -> Iterator[pd.DataFrame]:
    """The SIMILAR_TO table of pairs of chunks in parts; similarity is the raw cosine, 6 decimals.

    Tags are the most salient stems that both chunks share.
    """
    for rows in blocks(len(pairs.first), TAGGED):
        first, second, cosine = pairs.part(rows)
        turned = ids[first] > ids[second]
        source, target = np.where(turned, second, first), np.where(turned, first, second)
        columns = ids[source], ids[target], cosine, stems.shared(first, second)
        yield pd.DataFrame(dict(zip(EDGE_COLUMNS[SIMILAR_TO], columns, strict=True)))
