"""The flow that builds a graph, or finds it built, and opens an index over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flows.home import Home
from flows.options import GraphOptions
from flows.steps import Steps
from retrieval.chunking import chunk_passages
from retrieval.graph.build import GraphPlan, build_graph
from retrieval.graph.fingerprint import export, fingerprint
from retrieval.index import Index


def open_index(options: GraphOptions, plan: GraphPlan, home: Home) -> Index:
    """An index over the plan's chunks and store. Embeds and indexes at once; the graph may still have to be built."""
    store = options.open_store(plan, home)
    index = Index.build(chunk_passages(plan.passages, plan.settings.max_tokens), store, plan.embedder)
    _ = index.lexical  # computed here, where it overlaps with the start of servers
    return index


def built_graph(plan: GraphPlan, index: Index, home: Home, steps: Steps) -> tuple[Mapping[str, Any], list[str]]:
    """Build what is missing; returns the build record and warnings.

    The fingerprint in the record is the one read back from the store, so that a graph changed behind our back shows.
    """
    record = build_graph(plan, index.store, home.root / "staging", steps)
    tables = steps("fingerprint", lambda: export(index.store))
    found = fingerprint(tables)
    if found == record["fingerprint"]:
        return record, []
    nodes, edges = replace(tables).counts()
    warning = (
        f"the graph {index.store.namespace} is not what was built: its fingerprint is {found[:12]}, "
        f"{str(record['fingerprint'])[:12]} was written. Rebuild it with: hopbench graph build --force"
    )
    return {**record, "fingerprint": found, "nodes": nodes, "edges": edges}, [warning]
