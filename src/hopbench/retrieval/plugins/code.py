"""The code of plug-ins: the distributions behind them, their versions, and digests of their files.

A trial's id holds what `plugin_code` finds, so that a plug-in that was changed and installed again is another one,
however its author counts versions. Files are read as they are, not as the installer recorded them: those that its
installer recorded, or its source folder where it is installed editable.
"""

from __future__ import annotations

import ast
import hashlib
import json
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distribution, packages_distributions
from pathlib import Path
from typing import Any, Protocol, TypedDict
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


_OURS = __name__.partition(".")[0]
DIGITS = 12
_CODE: dict[type[Any], tuple[PluginCode, ...]] = {}


@dataclass(frozen=True)
class PluginCode:
    """The code of one distribution: each of its files with a digest of its content.

    `unreadable` holds the reason by file: whether such a plug-in has changed cannot be known. A module that belongs to
    no distribution stands for itself, without a version.
    """

    distribution: str
    version: str
    files: Mapping[str, str] = field(repr=False)
    unreadable: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """Of the names and contents of all files."""
        lines = "".join(f"{name}\0{content}\n" for name, content in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]

    @property
    def name(self) -> str:
        """`hopbench-mine 1.0`."""
        return f"{self.distribution} {self.version}".strip()

    def __str__(self) -> str:
        return f"{self.name}+{self.digest}"


def code_of(kind: type[Any]) -> tuple[PluginCode, ...]:
    """As `plugin_code`, read once for each class: when its plug-in was loaded, or else now."""
    if kind not in _CODE:
        _CODE[kind] = plugin_code(kind)
    return _CODE[kind]


def plugin_code(offer: Any, point: EntryPoint | None = None) -> tuple[PluginCode, ...]:
    """The code of every distribution that an object comes from, a class's also by inheritance; nothing for our own.

    `point` is the entry point that offered it.
    """
    modules = [module for module in _modules(offer, point) if not _is_ours(module)]
    if not modules:
        return ()
    code = _by_distribution(modules, point)
    if isinstance(offer, type):
        _CODE[offer] = code
    return code


def _modules(offer: Any, point: EntryPoint | None) -> list[str]:
    kinds = offer.__mro__ if isinstance(offer, type) else (offer, *type(offer).__mro__)
    named = [getattr(kind, "__module__", None) or "" for kind in kinds]
    return [module for module in [*named, point.module if point is not None else ""] if module]


def _by_distribution(modules: Sequence[str], point: EntryPoint | None) -> tuple[PluginCode, ...]:
    offered = point.dist if point is not None else None
    groups: dict[str, tuple[Distribution | None, list[str]]] = {}
    if offered is not None:
        groups[offered.name] = offered, []
    for module in dict.fromkeys(modules):
        owner = _distribution(module, offered, point)
        groups.setdefault(owner.name if owner else module.partition(".")[0], (owner, []))[1].append(module)
    return tuple(_code(name, *groups[name]) for name in sorted(groups))


def _is_ours(module: str) -> bool:
    top = module.partition(".")[0]
    return top == _OURS or top in sys.stdlib_module_names


def _distribution(module: str, offered: Distribution | None, point: EntryPoint | None) -> Distribution | None:
    """The distribution that a module belongs to, if any does."""
    top = module.partition(".")[0]
    if offered is not None and point is not None and top == point.module.partition(".")[0]:
        return offered
    names = packages_distributions().get(top)
    return distribution(names[0]) if names else None


def _code(name: str, owner: Distribution | None, modules: Sequence[str]) -> PluginCode:
    files, unreadable = _digests(plugin_files(owner, modules))
    if not files:  # typed at a prompt, or made by other code
        unreadable["its source"] = "no file holds it"
    return PluginCode(name, owner.version if owner is not None else "", files, unreadable)


def _digests(files: Mapping[str, Found]) -> tuple[dict[str, str], dict[str, str]]:
    """Each file with its digest; the reason by file where there is none."""
    digests: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for name, place in sorted(files.items()):
        try:
            digests[name] = hashlib.sha256(_content(place)).hexdigest()[:DIGITS]
        except FileNotFoundError:
            digests[name] = "missing"
        except OSError as error:
            digests[name] = "unreadable"
            unreadable[name] = error.strerror or str(error)
    return digests, unreadable


def _content(place: Found) -> bytes:
    if isinstance(place, Path) and place.exists() and not place.is_file():  # a pipe would be waited for
        raise OSError("it is no regular file")
    return bytes(place.read_bytes())


def unreadable_lines(codes: Iterable[PluginCode]) -> list[str]:
    """Warnings about plug-ins with unreadable files."""
    lines = (
        f"plug-in {code.name}: {name} cannot be read ({reason}), so whether the plug-in has changed cannot be known: "
        "its trials are done anew each time. Make the file readable, or install the plug-in again"
        for code in codes
        for name, reason in code.unreadable.items()
    )
    return list(dict.fromkeys(lines))


_THIS_PROCESS = secrets.token_hex(8)


class PluginSettings(TypedDict, total=False):
    """The plug-ins of a trial: version and digest by distribution; `process` where a file of theirs is unreadable."""

    plugins: dict[str, str]
    process: str


def settings_of(codes: Iterable[PluginCode]) -> PluginSettings:
    """The part of a trial's key that names its plug-ins; empty without any.

    Where a file of a plug-in cannot be read, this process is part of the key: no later one reuses the trial.
    """
    used = {code.distribution: code for code in codes}
    if not used:
        return {}
    settings: PluginSettings = {"plugins": {name: f"{used[name].version}+{used[name].digest}" for name in sorted(used)}}
    if any(code.unreadable for code in used.values()):
        settings["process"] = _THIS_PROCESS
    return settings


def stamp(codes: Iterable[PluginCode]) -> str:
    """The same in a line, for names that stand in cache keys and build keys: `hopbench-mine 1.0+0f343b0931126a20`."""
    settings = settings_of(codes)
    named = "/".join(f"{name} {code}" for name, code in settings.get("plugins", {}).items())
    return f"{named} process {settings['process']}" if "process" in settings else named
