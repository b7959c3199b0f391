"""Which code computed a result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.metrics import metric_code
from hopbench.retrieval.plugins.code import PluginCode, PluginSettings, code_of, settings_of, unreadable_lines

if TYPE_CHECKING:
    from hopbench.retrieval.strategies.base import Strategy

_ROOT = Path(__file__).resolve().parents[2]


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
def code_version(*, weights: bool = True) -> str:
    """The release and a digest of the source that computes rankings and scores, with or without learned weights.

    Weights say without which weights they were learned: else no training could give the bytes of those that ship.
    """
    digest = hashlib.sha256()
    for file in _sources():
        if file.suffix == ".json" and not weights:
            continue
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
    found = (code for kind in strategy.implementations() for code in code_of(kind))
    return tuple({code.distribution: code for code in found}.values())


def plugin_settings(strategy: Strategy, metrics: Iterable[str] = ()) -> PluginSettings:
    """The part of a trial's key that names its plug-ins: those that rank, and those that score every trial.

    `metrics` are names of metrics that score this one too. Empty where all is our own.
    """
    return settings_of([*plugins_of(strategy), *metric_code(metrics)])


def plugin_code(strategies: Iterable[Strategy]) -> dict[str, str]:
    """Version and digest of every plug-in that these strategies use, by distribution."""
    used = (plugin_settings(strategy).get("plugins", {}) for strategy in strategies)
    return dict(sorted({name: code for codes in used for name, code in codes.items()}.items()))


def plugin_warnings(strategies: Iterable[Strategy]) -> list[str]:
    """Warnings about the plug-ins that these strategies use, and those that score every trial."""
    return unreadable_lines([*metric_code(), *(plugin for one in strategies for plugin in plugins_of(one))])
