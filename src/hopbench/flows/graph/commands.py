"""What `hopbench graph build|info` do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopbench.eval.benchmarks import load_triples
from hopbench.eval.graph_quality import Agreement, LinkingRecall, agreement, linking_recall
from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.orchestration.flow_run import open_runtime
from hopbench.flows.orchestration.progress import Progress, ProgressSteps
from hopbench.flows.orchestration.run_progress import RunProgress
from hopbench.flows.orchestration.steps import Steps, run_flow
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions, open_models
from hopbench.retrieval.graph.schema import CHUNK, ENTITY, MENTIONED_IN, RELATED_TO, SIMILAR_TO, WEIGHT_OF, GraphTables
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.contents import export, fingerprint
from hopbench.retrieval.support.errors import InputError

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
    agreement: Agreement | None = None


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
    progress = RunProgress(progress) if prefect else progress
    with ExitStack() as stack:
        runtime = stack.enter_context(open_runtime(home)) if prefect else None
        plan = options.graph_plan(benchmark, home)
        index = open_index(options, plan, home, search=False)
        models = stack.enter_context(open_models(models_named, index.embedder, home))
        plan = options.with_reader(plan, models.reading.reader)
        if force:
            index.store.drop()

        def body(steps: Steps) -> Built:
            record, warnings = built_graph(plan, index, home, ProgressSteps(steps, progress))
            found = agreement(export(index.store), wanted) if wanted else None
            return Built(record, [*notes, *benchmark.shown_warnings, *warnings], models.calls(), found)

        return run_flow("build_graph", body, runtime=runtime, parameters={"graph": plan.namespace})


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
    nodes, edges = tables.counts()
    degrees = {
        f"{label} {kind}": _quantiles(_degrees(tables, label, kind))
        for label, kind in ((CHUNK, SIMILAR_TO), (CHUNK, MENTIONED_IN), (ENTITY, MENTIONED_IN), (ENTITY, RELATED_TO))
    }
    weights = {
        f"{kind}.{name}": _quantiles(tables.edges[kind][name].to_numpy(float)) for kind, name in WEIGHT_OF.items()
    }
    every = _degrees(tables, CHUNK, SIMILAR_TO) + _degrees(tables, CHUNK, MENTIONED_IN)
    isolated = sorted(np.asarray(tables.nodes[CHUNK]["id"], dtype=object)[every == 0].tolist())
    return GraphInfo(
        store.namespace, record, fingerprint(tables), nodes, edges, degrees, weights, _kept(tables), isolated, linking
    )


def _degrees(tables: GraphTables, label: str, kind: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    edges = tables.edges[kind]
    ids = tables.nodes[label]["id"]
    ends = (
        [edges["source"], edges["target"]]
        if kind != MENTIONED_IN
        else [edges["source" if label == ENTITY else "target"]]
    )
    counts = sum(
        (end.value_counts().reindex(ids, fill_value=0) for end in ends[1:]),
        ends[0].value_counts().reindex(ids, fill_value=0),
    )
    return np.asarray(counts.to_numpy(), dtype=np.int64)


def _quantiles(values: np.ndarray[Any, Any]) -> list[float]:
    return [round(float(q), 3) for q in np.quantile(values, QUANTILES)] if len(values) else []


def _kept(tables: GraphTables) -> dict[float, float]:
    edges, chunks = tables.edges[SIMILAR_TO], len(tables.nodes[CHUNK])
    kept = {}
    for threshold in THRESHOLDS:
        above = edges[edges["similarity"] >= threshold]
        kept[threshold] = round(len({*above["source"], *above["target"]}) / chunks, 4) if chunks else 0.0
    return kept
