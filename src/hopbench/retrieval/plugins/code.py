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
from typing import Any, TypedDict
from urllib.parse import urlsplit
from urllib.request import url2pathname

_RECORDS = (".dist-info", ".egg-info")
_OURS = __name__.partition(".")[0]


def plugin_files(owner: Distribution | None, modules: Sequence[str]) -> Mapping[str, Any]:
    """The files of a distribution, and of `modules` where its record does not list them, by name from their root.

    What an installer writes for itself is left out, and bytecode: equal code has equal names and contents wherever and
    however it is installed. An editable installation records only a `.pth` file: there the packages of the modules
    count, and whatever these import from the same source folder. A file is a Path, or a zipfile.Path.
    """
    files: dict[str, Any] = {}
    for record in (owner.files or ()) if owner is not None else ():
        first = record.parts[0]
        own = first == ".." or first.endswith((*_RECORDS, ".pth", ".egg-link")) or first.startswith("__editable__")
        if not own and "__pycache__" not in record.parts:
            files[record.as_posix()] = record.locate()
    recorded = {place.resolve() for place in files.values() if isinstance(place, Path)}
    loose: list[tuple[Path, str]] = []
    for module in modules:
        source = getattr(sys.modules.get(module), "__file__", None)
        place = Path(source or "")
        if not place.is_file():  # `__main__` of a prompt, or a module in a zip archive
            continue
        root, top = _root(module, place)
        if place.resolve() in recorded:  # also what was put beside the recorded files by hand
            files |= {name: path for name, path in _inside(root, top) if path.suffix == ".py" and name not in files}
        else:
            loose.append((root, top))
    return {**files, **_sources(loose, _project(owner))}


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
    # Where a project's own modules are imported from: no folder that it shares with installed distributions.
    own = [] if project is None else [Path(name) for name in sys.path if name and Path(name).is_relative_to(project)]
    roots = dict.fromkeys([*(root for root, _ in begun), *own])
    places = [place for place in roots if not any(place.glob("*.dist-info"))]
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
                names = sorted(_imports(path) - {_OURS})  # which has a digest of its own
                left += [(place, name) for place in places for name in names if (place / name).is_dir()]
                files = [f"{name}.py" for name in names]
                left += [(place, name) for place in places for name in files if (place / name).is_file()]
    return sources


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
    kinds = offer.__mro__ if isinstance(offer, type) else (offer, *type(offer).__mro__)
    named = [getattr(kind, "__module__", None) or "" for kind in kinds] + ([] if point is None else [point.module])
    tops = {module: module.partition(".")[0] for module in named if module}
    groups: dict[str, tuple[Distribution | None, list[str]]] = {}
    for module, top in tops.items():
        if top == _OURS or top in sys.stdlib_module_names:
            continue
        if point is not None and point.dist is not None and top == tops[point.module]:
            owner: Distribution | None = point.dist
        else:
            names = packages_distributions().get(top)
            owner = distribution(names[0]) if names else None
        groups.setdefault(owner.name if owner else top, (owner, []))[1].append(module)
    if not groups:
        return ()
    if point is not None and point.dist is not None:
        groups.setdefault(point.dist.name, (point.dist, []))
    code = tuple(_code(name, *groups[name]) for name in sorted(groups))
    if isinstance(offer, type):
        _CODE[offer] = code
    return code


def _code(name: str, owner: Distribution | None, modules: Sequence[str]) -> PluginCode:
    digests: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for file, place in sorted(plugin_files(owner, modules).items()):
        if isinstance(place, Path) and place.exists() and not place.is_file():  # a pipe would be waited for
            digests[file], unreadable[file] = "unreadable", "it is no regular file"
            continue
        try:
            digests[file] = hashlib.sha256(place.read_bytes()).hexdigest()[:DIGITS]
        except FileNotFoundError:
            digests[file] = "missing"
        except OSError as error:
            digests[file], unreadable[file] = "unreadable", error.strerror or str(error)
    if not digests:  # typed at a prompt, or made by other code
        unreadable["its source"] = "no file holds it"
    return PluginCode(name, owner.version if owner is not None else "", digests, unreadable)


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
