"""The flow that builds a graph unless it exists, and opens an index over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hopbench.eval.files import write_atomically
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Progress, run_flow
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.construction.plan import APPROXIMATE, GraphPlan, method_for
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.index import APPROXIMATE as APPROXIMATE_SEARCH
from hopbench.retrieval.index import Index, approximate_dense
from hopbench.retrieval.index.cache import IndexCache
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.text import ENGLISH, UNKNOWN

if TYPE_CHECKING:
    from hopbench.retrieval.graph.construction.builder import BuildRecord, Steps

EMBEDDED_PASSAGES = 100_000
WRITTEN_KB, OPENED_KB = 30, 10  # a passage, measured at 100,000 passages of hopworld's generator


def open_index(options: GraphOptions, plan: GraphPlan, home: Home, *, search: bool = True) -> Index:
    """An index over the plan's chunks and store. Embeds and indexes at once; the graph may still have to be built.

    Without `search`, BM25 waits until it is asked for: building a graph needs none.
    """
    if (advice := store_advice(options.store, len(plan.passages))) is not None:
        notice(advice)
    store = options.open_store(plan, home)
    keeps = options.store == "arrays" or (options.store == "neo4j" and len(plan.passages) > EMBEDDED_PASSAGES)
    kept = IndexCache(home.cache / "search" / plan.namespace) if keeps else None
    chunks = chunk_passages(plan.passages, plan.settings.max_tokens)
    index = Index.build(chunks, store, plan.embedder, kept, plan.language)
    if options.neo4j_vector_index:
        from hopbench.retrieval.traversal.neo4j_search import NATIVE, native_dense

        index.search, index.native = NATIVE, native_dense
    elif (options.dense or method_for(len(plan.passages))) == APPROXIMATE:
        index.search, index.native = APPROXIMATE_SEARCH, approximate_dense
    if search:
        _ = index.lexical, index.tagger  # computed here, where it overlaps with the start of servers
    return index


def store_advice(store: str, passages: int) -> str | None:
    """What to say of a corpus whose graph the embedded engine holds in each process."""
    if store != "kglite" or passages <= EMBEDDED_PASSAGES:
        return None
    written, opened = (passages * kilobytes / 1e6 for kilobytes in (WRITTEN_KB, OPENED_KB))
    return (
        f"kglite needs some {written:.0f} GB to write the graph of {passages:,} passages and {opened:.0f} GB in each "
        "process that reads it: --store arrays maps it from files (docs/scale.md)"
    )


def built_graph(plan: GraphPlan, index: Index, home: Home, steps: Steps) -> tuple[BuildRecord, list[str]]:
    """Build what is missing; returns the build record and warnings.

    Fingerprint and counts in the record are those of the store's present content, so that a graph changed from outside
    is detected.
    """
    from hopbench.retrieval.graph.construction.builder import build_graph  # pandas: 0.5 s, not for reading a graph

    record = build_graph(plan, index.store, home.root / "staging", steps)
    held = steps("fingerprint", lambda: held_content(index.store, home.graphs))
    warnings = [f"the graph lacks {what}: {reason}" for what, reason in record.get("gaps", {}).items()]
    if warnings:
        warnings.append("what the model could not read is asked again with: hopbench graph build --force")
    warnings += record.get("joined", ())
    if plan.language.code not in (ENGLISH.code, UNKNOWN):
        warnings.append(f"the corpus is {plan.language.name}: {plan.language.meaning(plan.embedder.name)}")
    if held["fingerprint"] == record["fingerprint"]:
        return record, warnings
    warning = (
        f"the graph {index.store.namespace} is not what was built: its fingerprint is {held['fingerprint'][:12]}, "
        f"{str(record['fingerprint'])[:12]} was written. Build it again with: hopbench graph build --force"
    )
    return cast("BuildRecord", {**record, **held}), [*warnings, warning]


def build_flow(
    plan: GraphPlan, index: Index, home: Home, runtime: PrefectRuntime | None, progress: Progress
) -> tuple[BuildRecord, list[str]]:
    """`built_graph` as the flow `build_graph`: on Prefect where `runtime` is given, and with its steps reported."""

    body, shown = partial(built_graph, plan, index, home), {"graph": plan.namespace}
    return run_flow("build_graph", body, runtime=runtime, parameters=shown, progress=progress, announce=True)


def held_content(store: GraphStore, folder: Path) -> Mapping[str, Any]:
    """Fingerprint and counts of what a store holds: read back from it, unless its stamp is unchanged.

    Raises DamagedGraphError where files of arrays are not what was written.
    """
    stamp, note = store.stamp(), folder / f"{store.namespace}.{store.engine}.json"
    if stamp is not None and note.is_file():
        try:
            if (known := noted(note).get(stamp)) is not None:
                return known
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            notice(f"{note} is damaged ({type(error).__name__}: {error}): the graph is read again")
    if isinstance(store, ArrayStore):
        store.check(content=True)  # edges stand there thrice, of which a fingerprint reads one
    from hopbench.retrieval.graph.stores.contents import content, stored_tables

    held = content(stored_tables(store))
    if stamp is None:
        return held
    if note.is_dir():
        notice(f"{note} is a folder where a note belongs: move it away, until then the graph is read at every run")
    else:
        write_atomically(note, json.dumps({"stamp": stamp, "seal": _seal(stamp, held), **held}).encode())
    return held


def noted(note: Path) -> Mapping[str, Mapping[str, Any]]:
    """Stamp → fingerprint and counts in a note.

    Raises OSError, ValueError, TypeError, KeyError or RecursionError for a damaged note.
    """
    known = json.loads(note.read_bytes())
    held = {name: known[name] for name in ("fingerprint", "nodes", "edges")}
    if known["seal"] != _seal(known["stamp"], held):
        raise ValueError("its checksum does not fit")
    return {known["stamp"]: held}


def _seal(stamp: str, held: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([stamp, held], sort_keys=True).encode()).hexdigest()
