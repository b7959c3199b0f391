"""A retriever in a folder: corpus, vectors, graph and settings of one strategy, to be opened without anything else."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from reprlib import Repr
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.embedding.cache import RecordingEmbedder, load_vectors, save_vectors
from hopbench.retrieval.embedding.factory import get_embedder
from hopbench.retrieval.graph.stores.contents import copy_graph
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.index import Index
from hopbench.retrieval.plugins.code import code_of, settings_of
from hopbench.retrieval.retriever import Retriever
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.registry import registry, remade
from hopbench.retrieval.strategies.reranker import Reranked
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import InputError, StoreError, UnknownNameError
from hopbench.retrieval.support.input_files import read_bytes
from hopbench.retrieval.types import Passage, Source

PASSAGES = "passages.parquet"
GRAPH, VECTORS, FILES = "graph", "vectors", "files"
COLUMNS = ("id", "title", "text", "page_number", "document_id", "document_name")


def write_bundle(
    folder: Path,
    retriever: Retriever,
    passages: Sequence[Passage],
    sample: Sequence[str],
    *,
    embedder: str,
    max_tokens: int,
    dataset: str,
) -> Path:
    """Write a retriever into `folder`, whole or not at all, and return it.

    Args:
        folder: a link is followed: what it leads to is written.
        retriever: what is exported, over these passages.
        passages: those of the retriever's index.
        sample: questions that must be answered alike before and after.
        embedder: the spec by which the model is opened again (`wordllama`).
        max_tokens: the length from which passages are split.
        dataset: the data set's name.

    Raises:
        InputError: where something else is there or it cannot be written.
        StoreError: where the folder would not answer as the retriever does.
    """
    place, folder = folder, folder.resolve()
    if folder.exists() and not (folder / MANIFEST).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{place} is there and holds no exported retriever: name another --out")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
            made = Path(temporary) / "bundle"
            manifest = _write_parts(made, retriever, passages, sample)
            manifest["embedder"] = {"spec": embedder, "name": retriever.index.embedder.name}
            write_manifest(made, {**manifest, "max_tokens": max_tokens, "dataset": dataset})
            for one, other in zip(retriever.batch(sample), read_bundle(made).batch(sample), strict=True):
                if [(p.id, p.score) for p in one] != [(p.id, p.score) for p in other]:
                    raise StoreError(
                        f"the exported retriever answers {one.question!r} with {other.ids} instead of {one.ids}: "
                        "export it again; if that repeats, the embedder does not give the same vectors twice"
                    )
            if folder.exists():
                folder.rename(Path(temporary) / "before")
            made.rename(folder)
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror or error}: choose another --out") from error
    return place


def _write_parts(
    folder: Path, retriever: Retriever, passages: Sequence[Passage], sample: Sequence[str]
) -> dict[str, Any]:
    import pandas as pd

    for part in (GRAPH, VECTORS, FILES):
        (folder / part).mkdir(parents=True)
    rows = [
        (p.id, p.title, p.text, json.dumps(p.source.page_number), p.source.document_id, p.source.document_name)
        for p in passages
    ]
    pd.DataFrame(rows, columns=list(COLUMNS)).to_parquet(folder / PASSAGES, index=False)
    index = retriever.index
    recorder = RecordingEmbedder(index.embedder)
    store = KgliteStore(folder / GRAPH, index.store.namespace)
    copied, _ = copy_graph(index.store, store, recorder)
    again = Retriever(Index.build(index.chunks, store, recorder), retriever.strategy, retriever.label)
    again.batch(sample)
    sampled = set(sample)
    save_vectors(folder / VECTORS, index.embedder, [text for text in recorder.texts if text not in sampled])
    strategy = _with_files(retriever.strategy, folder / FILES)
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return {
        "schema": SCHEMA,
        "hopbench": version("hopbench"),
        "label": retriever.label,
        "strategy": {"name": strategy.name, "parameters": strategy.spec(), "identity": retriever.strategy.identity()},
        "plugins": _plugins(retriever.strategy),
        "graph": {"namespace": store.namespace, "fingerprint": copied["fingerprint"]},
        "passages": len(passages),
        "files": {name: file_sum(folder / name) for name in files},
    }


def _with_files(strategy: Any, folder: Path) -> Any:
    """The strategy with the files that its parameters name copied into `folder`, and named from the bundle."""
    if isinstance(strategy, Reranked):
        return replace(strategy, base=_with_files(strategy.base, folder))
    changes: dict[str, str] = {}
    for name in strategy.fitted_fields:
        value = getattr(strategy, name)
        if isinstance(value, str) and value:
            file = Path(value)
            shutil.copyfile(file, folder / file.name)
            changes[name] = f"{FILES}/{file.name}"
    return replace(strategy, **changes) if changes else strategy


def read_bundle(folder: Path) -> Retriever:
    """The retriever that `write_bundle` wrote.

    Raises InputError where the folder holds none, a file is missing or damaged, or this installation would rank
    otherwise (another strategy, other shipped weights, another version of the embedder).
    """
    import pandas as pd

    manifest = read_manifest(folder)
    for name, digest in manifest.files.items():
        file = folder / name
        if not file.is_file() or file_sum(file) != digest:
            state = "is damaged" if file.is_file() else "is missing"
            raise InputError(f"{file} {state}: {AGAIN}")
    strategy = _strategy(manifest, folder)
    embedder = get_embedder(manifest.embedder.spec)
    if embedder.name != manifest.embedder.name:
        raise InputError(
            f"{folder} was exported with the embedder {manifest.embedder.name}, here is {embedder.name}: "
            f"install hopbench {manifest.hopbench} with its pinned packages, or export it again"
        )
    rows = pd.read_parquet(folder / PASSAGES).to_dict("split")["data"]
    passages = [
        Passage(name, title, text, Source(json.loads(page), *document)) for name, title, text, page, *document in rows
    ]
    if len(passages) != manifest.passages:
        raise InputError(
            f"{folder / MANIFEST}: passages = {manifest.passages}, {PASSAGES} has {len(passages)}: {AGAIN}"
        )
    chunks = chunk_passages(passages, manifest.max_tokens)
    store = KgliteStore(folder / GRAPH, manifest.graph.namespace)
    record = store.record()
    if record is None or record.get("fingerprint", manifest.graph.fingerprint) != manifest.graph.fingerprint:
        raise InputError(f"{folder / GRAPH} does not hold the graph {manifest.graph.namespace} of {MANIFEST}: {AGAIN}")
    index = Index.build(chunks, store, load_vectors(folder / VECTORS, embedder))
    return Retriever(index, strategy, manifest.label)


def _strategy(manifest: Manifest, folder: Path) -> Any:
    """The strategy with its parameters, refused where it is not the one that was exported."""
    entry = manifest.strategy
    kind = registry().get(Label.of_any(entry.name).name)
    parameters = dict(entry.parameters)
    for name in kind.fitted_fields:
        if str(parameters.get(name, "")).startswith(f"{FILES}/"):
            parameters[name] = str(folder / parameters[name])
    try:
        strategy = remade(entry.name, parameters)
    except UnknownNameError as error:
        raise InputError(f"{folder}: {error} Here is another version: {_other_version(manifest)}") from error
    if (here := _plugins(strategy)) != (there := manifest.plugins):
        raise InputError(
            f"{folder} was exported with the plug-ins {there or 'none'}, here are {here or 'none'}: install the "
            "same, or export it again"
        )
    if json.loads(json.dumps(strategy.identity())) != entry.identity:
        raise InputError(f"{folder}: {entry.name} has other learned numbers here: {_other_version(manifest)}")
    return strategy


def _plugins(strategy: Strategy) -> dict[str, str]:
    return settings_of(code for kind in strategy.implementations() for code in code_of(kind)).get("plugins", {})


def _other_version(manifest: Manifest) -> str:
    return f"it was exported by hopbench {manifest.hopbench}, this is {version('hopbench')}: export it again"


SCHEMA = "hopbench.retriever/1"
SUM = "sha256"
MANIFEST = "hopbench.json"
MAX_MANIFEST = 10_000_000  # bytes
AGAIN = "export the retriever again (hopbench export)"
_shown = Repr()
_shown.maxstring = _shown.maxother = 100


class StrategyPart(BaseModel, strict=True, frozen=True):
    """The strategy: by which name and parameters it is made again, and its identity, which must then be the same."""

    name: str = Field(min_length=1, description="a label, such as pagerank")
    parameters: dict[str, Any] = Field(description="an object with the strategy's parameters")
    identity: Any = Field(description="the strategy's identity")


class EmbedderPart(BaseModel, strict=True, frozen=True):
    """The embedder: the spec by which it is opened, and the name that it must then have."""

    spec: str = Field(min_length=1, description="an embedder, such as wordllama")
    name: str = Field(min_length=1, description="the embedder's name with its version")


class GraphPart(BaseModel, strict=True, frozen=True):
    """The graph: its name in the folder, and the digest of what it holds."""

    namespace: str = Field(pattern=r"^[^/\\\x00]+$", description="the name of the graph's file without its ending")
    fingerprint: str = Field(pattern="^[0-9a-f]{64}$", description="a SHA-256 in hexadecimal")


class Manifest(BaseModel, strict=True, frozen=True):
    """What an exported folder holds, and what must be the same where it is opened."""

    hopbench: str = Field(min_length=1, description="the version of hopbench that exported it")
    label: str = Field(min_length=1, description="the retriever's label")
    strategy: StrategyPart = Field(description="an object with name, parameters and identity")
    plugins: dict[str, str] = Field(default={}, description="an object with plug-ins' packages and their versions")
    embedder: EmbedderPart = Field(description="an object with spec and name")
    max_tokens: int = Field(ge=1, le=1_000_000, description="a whole number, 1..1,000,000")
    dataset: str = Field(description="the data set's name")
    graph: GraphPart = Field(description="an object with namespace and fingerprint")
    passages: int = Field(ge=0, description="a whole number, 0 or more")
    files: dict[str, str] = Field(description="an object with the SHA-256 of each file")


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write `hopbench.json` with the checksum of its content, by which a reader knows that it is whole."""
    text = json.dumps({**manifest, SUM: _sum(manifest)}, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder. Raises InputError with the file, each field, its value and what is wanted."""
    file = folder / MANIFEST
    if not file.is_file():
        raise InputError(f"{file} does not exist: name a folder that hopbench export wrote")
    try:
        content: Mapping[str, Any] = json.loads(read_bytes(file, MAX_MANIFEST))
        schema = content["schema"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{file} is damaged ({error}): {AGAIN}") from error
    if schema != SCHEMA:
        raise InputError(f"{file}: schema {_shown.repr(schema)}, this version reads {SCHEMA!r}: {AGAIN}")
    if content.get(SUM) != _sum(content):
        raise InputError(f"{file} is not as it was written: its checksum does not fit: {AGAIN}")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{file}: {'; '.join(map(_problem, error.errors(include_url=False)))}: {AGAIN}") from error


def _problem(problem: Mapping[str, Any]) -> str:
    """A field, its value, and what is wanted: the description of the innermost declared field that holds the place."""
    model: Any = Manifest
    wanted = ""
    for part in problem["loc"]:
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            break
        wanted, model = str(field.description), field.annotation
    given = "is missing" if problem["type"] == "missing" else f"= {_shown.repr(problem['input'])}"
    return f"{'.'.join(map(str, problem['loc']))} {given}, {wanted} is wanted"


def _sum(manifest: Mapping[str, Any]) -> str:
    content = {name: value for name, value in manifest.items() if name != SUM}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
