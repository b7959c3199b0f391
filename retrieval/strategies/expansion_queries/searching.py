"""Searching for expansion queries: some thirty short texts for each question, of a whole batch together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.index import APPROXIMATE, Batch, nearest_rows, spread
from hopbench.retrieval.question.linking import entity_names
from hopbench.retrieval.search.cell_search import SAMPLE
from hopbench.retrieval.search.exact import TopRows
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters

MOST = 1024  # queries searched at a time: Neo4j's vector index gets them in one transaction


def search_texts(batch: Batch, texts: Iterable[str], count: int) -> dict[str, Scored]:
    """The best `count` chunks by cosine for each text; new texts are embedded in one call."""
    known: dict[str, Scored] = {} if batch.alone else batch.memo.get(("searches", count), dict)
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if not new:
        return known
    vectors = batch.index.embed(new)
    for begin in range(0, len(new), MOST):
        block = _nearest(batch, vectors[begin : begin + MOST], count)
        known.update(zip(new[begin : begin + MOST], map(batch.with_ids, block), strict=True))
    return known


def _nearest(batch: Batch, vectors: Vectors, count: int) -> list[TopRows]:
    """The best `count` chunks for each of (k, d) queries.

    Of many chunks, by cells where dense search is approximate: for hundreds of queries at a time they are cheaper than
    the graph of near chunks, which finds short texts only by a broad search (docs/scale.md).
    """
    index = batch.index
    if index.search != APPROXIMATE:
        return index.nearest(vectors, count)
    return nearest_rows(index, "chunks for pairs of names", index.vectors, lambda: _pairs(batch), vectors, count)


def _pairs(batch: Batch) -> Vectors:
    """A sample of what such queries are: names of related entities, two by two; chunks where nothing is related."""
    graph, name_of = adjacency(batch, Counters()), entity_names(batch.index)
    edges = spread(np.arange(graph.related.nnz), SAMPLE)
    sources = np.searchsorted(graph.related.indptr, edges, "right") - 1
    pairs = zip(sources.tolist(), graph.related.indices[edges].tolist(), strict=True)
    texts = [f"{name_of[graph.entities[source]]} {name_of[graph.entities[target]]}" for source, target in pairs]
    return batch.index.embed(texts) if texts else spread(batch.index.vectors)
