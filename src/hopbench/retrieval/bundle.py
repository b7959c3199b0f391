"""A retriever in a folder: corpus, vectors, graph and settings of one strategy, to be opened without anything else.

`hopbench.json` names the strategy with its parameters, the embedder, and the SHA-256 of every file, itself included.
What is opened answers as what was exported: a sample of questions is asked both before the folder gets its name.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.retrieval.chunking import chunk_passages
from hopbench.retrieval.embedding import get_embedder
from hopbench.retrieval.embedding.stored import RecordingEmbedder, load_vectors, save_vectors
from hopbench.retrieval.graph.stores.contents import copy_graph
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.index import Index
from hopbench.retrieval.manifest import AGAIN, MANIFEST, SCHEMA, Manifest, read_manifest, write_manifest
from hopbench.retrieval.plugins.code import code_of
from hopbench.retrieval.plugins.identity import settings_of
from hopbench.retrieval.retriever import Retriever
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.registry import registry, remade
from hopbench.retrieval.strategies.reranked import Reranked
from hopbench.retrieval.support.checksum import file_sum
from hopbench.retrieval.support.errors import InputError, StoreError, UnknownNameError
from hopbench.retrieval.types import Passage, Source

if TYPE_CHECKING:
    import pandas as pd

PASSAGES = "passages.parquet"
GRAPH, VECTORS, FILES = "graph", "vectors", "files"
COLUMNS = ("id", "title", "text", "page_number", "document_id", "document_name")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What is to be exported: a retriever over an index, and where its parts come from.

    `embedder` is the spec by which the model is opened again (`wordllama`), `max_tokens` the length from which passages
    are split, `sample` questions that must be answered alike before and after.
    """

    retriever: Retriever
    passages: Sequence[Passage]
    embedder: str
    max_tokens: int
    dataset: str
    sample: Sequence[str]


def write_bundle(exported: Exported, folder: Path) -> Path:
    """Write the retriever into `folder`, whole or not at all, and return it.

    A link is followed: what it leads to is written. Raises InputError where something else is there or it cannot be
    written, StoreError where the folder would not answer as the retriever does.
    """
    place, folder = folder, folder.resolve()
    if folder.exists() and not (folder / MANIFEST).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{place} is there and holds no exported retriever: name another --out")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
            made = Path(temporary) / "bundle"
            _write(exported, made)
            _check(exported, made)
            if folder.exists():
                folder.rename(Path(temporary) / "before")
            made.rename(folder)
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror or error}: choose another --out") from error
    return place


def _write(exported: Exported, folder: Path) -> None:
    retriever = exported.retriever
    for part in (GRAPH, VECTORS, FILES):
        (folder / part).mkdir(parents=True)
    _passage_table(exported.passages).to_parquet(folder / PASSAGES, index=False)
    index = retriever.index
    recorder = RecordingEmbedder(index.embedder)
    store = KgliteStore(folder / GRAPH, index.store.namespace)
    copied = copy_graph(index.store, store, recorder)
    again = Retriever(Index.build(index.chunks, store, recorder), retriever.strategy, retriever.label)
    again.batch(exported.sample)
    asked = set(exported.sample)
    save_vectors(folder / VECTORS, index.embedder, [text for text in recorder.texts if text not in asked])
    strategy = _with_files(retriever, folder / FILES)
    manifest = {
        "schema": SCHEMA,
        "hopbench": version("hopbench"),
        "label": retriever.label,
        "strategy": {"name": strategy.name, "parameters": strategy.spec(), "identity": retriever.strategy.identity()},
        "plugins": _plugins(retriever.strategy),
        "embedder": {"spec": exported.embedder, "name": index.embedder.name},
        "max_tokens": exported.max_tokens,
        "dataset": exported.dataset,
        "graph": {"namespace": store.namespace, "fingerprint": copied.fingerprint},
        "passages": len(exported.passages),
        "files": {name: file_sum(folder / name) for name in _files(folder)},
    }
    write_manifest(folder, manifest)


def _with_files(retriever: Retriever, folder: Path) -> Any:
    """The strategy with the files that its parameters name copied into `folder`, and named from the bundle."""
    return _copied(retriever.strategy, folder)


def _copied(strategy: Any, folder: Path) -> Any:
    if isinstance(strategy, Reranked):
        return replace(strategy, base=_copied(strategy.base, folder))
    changes: dict[str, str] = {}
    for name in strategy.fitted_fields:
        value = getattr(strategy, name)
        if isinstance(value, str) and value:
            file = Path(value)
            shutil.copyfile(file, folder / file.name)
            changes[name] = f"{FILES}/{file.name}"
    return replace(strategy, **changes) if changes else strategy


def _check(exported: Exported, folder: Path) -> None:
    """Ask the written retriever the sample: every passage and score must be as before."""
    before, after = exported.retriever.batch(exported.sample), read_bundle(folder).batch(exported.sample)
    for one, other in zip(before, after, strict=True):
        if [(p.id, p.score) for p in one] != [(p.id, p.score) for p in other]:
            raise StoreError(
                f"the exported retriever answers {one.question!r} with {other.ids} instead of {one.ids}: "
                "export it again; if that repeats, the embedder does not give the same vectors twice"
            )


def read_bundle(folder: Path) -> Retriever:
    """The retriever that `write_bundle` wrote.

    Raises InputError where the folder holds none, a file is missing or damaged, or this installation would rank
    otherwise (another strategy, other shipped weights, another version of the embedder).
    """
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
    passages = _passages(folder / PASSAGES)
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
    """Version and digest of the plug-ins that rank, by distribution."""
    return settings_of(code for kind in strategy.implementations() for code in code_of(kind)).get("plugins", {})


def _other_version(manifest: Manifest) -> str:
    return f"it was exported by hopbench {manifest.hopbench}, this is {version('hopbench')}: export it again"


def _passage_table(passages: Sequence[Passage]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        (p.id, p.title, p.text, json.dumps(p.source.page_number), p.source.document_id, p.source.document_name)
        for p in passages
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _passages(file: Path) -> list[Passage]:
    import pandas as pd

    rows = pd.read_parquet(file).to_dict("split")["data"]
    return [
        Passage(name, title, text, Source(json.loads(page), document_id, document_name))
        for name, title, text, page, document_id, document_name in rows
    ]


def _files(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
