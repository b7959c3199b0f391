"""What `hopbench graph build|info|list` do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.eval.benchmarks import load_triples, shown_warnings
from hopbench.eval.graph_quality import LinkingRecall, Overlap, agreement, linking_recall
from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Progress, Steps, run_flow
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import STORES, Home
from hopbench.flows.settings.models import ModelOptions, open_models
from hopbench.retrieval.graph.schema import (
    CHUNK,
    DOCUMENT_EDGES,
    ENTITY,
    MENTIONED_IN,
    RELATED_TO,
    SIMILAR_TO,
    WEIGHT_OF,
    GraphTables,
)
from hopbench.retrieval.graph.stores.arrays.store import SUFFIX as ARRAYS
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.contents import content, export
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.graph.stores.neo4j_connection import Connection
from hopbench.retrieval.support.errors import HopBenchError, InputError, UnknownNameError

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@dataclass(frozen=True)
class GraphInfo:
    """What a graph looks like. Quantiles are at `QUANTILES`; `kept` is the share of chunks by SIMILAR_TO threshold."""

    namespace: str
    record: Mapping[str, Any]
    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    degrees: Mapping[str, list[float]]
    weights: Mapping[str, list[float]]
    kept: Mapping[float, float]
    isolated: list[str]
    linking: LinkingRecall


@dataclass(frozen=True)
class Built:
    """A built graph: its record, warnings, calls to the model, and its agreement with triples."""

    record: Mapping[str, Any]
    warnings: Sequence[str]
    calls: Mapping[str, Mapping[str, Any]]
    agreement: Mapping[str, Overlap] | None = None


def build(
    options: GraphOptions,
    home: Home,
    progress: Progress,
    *,
    force: bool = False,
    prefect: bool = True,
    reference: Path | None = None,
) -> Built:
    """Build a benchmark's graph, and compare it with the triples in `reference`."""
    home.apply_environment()
    options.refuse_unread_model("graph build")
    models_named = ModelOptions(**options.model_settings())
    notes = models_named.reach(home)
    benchmark = options.benchmark(home, need_questions=False)
    wanted = load_triples(reference, benchmark.titles) if reference else ()
    home.prepare()
    progress.in_flow = prefect
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime(home)) if prefect else None
        plan = options.graph_plan(benchmark, home)
        index = open_index(options, plan, home, search=False)
        models = stack.enter_context(open_models(models_named, index.embedder, home))
        plan = options.with_reader(plan, models.reading.reader)
        if force:
            index.store.drop()

        def body(steps: Steps) -> Built:
            record, warnings = built_graph(plan, index, home, steps)
            found = agreement(export(index.store), wanted) if wanted else None
            return Built(record, [*notes, *shown_warnings(benchmark), *warnings], models.calls(), found)

        return run_flow("build_graph", body, runtime=runtime, parameters={"graph": plan.namespace}, progress=progress)


def inspect(options: GraphOptions, home: Home) -> GraphInfo:
    """Read a built graph back and describe it."""
    home.apply_environment()
    benchmark = options.benchmark(home, need_questions=False)
    plan = options.graph_plan(benchmark, home)
    record = options.open_store(plan, home).record()
    if record is None:
        raise InputError(f"no graph is built for {options.dataset!r} with these settings: {options.build_command()}")
    index = open_index(options, plan, home)
    return _described(index.store, record, linking_recall(benchmark, index))


def _described(store: GraphStore, record: Mapping[str, Any], linking: LinkingRecall) -> GraphInfo:
    tables = export(store)
    held = content(tables)
    own = [kind for kind in DOCUMENT_EDGES if kind in held["edges"]]
    degrees = {
        f"{label} {kind}": _quantiles(_degrees(tables, label, kind))
        for label, kind in (
            (CHUNK, SIMILAR_TO),
            (CHUNK, MENTIONED_IN),
            (ENTITY, MENTIONED_IN),
            (ENTITY, RELATED_TO),
            *((CHUNK, kind) for kind in own),
        )
    }
    weights = {
        f"{kind}.{name}": _quantiles(tables.edges[kind][name].to_numpy(float))
        for kind, name in WEIGHT_OF.items()
        if kind in held["edges"]
    }
    similar, chunks = tables.edges[SIMILAR_TO], tables.nodes[CHUNK]["id"]
    kept = {}
    for threshold in THRESHOLDS:
        above = similar[similar["similarity"] >= threshold]
        linked = {*above["source"], *above["target"]}
        kept[threshold] = round(len(linked) / len(chunks), 4) if len(chunks) else 0.0
    every = sum(_degrees(tables, CHUNK, kind) for kind in (SIMILAR_TO, MENTIONED_IN, *own))
    isolated = sorted(np.asarray(chunks, dtype=object)[every == 0].tolist())
    return GraphInfo(
        store.namespace,
        record,
        held["fingerprint"],
        held["nodes"],
        held["edges"],
        degrees,
        weights,
        kept,
        isolated,
        linking,
    )


def _degrees(tables: GraphTables, label: str, kind: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    import pandas as pd

    sides = ["source", "target"] if kind != MENTIONED_IN else ["source" if label == ENTITY else "target"]
    counts = pd.concat([tables.edges[kind][side] for side in sides]).value_counts()
    return np.asarray(counts.reindex(tables.nodes[label]["id"], fill_value=0).to_numpy(), dtype=np.int64)


def _quantiles(values: np.ndarray[Any, Any]) -> list[float]:
    return [round(float(q), 3) for q in np.quantile(values, QUANTILES)] if len(values) else []


KGL = ".kgl"


@dataclass(frozen=True)
class StoredGraph:
    """A graph in a store. `size` is in bytes (unknown for a server), `built` in UTC; what is not known is None.

    `problem` says why a graph cannot be read.
    """

    store: str
    namespace: str
    dataset: str
    extractor: str = ""
    embedder: str = ""
    build_key: str = ""
    fingerprint: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    size: int | None = None
    built: str | None = None
    problem: str = ""


def graphs(home: Home, store: str | None = None) -> tuple[list[StoredGraph], list[str]]:
    """The graphs of one store or of all, by data set and date; and the problems of stores that could not be queried.

    Neo4j is queried only where it is configured. If it was requested by name and does not answer, that is an error.
    """
    if store is not None and store not in STORES:
        raise UnknownNameError("store", store, STORES)
    found, notes = [], []
    if store in (None, "kglite"):
        found += list(_files(home.graphs, KgliteStore, KGL))
    if store in (None, "arrays"):
        found += list(_files(home.graphs, ArrayStore, ARRAYS))
    if store in (None, "neo4j"):
        try:
            found += list(_served(Connection.resolve(os.environ, home.neo4j_env)))
        except InputError:
            if store is not None or os.environ.get("NEO4J_URI"):
                raise
        except HopBenchError as error:
            if store is not None:
                raise
            notes.append(f"the graphs in Neo4j are not listed: {error}")
    return sorted(found, key=lambda one: (one.dataset, one.built or "", one.namespace)), notes


def _files(folder: Path, opened: type[KgliteStore] | type[ArrayStore], suffix: str) -> Iterator[StoredGraph]:
    for path in sorted(folder.glob(f"*{suffix}")):
        parts = path.iterdir() if opened is ArrayStore and path.is_dir() else folder.glob(f"{path.name}*")
        size = sum(part.stat().st_size for part in parts if part.is_file())
        store = opened(folder, path.name.removesuffix(suffix))
        built = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
        try:
            yield _stored(store.engine, store.namespace, store.record() or {}, size, built)
        except HopBenchError as error:
            yield replace(_stored(store.engine, store.namespace, {}, size, None), problem=str(error))
        finally:
            store.close()


def _served(connection: Connection) -> Iterator[StoredGraph]:
    from hopbench.retrieval.graph.cypher.neo4j import BUILDS
    from hopbench.retrieval.graph.stores.neo4j_store import Neo4jStore

    store = Neo4jStore(connection, "")
    try:
        rows = store.read(BUILDS)
    finally:
        store.close()
    for row in rows:
        yield _stored("neo4j", str(row["namespace"]), json.loads(row["record"]), None, None)


def _stored(store: str, namespace: str, record: Mapping[str, Any], size: int | None, built: str | None) -> StoredGraph:
    dataset = str(record.get("dataset") or namespace.rpartition("-")[0] or namespace)
    extractor = str(record.get("settings", {}).get("extractor", ""))
    embedder, key, read = (str(record.get(name, "")) for name in ("embedder", "build_key", "fingerprint"))
    counts = record.get("nodes", {}), record.get("edges", {})
    problem = "" if record else "it has no build record: hopbench graph build --force"
    built = record.get("built", built)
    return StoredGraph(store, namespace, dataset, extractor, embedder, key, read, *counts, size, built, problem)
