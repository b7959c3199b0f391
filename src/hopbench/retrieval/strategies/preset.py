"""Tuned presets: of our strategies beside this module, of a plug-in's in the folder `presets` beside its module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.strategies.naming import field_named
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import parse_yaml

REMEDY = "write it as `hopbench sweep` does, with `parameters` and `provenance.tuned_on`"


@dataclass(frozen=True)
class Preset:
    """Tuned parameters and how they were found (data digests, trials, objective, sweep file)."""

    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]


def preset_of(strategy: type[Strategy]) -> Preset | None:
    """The tuned preset that travels with a strategy, if there is one.

    Raises InputError for a file that states no parameters, or not on what they were tuned: a tuned label must know the
    questions that chose its numbers.
    """
    file = _file(strategy)
    if file is None or not file.is_file():
        return None
    what = f"preset {file.name} of {strategy.name}"
    content = parse_yaml(file.read_text(encoding="utf-8"), what)
    stated = content if isinstance(content, dict) else {}
    parameters, provenance = stated.get("parameters"), stated.get("provenance")
    if not isinstance(parameters, dict) or not isinstance(provenance, dict):
        raise InputError(f"{what} lacks parameters or provenance: {REMEDY}")
    if not isinstance(provenance.get("tuned_on"), dict) or not provenance["tuned_on"]:
        raise InputError(f"{what} does not say on which data sets it was tuned: {REMEDY}")
    for name in parameters:
        field_named(strategy, name)
    return Preset(parameters, provenance)


def _file(strategy: type[Strategy]) -> Traversable | None:
    module = strategy.__module__
    if module.startswith("hopbench.retrieval.strategies."):
        return files("hopbench.retrieval.strategies") / "presets" / f"{strategy.name}.yaml"
    package = module.rpartition(".")[0]
    if package not in sys.modules:  # a module of no package has no folder of its own
        return None
    return files(package) / "presets" / f"{strategy.name}.yaml"
