"""Which files of a folder are documents: every one below it, each once, however links lead."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import unreadable

ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".txt": "plain",
    ".text": "plain",
    ".rst": "plain",
}
"""Ending of a file's name → who reads it."""

_ASSETS = frozenset(
    """.png .jpg .jpeg .gif .svg .webp .ico .bmp .css .js .mjs .map .woff .woff2 .ttf .otf .eot .mp4 .webm .mp3 .wav
    .lock .jsonl .json .yaml .yml .toml .tsv .csv .parquet""".split()
)
_OWN = frozenset({"qrels"})  # a folder of judgements, beside the documents


@dataclass(slots=True)
class Found:
    """The documents below a folder: path as ids name it → file; what was left out with the reason; endings not read."""

    documents: dict[str, Path] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)


def holds_documents(folder: Path) -> bool:
    """Whether any document stands below the folder; looks no further than the first."""
    return any(_ending(Path(entry.path)) in ENDINGS for entry, _ in _entries(folder, folder.resolve(), Found()))


def find_documents(folder: Path) -> Found:
    """All documents below `folder` in the order of their paths.

    Names that begin with a dot are passed over. A link counts where it leads to something inside the folder, once; one
    that leads elsewhere is left out, as files of others could be meant by it.

    Raises
    ------
    InputError
        When the folder itself cannot be listed.
    """
    found = Found()
    real = folder.resolve()
    seen: set[tuple[int, int]] = set()
    for entry, name in _entries(folder, real, found):
        path = Path(entry.path)
        ending = _ending(path)
        if ending not in ENDINGS:
            if ending not in _ASSETS:
                found.other[ending or "no ending"] += 1
            continue
        status = entry.stat()
        if (status.st_dev, status.st_ino) not in seen or not entry.is_symlink():
            seen.add((status.st_dev, status.st_ino))
            _add(name, path, found)
    found.documents = dict(sorted(found.documents.items()))
    return found


def _add(name: str, path: Path, found: Found) -> None:
    from hopbench.eval.benchmarks.documents.names import document_id, fault_of

    if fault := fault_of(name):
        found.left_out.append(f"{name.encode(errors='backslashreplace').decode()!r}: {fault}")
    elif (key := document_id(name)) in found.documents:
        found.left_out.append(f"{name}: another file's name differs only in how its accents are written: rename one")
    else:
        found.documents[key] = path


def _ending(path: Path) -> str:
    return path.suffix.lower()


def _entries(folder: Path, real: Path, found: Found) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Files below the folder with their paths in it, those of links last; each real folder is entered once."""
    entered = {_identity(real)}
    waiting = [(folder, "")]
    links: list[tuple[os.DirEntry[str], str]] = []
    while waiting or links:
        if not waiting:
            entry, name = links.pop(0)
            if entry.is_file():
                yield entry, name
            elif entry.is_dir() and (key := _identity(Path(entry.path))) not in entered:
                entered.add(key)
                waiting.append((Path(entry.path), f"{name}/"))
            continue
        place, prefix = waiting.pop()
        for entry in _listed(place, prefix, found):
            name = prefix + entry.name
            if entry.name.startswith(".") or (not prefix and entry.name in _OWN):
                continue
            if entry.is_symlink():
                if _inside(entry, name, real, found):
                    links.append((entry, name))
            elif entry.is_dir(follow_symlinks=False):
                entered.add(_identity(Path(entry.path)))
                waiting.append((Path(entry.path), f"{name}/"))
            elif entry.is_file(follow_symlinks=False):
                yield entry, name
            elif _ending(Path(name)) in ENDINGS:
                found.left_out.append(f"{name}: is no ordinary file: write what it should give into a file")


def _listed(place: Path, prefix: str, found: Found) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise unreadable(str(place), error) from error
        found.left_out.append(f"{prefix} cannot be listed ({error.strerror}): allow it, or move it out of the folder")
        return []


def _inside(entry: os.DirEntry[str], name: str, real: Path, found: Found) -> bool:
    """Whether a link leads to something in the folder; else why it is left out, if it could be a document."""
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):
        found.left_out.append(f"{name}: is a link that leads nowhere, or in a circle: remove it")
        return False
    if target.is_relative_to(real):
        return True
    if target.is_dir() or _ending(Path(name)) in ENDINGS:
        found.left_out.append(f"{name}: is a link out of the folder: copy what it leads to into the folder")
    return False


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): check what it is and who may read it") from error
    return status.st_dev, status.st_ino
