"""The manifest of an exported retriever, `hopbench.json`: its fields, written with a checksum and read back checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import read_bytes

SCHEMA = "hopbench.retriever/1"
SUM = "sha256"
MANIFEST = "hopbench.json"
MAX_MANIFEST = 10_000_000  # bytes
AGAIN = "export the retriever again (hopbench export)"
_shown = Repr()
_shown.maxstring = _shown.maxother = 100


class _Part(BaseModel):
    """A part of a manifest; each field's description says what is wanted."""

    model_config = ConfigDict(strict=True, frozen=True)


class StrategyPart(_Part):
    """The strategy: by which name and parameters it is made again, and its identity, which must then be the same."""

    name: str = Field(min_length=1, description="a label, such as pagerank")
    parameters: dict[str, Any] = Field(description="an object with the strategy's parameters")
    identity: Any = Field(description="the strategy's identity")


class EmbedderPart(_Part):
    """The embedder: the spec by which it is opened, and the name that it must then have."""

    spec: str = Field(min_length=1, description="an embedder, such as wordllama")
    name: str = Field(min_length=1, description="the embedder's name with its version")


class GraphPart(_Part):
    """The graph: its name in the folder, and the digest of what it holds."""

    namespace: str = Field(pattern=r"^[^/\\\x00]+$", description="the name of the graph's file without its ending")
    fingerprint: str = Field(pattern="^[0-9a-f]{64}$", description="a SHA-256 in hexadecimal")


class Manifest(_Part):
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
        raise InputError(f"{file}: {'; '.join(_problems(error))}: {AGAIN}") from error


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        field = ".".join(map(str, problem["loc"]))
        given = "is missing" if problem["type"] == "missing" else f"= {_shown.repr(problem['input'])}"
        yield f"{field} {given}, {_wanted(problem['loc'])} is wanted"


def _wanted(place: tuple[int | str, ...]) -> str:
    """The description of the innermost declared field that holds a place."""
    model: Any = Manifest
    wanted = ""
    for part in place:
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            break
        wanted, model = str(field.description), field.annotation
    return wanted


def _sum(manifest: Mapping[str, Any]) -> str:
    content = {name: value for name, value in manifest.items() if name != SUM}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
