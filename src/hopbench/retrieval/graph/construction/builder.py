"""Builds a graph in stages whose results are saved, so that an interrupted build continues where it stopped.

Stages: embed (saved by the embedding cache), extract, similar (tables saved part by part by `staging`), write (the
store shows a whole graph or none; `arrays` and Neo4j go on with what a killed write left). Tables are written and read
part by part; none is in memory whole. The plan's build key is a digest of all inputs; the fingerprint is a digest of
the result.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar, cast

import pandas as pd

from hopbench.retrieval.chunking import chunk_passages
from hopbench.retrieval.graph.construction.blockwise import extract_in_blocks
from hopbench.retrieval.graph.construction.extraction import GAPS, extract
from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.graph.construction.similarity import SEARCH, similar_stages
from hopbench.retrieval.graph.construction.staging import Part, Stage, Stages, Staging
from hopbench.retrieval.graph.construction.tables import BuiltTables
from hopbench.retrieval.graph.extract.rules import BLOCK
from hopbench.retrieval.graph.schema import Tables
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.fingerprint import Content, content
from hopbench.retrieval.support.errors import DamagedGraphError, InputError
from hopbench.retrieval.support.forked import usable_processors
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

CONTENT = "content"  # the stage that is a digest of the others, and its table
T = TypeVar("T")


class BuildRecord(TypedDict):
    """What a graph was built from and what came out, as the store keeps it beside the graph.

    `settings` are those of `BuildSettings`; `similar` says how the nearest chunks were found, and the share of a
    sample's true ones that were (`similarity.Nearest`; absent from graphs of earlier versions); `gaps` is what a model
    could not read or decide, with the reason; `joined` says which edges of a graph from elsewhere count as one or none.
    """

    build_key: str
    dataset: str
    built: str
    fingerprint: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    settings: Mapping[str, Any]
    embedder: str
    build_seconds: float
    similar: NotRequired[Mapping[str, Any]]
    gaps: NotRequired[Mapping[str, str]]
    joined: NotRequired[Sequence[str]]


class Steps(Protocol):
    """How a stage is run: called directly, or as a task of a scheduler."""

    def __call__(self, name: str, fn: Callable[[], T], /) -> T:
        """Run `fn` under this name."""
        ...


def build_graph(plan: GraphPlan, store: GraphStore, staging: Path, steps: Steps) -> BuildRecord:
    """Build the plan's graph in `store` unless it is there already; returns the build record.

    `staging` keeps finished stages until the graph is written; it is safe to delete (work is then repeated). A
    process that finds another one at the same graph waits for it.
    """
    key = plan.build_key
    stage = Staging(staging / key)
    with stage.exclusive():
        present = _existing_record(store)
        if present is None or present.get("build_key") != key:
            present = _build(plan, key, store, stage, steps)
        stage.clear()  # also what a build left that was killed between its last write and its end
    return present


def _existing_record(store: GraphStore) -> BuildRecord | None:
    """The record of the graph in the store; a damaged graph is removed, with a notice, to be built again."""
    try:
        return cast("BuildRecord | None", store.record())
    except DamagedGraphError as error:
        notice(f"{str(error).partition(' Build it again')[0]} It is built again")
        store.drop()
        return None


def _build(plan: GraphPlan, key: str, store: GraphStore, stage: Staging, steps: Steps) -> BuildRecord:
    if not plan.passages:
        raise InputError("the corpus has no passages: nothing to build a graph from")
    begun = time.perf_counter()
    chunks = chunk_passages(plan.passages, plan.settings.max_tokens)
    tagger = Tagger((chunk.content for chunk in chunks), plan.language)
    vectors = steps("embed", lambda: plan.embedder.embed([chunk.content for chunk in chunks]))
    extracted = steps("extract", lambda: _extracted(plan, chunks, tagger, stage))
    similar = steps("similar", lambda: similar_stages(plan.settings, chunks, vectors, tagger, stage))
    tables = BuiltTables(chunks, vectors, extracted, similar, plan.embedder)
    record = _record(plan, key, _content(tables, stage, extracted.sums() + similar.sums()), time.perf_counter() - begun)
    (search,) = similar.parts(SEARCH)
    record["similar"] = {str(name): value for name, value in search.to_dict("records")[0].items()}
    gaps: dict[str, str] = {}
    for part in extracted.parts(GAPS):
        gaps.update(zip(part["what"], part["reason"], strict=True))
    if gaps:
        record["gaps"] = gaps
    steps("write", lambda: store.write(tables, record))
    return record


def _extracted(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger, stage: Staging) -> Stage | Stages:
    if plan.settings.extractor == "rules" and len(chunks) > BLOCK:
        return extract_in_blocks(chunks, tagger, stage, processes=usable_processors())
    return stage.load_or_compute("extract", lambda: extract(plan, chunks, tagger))


def _content(tables: Tables, stage: Staging, sums: str) -> Content:
    """The content of tables from stages with these `sums`; kept, since of a large graph it takes minutes."""
    name = f"{CONTENT}-{hashlib.sha256(sums.encode()).hexdigest()[:12]}"

    def computed() -> list[Part]:
        held = content(tables)
        columns = {"fingerprint": held.fingerprint, "nodes": json.dumps(held.nodes), "edges": json.dumps(held.edges)}
        return [(CONTENT, pd.DataFrame([columns]))]

    (table,) = stage.load_or_compute(name, computed).parts(CONTENT)
    row = table.iloc[0]
    return Content(row["fingerprint"], json.loads(row["nodes"]), json.loads(row["edges"]))


def _record(plan: GraphPlan, key: str, held: Content, seconds: float) -> BuildRecord:
    return {
        "build_key": key,
        "dataset": plan.name,
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": held.fingerprint,
        "nodes": held.nodes,
        "edges": held.edges,
        "settings": asdict(plan.settings) | {"language": plan.language.code},
        "embedder": plan.embedder.name,
        "build_seconds": round(seconds, 3),
    }
