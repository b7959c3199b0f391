"""Reading a sweep file: YAML, checked, with its paths and variables resolved."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hopbench.eval.benchmarks import benchmark_names
from hopbench.eval.sweep.entry import BuildValues, Entry
from hopbench.eval.sweep.model import Halving, Objective, SweepFile
from hopbench.eval.sweep.values import Range, Section
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.yaml_file import read_yaml

_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


def read_file(file: Path, flags: Mapping[str, object] | None = None) -> SweepFile:
    """Parse and check a sweep file by itself; `flags` take the place of its fields of the same names.

    Raises InputError with the file, each field and what was given.
    """
    raw = read_yaml(file)
    if isinstance(raw, dict):
        raw |= flags or {}
    try:
        return SweepFile.model_validate(raw)
    except ValidationError as error:
        single = isinstance(raw, dict) and isinstance(raw.get("strategy"), str)
        problems = [_problem(details, single) for details in error.errors(include_url=False)]
        raise InputError(f"{file}: " + "; ".join(dict.fromkeys(problems))) from error


def _problem(details: Mapping[str, Any], single: bool) -> str:
    where = [str(part) for part in details["loc"] if part not in {"bool", "int", "float", "str"}]
    if single and where[:2] == ["strategy", "0"]:
        where = where[2:]
    given = "" if isinstance(details["input"], dict) else f" (given: {details['input']!r})"
    sections: dict[str, type[Section]] = {
        "strategy": Entry,
        "objective": Objective,
        "build": BuildValues,
        "halving": Halving,
        "space": Range,
    }
    section = sections.get(where[0], SweepFile) if len(where) > 1 else SweepFile
    allowed = f"; it takes {', '.join(section.model_fields)}" if details["type"] == "extra_forbidden" else ""
    return f"{'.'.join(where) or 'the file'}: {details['msg'].removeprefix('Value error, ')}{given}{allowed}"


def dataset_of(name: str, file: Path, field: str = "datasets") -> str:
    """A shipped name or a Hub name as it is, a path resolved against the file; `field` names it in errors."""
    expanded = expanded_path(name, file, field)
    if expanded in benchmark_names():
        return expanded
    path = file.parent / expanded
    if path.exists():
        return str(path.resolve())
    if expanded.startswith((".", "/", "~")):
        raise InputError(f"{file}: {field}: {name!r} is not there (looked at {path.resolve()}): correct the path")
    return expanded


def expanded_path(text: str, file: Path, field: str) -> str:
    """`${NAME}` and `${NAME:-default}` replaced as a shell does; `field` is named in errors."""

    def value(match: re.Match[str]) -> str:
        expanded = os.environ.get(match["name"]) or match["default"]
        if expanded is None:
            raise InputError(f"{file}: {field}: {text!r}: the environment variable {match['name']} is not set: set it")
        return expanded

    return _VARIABLE.sub(value, text)
