"""Copies a graph from one store to another and verifies the copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hopbench.retrieval.embedding.base import Embedder
from hopbench.retrieval.graph.schema import CHUNK, ENTITY
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.fingerprint import export, fingerprint
from hopbench.retrieval.support.errors import InputError, StoreError


@dataclass(frozen=True)
class Copied:
    """The graph in the target; `fresh` is False if an equal one was there before."""

    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    fresh: bool


def copy_graph(source: GraphStore, target: GraphStore, embedder: Embedder) -> Copied:
    """Write the source's graph into the target, then read it back and compare fingerprint and counts.

    Vectors are those of `embedder`, which has them in its cache since the graph was built. Raises InputError where
    the source has no complete graph, StoreError where what came out is not what went in; writing again repairs that.
    """
    record = source.record()
    if record is None:
        raise InputError(f"{source.engine} holds no complete graph {source.namespace}: hopbench graph build")
    tables = export(source)
    wanted, counts = fingerprint(tables), tables.counts()
    if wanted != record.get("fingerprint", wanted):
        raise StoreError(
            f"the graph {source.namespace} in {source.engine} is not what was built: its fingerprint is {wanted[:12]}, "
            f"{str(record['fingerprint'])[:12]} was written. Build it again with: hopbench graph build --force"
        )
    fresh = target.record() != record or fingerprint(export(target)) != wanted
    if fresh:
        texts = {CHUNK: tables.nodes[CHUNK]["content"].tolist(), ENTITY: tables.nodes[ENTITY]["name"].tolist()}
        vectors = {label: embedder.embed(text) for label, text in texts.items()}
        target.write(replace(tables, vectors=vectors), record)
        arrived = export(target)
        if (fingerprint(arrived), arrived.counts()) != (wanted, counts):
            raise StoreError(
                f"the copy of {source.namespace} in {target.engine} differs: {arrived.counts()} instead of {counts}, "
                f"fingerprint {fingerprint(arrived)[:12]} instead of {wanted[:12]}. Copy it again"
            )
    return Copied(wanted, *counts, fresh)
