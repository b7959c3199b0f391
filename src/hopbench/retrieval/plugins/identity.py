"""How plug-ins enter the identity of trials, graphs and caches."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TypedDict

from hopbench.retrieval.plugins.code import PluginCode

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
