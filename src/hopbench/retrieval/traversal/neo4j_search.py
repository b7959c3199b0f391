"""Neo4j's vector index instead of exact search: approximate, so results may differ between stores.

The index has no namespaces: more nodes than needed are fetched, those of other graphs are dropped, and the rest is
rescored by the exact cosine, as in `hopbench.retrieval.search.exact`.
"""

from __future__ import annotations

import numpy as np

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph.cypher.neo4j import nearest_nodes
from hopbench.retrieval.graph.schema import CHUNK
from hopbench.retrieval.index import Index
from hopbench.retrieval.search.exact import TopRows, best_of

NATIVE = "neo4j vector index"
OVERFETCH = 4
MAX_FETCH = 10_000


def native_dense(index: Index, questions: Vectors, depth: int) -> list[TopRows]:
    """Find the best `depth` chunks of each row of `questions`, shape (q, d), by the vector index of the store.

    One round trip per batch; if other namespaces leave too few chunks, another fetches four times as many, up to
    `MAX_FETCH`. Zero vectors have no results, since the vector index does not hold them.
    """
    wanted = min(depth, len(index.chunks))
    open_questions = np.flatnonzero(np.linalg.norm(questions, axis=1)).tolist() if wanted else []
    nearest: dict[int, list[str]] = {}
    fetch = OVERFETCH * wanted
    while open_questions:
        vectors = questions[open_questions].tolist()
        records = index.store.read(nearest_nodes(CHUNK), vectors=vectors, k=min(fetch, MAX_FETCH))
        nearest |= {open_questions[record["q"]]: record["id"] for record in records}
        open_questions = [q for q in open_questions if len(nearest[q]) < wanted] if fetch < MAX_FETCH else []
        fetch *= OVERFETCH
    rows = (np.asarray([index.row_of[chunk] for chunk in nearest.get(q, [])], np.intp) for q in range(len(questions)))
    return [best_of(index.vectors, *pair, depth) for pair in zip(rows, questions, strict=True)]
