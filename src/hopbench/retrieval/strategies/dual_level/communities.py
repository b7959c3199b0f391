"""Communities of the RELATED_TO graph, which dual_level's global level searches.

Entities without a relation belong to none.

A community is embedded by its strongest entities' names and its strongest relations' wording, or by a language model's
summary of that text (`Services.community_summaries`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import Arrays, Batch, Linker
from hopbench.retrieval.strategies.dual_level.partition import Rows, at_least, partition
from hopbench.retrieval.strategies.dual_level.wording import Descriptions
from hopbench.retrieval.support.csr import Lists, expand_ranges
from hopbench.retrieval.traversal.adjacency import Adjacency
from hopbench.retrieval.types import Counters

NONE = -1
MAX_NAMES, MAX_RELATIONS = 10, 10  # in a community's text, the strongest
VERSION = "communities-1"  # of what is kept in files: it grows with each change of what is computed here


@dataclass(frozen=True, eq=False)
class Communities:
    """k communities, in the order of their first entity's id.

    `members` holds rows into the adjacency's entities, ascending; `names` the strongest members' names, best first;
    `chunks` is (k, n): how many distinct members each chunk mentions; `vectors` is (k, d); `of_entity` (m,) is
    each entity's community, NONE for an entity without one. `cost` is that of the summaries.
    """

    members: Sequence[Rows]
    names: Sequence[Sequence[str]]
    chunks: sparse.csr_array
    vectors: Vectors
    of_entity: Rows
    cost: Counters = field(default_factory=Counters)

    def __len__(self) -> int:
        return len(self.members)


def communities(
    batch: Batch,
    counters: Counters,
    graph: Adjacency,
    reader: Linker,
    worded: Descriptions,
    *,
    resolution: float = 1.0,
    max_size: int = 10,
    min_strength: float = 0.0,
) -> Communities:
    """The communities of a batch's graph, found and embedded once per index and setting.

    Each trial is charged for their summaries once, whichever had them made.
    """
    index = batch.index

    name = f"communities-{resolution}-{max_size}-{min_strength}"
    cost, summarise = Counters(), index.services.community_summaries

    def found() -> Arrays:
        related = at_least(graph.related, min_strength)
        members = Lists.of(partition(related, resolution, max_size))
        strongest, texts = _strongest_and_texts(graph, related, members, reader, worded)
        vectors = index.embed(texts if summarise is None else list(summarise(cost, texts)))
        chunks = _mentioning(graph, members)
        return {
            "members": members.values,
            "members_start": members.start,
            "strongest": strongest.values,
            "strongest_start": strongest.start,
            "vectors": vectors,
            "data": chunks.data,
            "indices": chunks.indices,
            "indptr": chunks.indptr,
        }

    def made() -> Communities:
        arrays = found() if summarise is not None else index.graph_arrays(name, VERSION, found)
        members, strongest = (Lists(arrays[part], arrays[f"{part}_start"]) for part in ("members", "strongest"))
        shape = len(members), len(index.chunks)
        chunks = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        of_entity = _of_entity(members, len(graph.entities))
        return Communities(members, _Names(graph, reader, strongest), chunks, arrays["vectors"], of_entity, cost)

    known = index.memo.get(name, made)
    counters.add_once(name, known.cost)
    return known


class _Names(Sequence[list[str]]):
    """The names of each community's strongest members, read from the linker on access: few are asked for."""

    def __init__(self, graph: Adjacency, reader: Linker, strongest: Lists) -> None:
        self._graph, self._reader, self._strongest = graph, reader, strongest

    def __len__(self) -> int:
        return len(self._strongest)

    def __getitem__(self, number: Any) -> Any:
        """The names of a community."""
        entities = self._graph.entities
        return [self._reader.name_of[entities[row]] for row in self._strongest[number].tolist()]


def _strongest_and_texts(
    graph: Adjacency, related: sparse.csr_array, members: Lists, reader: Linker, worded: Descriptions
) -> tuple[Lists, list[str]]:
    """Strongest entities and text of each community: their names, then the wording of the strongest relations."""
    best, texts = [], []
    for rows, inside in zip(members, _inside(related, members), strict=True):
        strength = np.round(np.bincount(rows.searchsorted(inside.rows), inside.strengths, len(rows)), 9)
        strongest = rows[np.lexsort((rows, -strength))[:MAX_NAMES]]
        names = [reader.name_of[graph.entities[row]] for row in strongest]
        upper = np.flatnonzero(inside.rows < inside.columns)
        order = upper[np.lexsort((inside.columns[upper], inside.rows[upper], -inside.strengths[upper]))]
        wordings: dict[str, None] = {}
        for i in order.tolist():
            if len(wordings) == MAX_RELATIONS:
                break
            pair = graph.entities[inside.rows[i]], graph.entities[inside.columns[i]]
            wordings[worded.relations[pair]] = None
        best.append(strongest)
        texts.append(". ".join([*names, *wordings]))
    return Lists.of(best), texts


def _of_entity(members: Lists, entities: int) -> Rows:
    """The community of each entity, (m,)."""
    number = np.full(entities, NONE)
    number[members.values] = members.owner
    return number


class _Inside(NamedTuple):
    """The entries of a matrix between members of one community."""

    rows: Rows
    columns: Rows
    strengths: NDArray[np.float64]


def _inside(related: sparse.csr_array, members: Lists) -> Iterator[_Inside]:
    """Each community's own entries, by row and column; all of them together take one pass over the matrix."""
    community = _of_entity(members, related.shape[0])
    for number, rows in enumerate(members):
        places, owners = expand_ranges(related.indptr[rows], related.indptr[rows + 1])
        columns = related.indices[places]
        own = community[columns] == number
        yield _Inside(rows[owners[own]], columns[own].astype(np.int64), related.data[places[own]])


def _mentioning(graph: Adjacency, members: Lists) -> sparse.csr_array:
    shape = len(members), len(graph.entities)
    belongs = sparse.csr_array((np.ones(len(members.values)), members.values, members.start), shape=shape)
    pattern = graph.mentions.copy()
    pattern.data[:] = 1.0
    chunks = sparse.csr_array(belongs @ pattern)
    chunks.sort_indices()
    return chunks
