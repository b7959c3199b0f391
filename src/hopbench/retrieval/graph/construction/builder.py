"""Builds a graph in stages whose results are saved, so that an interrupted build resumes where it stopped.

Stages: embed (saved by the embedding cache), extract, similar, of documents also links (tables saved part by part by
`staging`), write (the store shows a complete graph or none; Neo4j resumes an interrupted write). Tables are written and
read part by part; none is in memory as a whole but links. The plan's build key is a digest of all inputs; the
fingerprint is a digest of the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar, cast

import pandas as pd

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.graph.construction.documents import LINK_COUNTS, document_tables
from hopbench.retrieval.graph.construction.extraction import GAPS, extract_in_blocks, extractors
from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.graph.construction.similarity import SEARCH, similar_stages
from hopbench.retrieval.graph.construction.staging import Stage, Staging
from hopbench.retrieval.graph.extract.rules import CHUNKS_PER_BLOCK
from hopbench.retrieval.graph.schema import (
    CHUNK,
    COLUMNS,
    CONTAINS,
    DOCUMENT,
    ENTITY,
    TableParts,
    VectorPart,
    document_id,
)
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.contents import content
from hopbench.retrieval.search.candidates import blocks
from hopbench.retrieval.support.errors import DamagedGraphError, InputError
from hopbench.retrieval.support.locking import exclusive_and_gone
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.processes import usable_processors
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

CHUNKS_PER_PART = 100_000
T = TypeVar("T")


class BuildRecord(TypedDict):
    """The inputs and results of a build, stored beside the graph.

    `settings` are those of `BuildSettings`. `similar` is the method of the nearest-chunk search and its recall on a
    sample (`similarity.nearest`). `gaps` are the passages or pairs of names that a model could not read or decide, with
    the reason. `links` counts the hyperlinks of documents by where they lead. `joined` reports which
    relationships of an external graph were merged or left out.
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
    links: NotRequired[Mapping[str, int]]


class Steps(Protocol):
    """Runs a stage: directly, or as a task of a scheduler."""

    def __call__(self, name: str, fn: Callable[[], T], /) -> T:
        """Run `fn` under this name."""
        ...


def build_graph(plan: GraphPlan, store: GraphStore, staging: Path, steps: Steps) -> BuildRecord:
    """Build the plan's graph in `store` unless it is there already; returns the build record.

    `staging` holds finished stages until the graph is written; it is safe to delete (work is then repeated). If another
    process is building the same graph, this one waits for it. A damaged graph is removed with a warning, and rebuilt.
    """
    stages = Staging(staging / plan.build_key)
    staging.mkdir(parents=True, exist_ok=True)
    with exclusive_and_gone(staging / f"{plan.build_key}.lock"):
        try:
            present = cast("BuildRecord | None", store.record())
        except DamagedGraphError as error:
            notice(f"{str(error).partition(' Build it again')[0]} It is built again")
            store.drop()
            present = None
        if present is None or present.get("build_key") != plan.build_key:
            present = _build(plan, store, stages, steps)
        stages.forget()  # also the leftovers of a build that was killed just before its end
    return present


def _build(plan: GraphPlan, store: GraphStore, staging: Staging, steps: Steps) -> BuildRecord:
    if not plan.passages:
        raise InputError("the corpus has no passages: nothing to build a graph from")
    started = time.perf_counter()
    chunks = chunk_passages(plan.passages, plan.settings.max_tokens)
    tagger = Tagger((chunk.content for chunk in chunks), plan.language)

    def extracted() -> Stage:
        extractor = plan.settings.extractor
        if extractor == "rules" and len(chunks) > CHUNKS_PER_BLOCK:
            return extract_in_blocks(chunks, tagger, staging, processes=usable_processors())
        return staging.load_or_compute("extract", lambda: extractors().get(extractor)(plan, chunks, tagger))

    vectors = steps("embed", lambda: plan.embedder.embed([chunk.content for chunk in chunks]))
    staged = steps("extract", extracted)
    staged += steps("similar", lambda: similar_stages(plan.settings, chunks, vectors, tagger, staging))
    if plan.structure:
        linked = partial(document_tables, plan.passages, chunks, tagger)
        staged += steps("links", lambda: staging.load_or_compute("links", linked))
    tables = TableParts(
        lambda name: _chunk_parts(name, chunks) if name in (DOCUMENT, CHUNK, CONTAINS) else staged.parts(name),
        partial(_vector_parts, chunks, vectors, staged, plan.embedder),
    )
    held = content(tables)
    (search,) = staged.parts(SEARCH)
    record: BuildRecord = {
        "build_key": plan.build_key,
        "dataset": plan.name,
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": held["fingerprint"],
        "nodes": held["nodes"],
        "edges": held["edges"],
        "settings": asdict(plan.settings) | {"language": plan.language.code},
        "embedder": plan.embedder.name,
        "build_seconds": round(time.perf_counter() - started, 3),
        "similar": {str(name): value for name, value in search.to_dict("records")[0].items()},
    }
    for counted in staged.parts(LINK_COUNTS):
        record["links"] = {str(name): int(value) for name, value in counted.to_dict("records")[0].items()}
    if gaps := {what: reason for part in staged.parts(GAPS) for what, reason in part.to_numpy().tolist()}:
        record["gaps"] = gaps
    steps("write", lambda: store.write(tables, record))
    return record


def _chunk_parts(name: str, chunks: Sequence[Chunk]) -> Iterator[pd.DataFrame]:
    seen: set[str] = set()
    for part in blocks(len(chunks), CHUNKS_PER_PART):
        some, rows = chunks[part], list[tuple[object, ...]]()
        if name == CHUNK:
            rows += [(chunk.id, chunk.passage_id, chunk.index, chunk.content) for chunk in some]
        elif name == CONTAINS:
            rows += [(document_id(chunk.passage_id), chunk.id) for chunk in some]
        else:
            titles = {chunk.passage_id: chunk.title for chunk in some if chunk.passage_id not in seen}
            seen |= titles.keys()
            rows += [(document_id(passage), title) for passage, title in titles.items()]
        yield pd.DataFrame(rows, columns=list(COLUMNS[name]))


def _vector_parts(chunks: Sequence[Chunk], vectors: Vectors, staged: Stage, embedder: Embedder) -> Iterator[VectorPart]:
    """The vectors (n, d) of chunks, and those of names, embedded as they are read: there are more names than chunks."""
    for part in blocks(len(chunks), CHUNKS_PER_PART):
        yield CHUNK, [chunk.id for chunk in chunks[part]], vectors[part]
    for table in staged.parts(ENTITY):
        yield ENTITY, table["id"].tolist(), embedder.embed(table["name"].tolist())
