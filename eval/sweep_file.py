"""A sweep file: its fields, and what is refused in it before anything runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from eval.benchmarks import benchmark_names
from eval.metrics import PRIMARY, all_metrics
from retrieval.errors import InputError, UnknownNameError

Scalar = bool | int | float | str
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Objective(_Section):
    """What the best trial has most of: `metric`, then `also`, each a mean over the data sets."""

    metric: str = PRIMARY
    also: str = "recall@5"

    @field_validator("metric", "also")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in all_metrics("ranking"):
            raise ValueError(str(UnknownNameError("metric", name, all_metrics("ranking"))))
        return name


class Entry(_Section):
    """A strategy with the values that its trials take: `base` for all of them, every combination of `grid`.

    `strategy` is a label as `run` takes it (`NAME`, `NAME:tuned`); fields that are neither in base nor in grid keep its
    values.
    """

    strategy: str
    base: dict[str, Scalar] = Field(default_factory=dict)
    grid: dict[str, list[Scalar]] = Field(default_factory=dict)

    @field_validator("grid")
    @classmethod
    def _filled(cls, grid: dict[str, list[Scalar]]) -> dict[str, list[Scalar]]:
        if empty := [name for name, values in grid.items() if not values]:
            raise ValueError(f"no values for {', '.join(empty)}: list at least one")
        return grid


class SweepFile(_Section):
    """The content of a sweep file. Relative paths are resolved against it; `datasets` takes shipped names too."""

    datasets: list[str] = Field(min_length=1)
    strategy: list[Entry] = Field(min_length=1)
    ablations: bool = False
    objective: Objective = Objective()
    questions: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    embedder: str = "wordllama"
    extractor: str = "rules"
    llm: str | None = None
    write_preset: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _single(cls, content: Any) -> Any:
        """`strategy: NAME` with `base` and `grid` beside it is a list of one entry."""
        if not isinstance(content, dict) or not isinstance(content.get("strategy"), str):
            return content
        entry = {name: content[name] for name in ("strategy", "base", "grid") if name in content}
        return {**{k: v for k, v in content.items() if k not in entry}, "strategy": [entry]}

    @model_validator(mode="after")
    def _one_winner(self) -> SweepFile:
        if self.write_preset is not None and len({entry.strategy.partition(":")[0] for entry in self.strategy}) > 1:
            raise ValueError("write_preset: a preset belongs to one strategy: list only one")
        return self


def read_file(file: Path) -> SweepFile:
    """Parse and check a sweep file by itself. Raises InputError with the file, each field and what was given."""
    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{file}: cannot be read as YAML: {error}") from error
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
    sections: dict[str, type[_Section]] = {"strategy": Entry, "objective": Objective}
    section = sections.get(where[0], SweepFile) if len(where) > 1 else SweepFile
    allowed = f"; it takes {', '.join(section.model_fields)}" if details["type"] == "extra_forbidden" else ""
    return f"{'.'.join(where) or 'the file'}: {details['msg'].removeprefix('Value error, ')}{given}{allowed}"


def dataset_of(name: str, file: Path) -> str:
    """A shipped name or a Hub name as it is, a path resolved against the file."""
    expanded = expanded_path(name, file)
    if expanded in benchmark_names():
        return expanded
    path = file.parent / expanded
    if path.exists():
        return str(path.resolve())
    if expanded.startswith((".", "/", "~")):
        raise InputError(f"{file}: datasets: {name!r} is not there (looked at {path.resolve()}): correct the path")
    return expanded


def expanded_path(text: str, file: Path) -> str:
    """`${NAME}` and `${NAME:-default}` replaced as a shell does."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match["name"]) or match["default"]
        if found is None:
            raise InputError(f"{file}: {text!r}: the environment variable {match['name']} is not set: set it")
        return found

    return _VARIABLE.sub(value, text)
