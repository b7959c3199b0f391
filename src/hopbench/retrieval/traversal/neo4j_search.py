"""Neo4j's own vector index in place of exact search: approximate, so outside the parity of stores.

Its index knows no namespaces: more than is wanted is fetched, what belongs to other graphs is left out, and the rest is
scored again by the exact cosine, as in `hopbench.retrieval.search.exact`.
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
MOST = 10_000


def native_dense(index: Index, questions: Vectors, depth: int) -> list[TopRows]:
    """The best `depth` chunks of each row of `questions`, shape (q, d), by the vector index of the index's store.

    A round trip for the batch; where other namespaces leave too few, another with four times as many fetched, up to
    `MOST`. A question or chunk whose vector is zero is not found, since the vector index holds none.
    """
    wanted = min(depth, len(index.chunks))
    asked = np.flatnonzero(np.linalg.norm(questions, axis=1)).tolist() if wanted else []
    nearest: dict[int, list[str]] = {}
    fetch = OVERFETCH * wanted
    while asked:
        vectors = questions[asked].tolist()
        records = index.store.read(nearest_nodes(CHUNK), vectors=vectors, k=min(fetch, MOST))
        nearest |= {asked[record["q"]]: record["id"] for record in records}
        asked = [q for q in asked if len(nearest[q]) < wanted] if fetch < MOST else []
        fetch *= OVERFETCH
    rows = (np.asarray([index.row_of[chunk] for chunk in nearest.get(q, [])], np.intp) for q in range(len(questions)))
    return [best_of(index.vectors, *pair, depth) for pair in zip(rows, questions, strict=True)]
