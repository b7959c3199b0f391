"""Builds a graph in stages whose results are saved, so that an interrupted build resumes where it stopped.

Stages: embed (saved by the embedding cache), extract, similar (tables saved part by part by `staging`), write (the
store shows a complete graph or none; `arrays` and Neo4j resume an interrupted write). Tables are written and read part
by part; none is in memory as a whole. The plan's build key is a digest of all inputs; the fingerprint is a digest of
the result.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar, cast

import pandas as pd

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.embedding.base import Embedder, Vectors
from hopbench.retrieval.graph.construction.extraction import GAPS, extract, extract_in_blocks
from hopbench.retrieval.graph.construction.plan import GraphPlan
from hopbench.retrieval.graph.construction.similarity import SEARCH, similar_stages
from hopbench.retrieval.graph.construction.staging import Part, Stage, Stages, Staging
from hopbench.retrieval.graph.extract.rules import CHUNKS_PER_BLOCK
from hopbench.retrieval.graph.schema import (
    CHUNK,
    CONTAINS,
    DOCUMENT,
    EDGE_COLUMNS,
    ENTITY,
    NODE_COLUMNS,
    SIMILAR_TO,
    Tables,
    VectorPart,
    document_id,
)
from hopbench.retrieval.graph.stores.base import GraphStore
from hopbench.retrieval.graph.stores.contents import Content, content
from hopbench.retrieval.support.errors import DamagedGraphError, InputError
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.processes import usable_processors
from hopbench.retrieval.text import Tagger
from hopbench.retrieval.types import Chunk

CHUNKS_PER_PART = 100_000


@dataclass(frozen=True)
class BuiltTables:
    """The graph being built: chunks with vectors (n, d), and the tables of the extract and similar stages.

    Names are embedded only when their vectors are read: a large graph has more names than chunks.
    """

    chunks: Sequence[Chunk]
    vectors: Vectors
    extracted: Stage | Stages
    similar: Stages
    embedder: Embedder

    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `schema.Tables`."""
        return list(NODE_COLUMNS), list(EDGE_COLUMNS)

    def parts(self, name: str) -> Iterator[pd.DataFrame]:
        """See `schema.Tables`."""
        if name == DOCUMENT:
            return self._documents()
        if name == CHUNK:
            return self._chunk_rows(
                NODE_COLUMNS[CHUNK], lambda chunk: (chunk.id, chunk.passage_id, chunk.index, chunk.content)
            )
        if name == CONTAINS:
            return self._chunk_rows(EDGE_COLUMNS[CONTAINS], lambda chunk: (document_id(chunk.passage_id), chunk.id))
        return self._stage_of(name).parts(name)

    def vector_parts(self) -> Iterator[VectorPart]:
        """See `schema.Tables`."""
        for part in self._blocks():
            yield CHUNK, [chunk.id for chunk in self.chunks[part]], self.vectors[part]
        for table in self.extracted.parts(ENTITY):
            yield ENTITY, table["id"].tolist(), self.embedder.embed(table["name"].tolist())

    def _stage_of(self, name: str) -> Stage | Stages:
        return self.similar if name == SIMILAR_TO else self.extracted

    def _blocks(self) -> Iterator[slice]:
        return (slice(begin, begin + CHUNKS_PER_PART) for begin in range(0, len(self.chunks), CHUNKS_PER_PART))

    def _chunk_rows(self, columns: Sequence[str], row: Callable[[Chunk], tuple[object, ...]]) -> Iterator[pd.DataFrame]:
        for part in self._blocks():
            yield pd.DataFrame([row(chunk) for chunk in self.chunks[part]], columns=list(columns))

    def _documents(self) -> Iterator[pd.DataFrame]:
        seen: set[str] = set()
        for part in self._blocks():
            first = {chunk.passage_id: chunk.title for chunk in self.chunks[part] if chunk.passage_id not in seen}
            seen |= first.keys()
            rows = [(document_id(passage), title) for passage, title in first.items()]
            yield pd.DataFrame(rows, columns=list(NODE_COLUMNS[DOCUMENT]))


CONTENT = "content"  # the stage with the digest of the others, and its table
T = TypeVar("T")


class BuildRecord(TypedDict):
    """The inputs and results of a build, stored beside the graph.

    `settings` are those of `BuildSettings`. `similar` is the method of the nearest-chunk search and its recall on a
    sample (`similarity.Nearest`). `gaps` are the passages or pairs of names that a model could not read or decide, with
    the reason. `joined` reports which relationships of an external graph were merged or left out.
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
    """Runs a stage: directly, or as a task of a scheduler."""

    def __call__(self, name: str, fn: Callable[[], T], /) -> T:
        """Run `fn` under this name."""
        ...


def build_graph(plan: GraphPlan, store: GraphStore, staging: Path, steps: Steps) -> BuildRecord:
    """Build the plan's graph in `store` unless it is there already; returns the build record.

    `staging` holds finished stages until the graph is written; it is safe to delete (work is then repeated). If another
    process is building the same graph, this one waits for it.
    """
    key = plan.build_key
    stages = Staging(staging / key)
    with stages.exclusive():
        present = _existing_record(store)
        if present is None or present.get("build_key") != key:
            present = _build(plan, key, store, stages, steps)
        stages.clear()  # also the leftovers of a build that was killed just before its end
    return present


def _existing_record(store: GraphStore) -> BuildRecord | None:
    """The record of the graph in the store; a damaged graph is removed with a warning, and rebuilt."""
    try:
        return cast("BuildRecord | None", store.record())
    except DamagedGraphError as error:
        notice(f"{str(error).partition(' Build it again')[0]} It is built again")
        store.drop()
        return None


def _build(plan: GraphPlan, key: str, store: GraphStore, stages: Staging, steps: Steps) -> BuildRecord:
    if not plan.passages:
        raise InputError("the corpus has no passages: nothing to build a graph from")
    started = time.perf_counter()
    chunks = chunk_passages(plan.passages, plan.settings.max_tokens)
    tagger = Tagger((chunk.content for chunk in chunks), plan.language)
    vectors = steps("embed", lambda: plan.embedder.embed([chunk.content for chunk in chunks]))
    extracted = steps("extract", lambda: _extracted(plan, chunks, tagger, stages))
    similar = steps("similar", lambda: similar_stages(plan.settings, chunks, vectors, tagger, stages))
    tables = BuiltTables(chunks, vectors, extracted, similar, plan.embedder)
    record = _record(
        plan, key, _content(tables, stages, extracted.sums() + similar.sums()), time.perf_counter() - started
    )
    (search,) = similar.parts(SEARCH)
    record["similar"] = {str(name): value for name, value in search.to_dict("records")[0].items()}
    gaps: dict[str, str] = {}
    for part in extracted.parts(GAPS):
        gaps.update(zip(part["what"], part["reason"], strict=True))
    if gaps:
        record["gaps"] = gaps
    steps("write", lambda: store.write(tables, record))
    return record


def _extracted(plan: GraphPlan, chunks: Sequence[Chunk], tagger: Tagger, stages: Staging) -> Stage | Stages:
    if plan.settings.extractor == "rules" and len(chunks) > CHUNKS_PER_BLOCK:
        return extract_in_blocks(chunks, tagger, stages, processes=usable_processors())
    return stages.load_or_compute("extract", lambda: extract(plan, chunks, tagger))


def _content(tables: Tables, stages: Staging, sums: str) -> Content:
    """The content of tables from stages with these `sums`; cached as a stage, since a large graph takes minutes."""
    name = f"{CONTENT}-{hashlib.sha256(sums.encode()).hexdigest()[:12]}"

    def computed() -> list[Part]:
        result = content(tables)
        columns = {
            "fingerprint": result.fingerprint,
            "nodes": json.dumps(result.nodes),
            "edges": json.dumps(result.edges),
        }
        return [(CONTENT, pd.DataFrame([columns]))]

    (table,) = stages.load_or_compute(name, computed).parts(CONTENT)
    row = table.iloc[0]
    return Content(row["fingerprint"], json.loads(row["nodes"]), json.loads(row["edges"]))


def _record(plan: GraphPlan, key: str, result: Content, seconds: float) -> BuildRecord:
    return {
        "build_key": key,
        "dataset": plan.name,
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": result.fingerprint,
        "nodes": result.nodes,
        "edges": result.edges,
        "settings": asdict(plan.settings) | {"language": plan.language.code},
        "embedder": plan.embedder.name,
        "build_seconds": round(seconds, 3),
    }
