"""Which code computed a result."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopbench.retrieval.strategies.base import Strategy
    from hopbench.retrieval.strategies.plugins.code import PluginCode

_ROOT = Path(__file__).resolve().parents[2]

_THIS_PROCESS = secrets.token_hex(8)


def _sources() -> list[Path]:
    """The source and learned weights that compute rankings and scores (not reports, flows or docs)."""
    core, metrics = _ROOT / "retrieval", _ROOT / "eval" / "metrics"
    found = [
        *core.rglob("*.py"),
        *core.rglob("weights.json"),
        *metrics.rglob("*.py"),
        _ROOT / "eval" / "trials" / "trial.py",
    ]
    return sorted(found)


@cache
def code_version() -> str:
    """The release and a digest of the source that computes rankings and scores."""
    digest = hashlib.sha256()
    for file in _sources():
        digest.update(file.relative_to(_ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{version('hopbench')}+{digest.hexdigest()[:12]}"


@cache
def source_digests() -> Mapping[str, str]:
    """Each of those files with a digest of its content, so that two versions can be told apart file by file."""
    return {
        file.relative_to(_ROOT).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in _sources()
    }


def plugins_of(strategy: Strategy) -> tuple[PluginCode, ...]:
    """The plug-ins that a strategy comes from; none for our own."""
    from hopbench.retrieval.strategies.registry import registry  # loads scipy

    return registry().code_of(type(strategy))


def plugin_settings(strategy: Strategy) -> dict[str, Any]:
    """What a trial's name says of the plug-ins that it uses, under `plugins`; nothing for our own strategies.

    Where a file of a plug-in cannot be read, no later process takes the trial for its own.
    """
    found = plugins_of(strategy)
    if not found:
        return {}
    named = {one.distribution: f"{one.version}+{one.digest}" for one in found}
    return {"plugins": named, **({"process": _THIS_PROCESS} if any(one.unreadable for one in found) else {})}


def plugin_code(strategies: Iterable[Strategy]) -> dict[str, str]:
    """Version and digest of every plug-in that these strategies use, by distribution."""
    settings = (plugin_settings(strategy).get("plugins", {}) for strategy in strategies)
    return dict(sorted({name: code for found in settings for name, code in found.items()}.items()))


def plugin_warnings(strategies: Iterable[Strategy]) -> list[str]:
    """What a reader should know of the plug-ins that these strategies use."""
    from hopbench.retrieval.strategies.plugins.code import unreadable_lines

    return unreadable_lines(one for strategy in strategies for one in plugins_of(strategy))
