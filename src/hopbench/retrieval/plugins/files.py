"""Which files are a plug-in's: those its installer recorded, or its source folder where it is installed editable."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

_RECORDS = (".dist-info", ".egg-info")
_PROJECT = ("hopbench",)  # ours has a digest of its own


class Found(Protocol):
    """A file on disk, or in a zip archive."""

    def read_bytes(self) -> bytes: ...  # noqa: D102


def plugin_files(owner: Distribution | None, modules: Sequence[str]) -> Mapping[str, Found]:
    """The files of a distribution, and of `modules` where its record does not list them, by name from their root.

    What an installer writes for itself is left out, and bytecode: equal code has equal names and contents wherever and
    however it is installed. An editable installation records only a `.pth` file: there the packages of the modules
    count, and whatever these import from the same source folder.
    """
    files = dict(_recorded(owner)) if owner is not None else {}
    recorded = {place.resolve() for place in files.values() if isinstance(place, Path)}
    loose: list[tuple[Path, str]] = []
    for module in modules:
        place = _file_of(module)
        if place is None:
            continue
        root, top = _root(module, place)
        if place.resolve() in recorded:  # also what was put beside the recorded files by hand
            files |= {name: path for name, path in _inside(root, top) if path.suffix == ".py" and name not in files}
        else:
            loose.append((root, top))
    return {**files, **_sources(loose, _project(owner))}


def _recorded(owner: Distribution) -> Iterator[tuple[str, Found]]:
    for record in owner.files or ():
        first = record.parts[0]
        ours = first == ".." or first.endswith((*_RECORDS, ".pth", ".egg-link")) or first.startswith("__editable__")
        if not ours and "__pycache__" not in record.parts:
            yield record.as_posix(), owner.locate_file(record)  # type: ignore[misc]  # a Path, or a zipfile.Path


def _file_of(module: str) -> Path | None:
    """The source of a module; nothing for `__main__` of a prompt, or for one in a zip archive."""
    name = getattr(sys.modules.get(module), "__file__", None)
    return Path(name) if name and Path(name).is_file() else None


def _root(module: str, place: Path) -> tuple[Path, str]:
    """The folder that imports begin in, and the part of it that is the module's package, or its file."""
    parts = module.split(".")
    if len(parts) == 1 and place.name != "__init__.py":
        return place.parent, place.name
    within = parts if place.name == "__init__.py" else parts[:-1]
    root = place.parents[len(within)]
    for depth in range(1, len(within)):  # a namespace is shared with others: its first real package is meant
        if (root.joinpath(*within[:depth]) / "__init__.py").is_file():
            return root, "/".join(within[:depth])
    return root, "/".join(within)


def _sources(begun: Iterable[tuple[Path, str]], project: Path | None) -> dict[str, Path]:
    """The files of these packages, and of what they import from their own root or the same project."""
    places = _places([root for root, _ in begun], project)
    sources: dict[str, Path] = {}
    left, seen = list(begun), set()
    while left:
        root, top = left.pop()
        if (root, top) in seen:
            continue
        seen.add((root, top))
        for name, path in _inside(root, top):
            sources[name] = path
            if path.suffix == ".py":
                wanted = {one for one in _imports(path) if one not in _PROJECT}
                left += [(place, part) for place in places for part in _parts(place, wanted)]
    return sources


def _places(roots: Iterable[Path], project: Path | None) -> list[Path]:
    """Where a project's own modules are imported from: no folder that it shares with installed distributions."""
    own = [] if project is None else [Path(name) for name in sys.path if name and Path(name).is_relative_to(project)]
    return [place for place in dict.fromkeys([*roots, *own]) if not any(place.glob("*.dist-info"))]


def _parts(root: Path, names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names):
        if (root / name).is_dir():
            yield name
        if (root / f"{name}.py").is_file():
            yield f"{name}.py"


def _inside(root: Path, top: str) -> Iterator[tuple[str, Path]]:
    """A file, or all files below a folder that are no bytecode and not hidden."""
    start = root / top
    for path in [start] if start.is_file() else sorted(start.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and "__pycache__" not in parts and not any(part.startswith(".") for part in parts):
            yield "/".join(parts), path


def _imports(source: Path) -> set[str]:
    """The first names of all absolute imports in a file, those inside functions too."""
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return set()  # its bytes are in the digest whatever they say
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level and node.module)
    tops = {name.partition(".")[0] for name in (*names, *(str(node.module) for node in froms))}
    return tops - sys.stdlib_module_names


def _project(owner: Distribution | None) -> Path | None:
    """The source folder of an editable installation."""
    try:
        origin = json.loads((owner.read_text("direct_url.json") if owner is not None else None) or "{}")
        editable = origin.get("dir_info", {}).get("editable")
        return Path(url2pathname(urlsplit(origin["url"]).path)) if editable else None
    except (OSError, ValueError, KeyError, AttributeError):
        return None
