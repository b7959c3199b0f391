"""Searching for expansion queries: some thirty short texts for each question, of a whole batch together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import APPROXIMATE, Asked, Batch, Index, nearest_rows, spread
from hopbench.retrieval.question.linking import entity_names
from hopbench.retrieval.search.cell_search import SAMPLE
from hopbench.retrieval.search.cells import blocks
from hopbench.retrieval.search.exact import TopRows
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters

MOST = 1024  # queries searched at a time: Neo4j's vector index gets them in one transaction
TOGETHER = 8192  # of those that look into cells: each cell is multiplied with more of them at once
RARE = 100  # chunks that have a word, at most: a chunk that shares one with a query is looked at in any case


def search_texts(batch: Batch, texts: Iterable[str], count: int) -> dict[str, Scored]:
    """The best `count` chunks by cosine for each text; new texts are embedded in one call."""
    known: dict[str, Scored] = {} if batch.alone else batch.memo.get(("searches", count), dict)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if not new:
        return known
    vectors = batch.index.embed(new)
    for part in blocks(len(new), TOGETHER if batch.index.search == APPROXIMATE else MOST):
        found = _nearest(batch, new[part], vectors[part], count)
        known.update(zip(new[part], batch.all_with_ids(found), strict=True))
    return known


def _nearest(batch: Batch, texts: Sequence[str], vectors: Vectors, count: int) -> list[TopRows]:
    """The best `count` chunks for each of k queries with their vectors (k, d).

    Of many chunks, by cells where dense search is approximate: for hundreds of queries at a time they are cheaper than
    the graph of near chunks, which finds short texts only by a broad search (docs/scale.md).
    """
    index = batch.index
    if index.search != APPROXIMATE:
        return index.nearest(vectors, count)
    what, asked = "chunks for pairs of names", _asked(index, texts, vectors)
    return nearest_rows(index, what, index.vectors, lambda: _pairs(batch), asked, count)


def _asked(index: Index, texts: Sequence[str], vectors: Vectors) -> Asked:
    """Queries with the chunks that share a rare word with them: names that few chunks have, which cells miss most."""
    return Asked(vectors, index.lexical.sharing(texts, RARE))


def _pairs(batch: Batch) -> Asked:
    """A sample of what such queries are: names of related entities, two by two; chunks where nothing is related."""
    graph, name_of = adjacency(batch, Counters()), entity_names(batch.index)
    edges = spread(np.arange(graph.related.nnz), SAMPLE)
    sources = np.searchsorted(graph.related.indptr, edges, "right") - 1
    pairs = zip(sources.tolist(), graph.related.indices[edges].tolist(), strict=True)
    texts = [f"{name_of[graph.entities[source]]} {name_of[graph.entities[target]]}" for source, target in pairs]
    index = batch.index
    return _asked(index, texts, index.embed(texts)) if texts else Asked(spread(index.vectors))
