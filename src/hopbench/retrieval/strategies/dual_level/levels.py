"""The two levels of dual_level: chunks of entities and of communities, and their provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.graph.schema import MENTIONED_IN
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.search.exact import DEPTH
from hopbench.retrieval.search.exact import cosines as cosines_of
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.dual_level.communities import Communities
from hopbench.retrieval.support.csr import expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Step

IN_COMMUNITY = "IN_COMMUNITY"  # the step from a community to its entity, which is no edge of the graph
NOTED = 5  # entities and communities that the notes list
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


class Found(NamedTuple):
    """A chunk of a level: its place from 0, its row, and the entity or community that led to it, with its cosine."""

    place: int
    row: int
    source: int
    cosine: float


@dataclass(frozen=True, eq=False)
class Level:
    """One level's result for a question: chunk rows, best first, each with the entity or community that led to it.

    `sources` are rows of entities or numbers of communities, nearest first, with `cosines`; `owners` index them.
    """

    rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    owners: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    sources: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    cosines: Floats = field(default_factory=lambda: np.zeros(0))
    touched: int = 0

    @cached_property
    def _place_of(self) -> dict[int, int]:
        return {row: place for place, row in enumerate(self.rows.tolist())}

    def found(self, row: int) -> Found | None:
        """A chunk by its row; None if it is not in the level."""
        place = self._place_of.get(row)
        if place is None:
            return None
        owner = self.owners.item(place)
        return Found(place, row, self.sources.item(owner), self.cosines.item(owner))


def chunks_of_entities(
    batch: Batch, q: int, mentions: sparse.csr_array, sources: Rows, cosines: Floats, order: str
) -> Level:
    """The chunks that mention any of the entities `sources` (nearest first), in one of the local orders."""
    columns, owners, _ = _gathered(mentions, sources)
    rows, place = np.unique(columns, return_inverse=True)
    nearest = np.full(len(rows), len(sources), dtype=np.int64)
    np.minimum.at(nearest, place, owners)
    count = np.bincount(place, minlength=len(rows))
    total = np.round(np.bincount(place, cosines[owners], minlength=len(rows)), DECIMALS)
    own = cosines_of(batch.index.vectors, rows, batch.vectors[q])
    keys = {"nearest": nearest, "count": -count, "cosine": -total}[order]
    best = np.lexsort((rows, -own, keys))[:DEPTH]
    return Level(rows[best], nearest[best], sources, cosines, len(columns))


def chunks_of_communities(batch: Batch, q: int, chunks: sparse.csr_array, sources: Rows, cosines: Floats) -> Level:
    """The chunks that mention members of the communities `sources` (nearest first), each by its nearest community."""
    columns, owners, counts = _gathered(chunks, sources)
    first = np.lexsort((owners, columns))
    rows, starts = np.unique(columns[first], return_index=True)
    own, nearest, count = (
        cosines_of(batch.index.vectors, rows, batch.vectors[q]),
        owners[first][starts],
        counts[first][starts],
    )
    best = np.lexsort((rows, -own, -count, nearest))[:DEPTH]
    return Level(rows[best], nearest[best], sources, cosines, int(counts.sum()))


def _gathered(matrix: sparse.csr_array, rows: Rows) -> tuple[Rows, Rows, Floats]:
    """The entries of some rows: columns, which of the rows each is in, values."""
    positions, owners = expand_ranges(matrix.indptr[rows], matrix.indptr[rows + 1])
    return matrix.indices[positions].astype(np.int64), owners, matrix.data[positions]


def _entities_by_chunk(graph: Adjacency) -> sparse.csr_array:
    by_chunk = sparse.csr_array(graph.mentions.T)
    by_chunk.sort_indices()
    return by_chunk


class Provenance:
    """What led to ranked chunks, and notes of it."""

    def __init__(self, index: Index, graph: Adjacency, known: Communities | None) -> None:
        self._index, self._graph, self._known = index, graph, known
        self._mentioned = index.memo.get("entities by chunk", lambda: _entities_by_chunk(graph))

    def steps(self, rows: Sequence[int], local: Level, broad: Level) -> list[tuple[Step, ...]]:
        """To each chunk the steps of the level that ranks it higher, the local one on a tie; none if neither has it."""
        near, far = list[Found](), list[Found]()
        for here, there in ((local.found(row), broad.found(row)) for row in rows):
            if here is not None and (there is None or here.place <= there.place):
                near.append(here)
            elif there is not None:
                far.append(there)
        steps: dict[int, tuple[Step, ...]] = {
            found.row: (step,) for found, step in zip(near, self._mentions(near), strict=True)
        }
        if self._known is not None:
            for found, step in zip(far, self._mentions(far, self._known.of_entity), strict=True):
                community, cosine = f"community:{found.source}", found.cosine
                steps[found.row] = Step(IN_COMMUNITY, community, step.source, cosine, cosine), step
        return [steps.get(row, ()) for row in rows]

    def _mentions(self, found: Sequence[Found], community_of: Rows | None = None) -> Iterator[Step]:
        """The step to each chunk from the entity that led to it.

        Of a community, from that of its entities which the chunk mentions with most weight, ties to the smaller id.
        """
        rows, sources = (np.array([getattr(one, name) for one in found], np.int64) for name in ("row", "source"))
        entities, of, weights = _gathered(self._mentioned, rows)
        leading = np.flatnonzero((entities if community_of is None else community_of[entities]) == sources[of])
        leading = leading[np.lexsort((entities[leading], -weights[leading], of[leading]))]
        best = leading[np.diff(of[leading], prepend=-1) > 0]
        names, ids = self._graph.entities, self._index.ids
        for one, entity, weight in zip(found, entities[best].tolist(), weights[best].tolist(), strict=True):
            yield Step(MENTIONED_IN, names[entity], ids[one.row], weight, one.cosine)

    def notes(self, local: Level, broad: Level) -> dict[str, object]:
        """The nearest entities and communities, by name, with their cosines."""
        near = zip(local.sources[:NOTED].tolist(), local.cosines[:NOTED].tolist(), strict=True)
        far = zip(broad.sources[:NOTED].tolist(), broad.cosines[:NOTED].tolist(), strict=True)
        names = self._known.names if self._known else ()
        return {
            "entities": [(self._graph.entities[row], cosine) for row, cosine in near],
            "communities": [(f"community:{one}", ", ".join(names[one][:3]), cosine) for one, cosine in far],
        }
