"""Which code computed a result."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from hopbench.retrieval.strategies.base import Strategy
    from hopbench.retrieval.strategies.plugins.code import PluginCode

_ROOT = Path(__file__).resolve().parents[2]

_THIS_PROCESS = secrets.token_hex(8)


def _sources() -> list[Path]:
    """The source and learned weights that compute rankings and scores (not reports, flows or docs)."""
    core, metrics = _ROOT / "retrieval", _ROOT / "eval" / "metrics"
    files = [
        *core.rglob("*.py"),
        *core.rglob("weights.json"),
        *metrics.rglob("*.py"),
        _ROOT / "eval" / "trials" / "trial.py",
    ]
    return sorted(files)


@cache
def code_version() -> str:
    """The release and a digest of the source that computes rankings and scores."""
    digest = hashlib.sha256()
    for file in _sources():
        digest.update(file.relative_to(_ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{version('hopbench')}+{digest.hexdigest()[:12]}"


@cache
def source_digests() -> Mapping[str, str]:
    """Each of those files with a digest of its content, so that two versions can be compared file by file."""
    return {
        file.relative_to(_ROOT).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in _sources()
    }


def plugins_of(strategy: Strategy) -> tuple[PluginCode, ...]:
    """The plug-ins that a strategy comes from; none for our own."""
    from hopbench.retrieval.strategies.registry import registry  # loads scipy

    return registry().code_of(type(strategy))


class PluginSettings(TypedDict, total=False):
    """The plug-ins of a trial: version and digest by distribution; `process` where a file of theirs is unreadable."""

    plugins: dict[str, str]
    process: str


def plugin_settings(strategy: Strategy) -> PluginSettings:
    """The part of a trial's key that names its plug-ins; empty for our own strategies.

    Where a file of a plug-in cannot be read, this process is part of the key: no later one reuses the trial.
    """
    plugins = plugins_of(strategy)
    if not plugins:
        return {}
    settings: PluginSettings = {"plugins": {each.distribution: f"{each.version}+{each.digest}" for each in plugins}}
    if any(each.unreadable for each in plugins):
        settings["process"] = _THIS_PROCESS
    return settings


def plugin_code(strategies: Iterable[Strategy]) -> dict[str, str]:
    """Version and digest of every plug-in that these strategies use, by distribution."""
    used = (plugin_settings(strategy).get("plugins", {}) for strategy in strategies)
    return dict(sorted({name: code for codes in used for name, code in codes.items()}.items()))


def plugin_warnings(strategies: Iterable[Strategy]) -> list[str]:
    """Warnings about the plug-ins that these strategies use."""
    from hopbench.retrieval.strategies.plugins.code import unreadable_lines

    return unreadable_lines(plugin for strategy in strategies for plugin in plugins_of(strategy))
