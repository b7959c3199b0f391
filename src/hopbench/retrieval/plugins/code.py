"""The code of plug-ins: the distributions behind them, their versions, and digests of their files.

A trial's name holds what `plugin_code` finds, so that a plug-in that was changed and installed again is another one,
however its author counts versions. Files are read as they are, not as the installer recorded them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distribution, packages_distributions
from pathlib import Path
from typing import Any

from hopbench.retrieval.plugins.files import Found, plugin_files

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
