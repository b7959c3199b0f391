"""A sweep file: which strategies with which parameters on which data sets, and the trials that it stands for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from eval.benchmarks import benchmark_names
from eval.metrics import PRIMARY, all_metrics
from retrieval.errors import HopBenchError, InputError, UnknownNameError
from retrieval.strategies.base import Strategy
from retrieval.strategies.registry import label_of, make

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


@dataclass(frozen=True)
class Candidate:
    """A configuration to try on every data set.

    `label` is what `run` makes the same strategy from. An ablation has the label of the configuration it changes, `of`,
    and `without` names the edge types it removes. `varied` are the values that the grid gave it.
    """

    strategy: Strategy
    label: str
    varied: Mapping[str, Scalar] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    of: Strategy | None = None


@dataclass(frozen=True)
class SweepPlan:
    """A validated sweep: `candidates` are in the file's order, each once; `named` are the fields that the file sets."""

    file: Path
    content: SweepFile
    datasets: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    named: frozenset[str]

    @property
    def trials(self) -> int:
        """A trial is a candidate on a data set."""
        return len(self.candidates) * len(self.datasets)

    @property
    def preset(self) -> Path | None:
        """Where the best parameters go, if anywhere."""
        wanted = self.content.write_preset
        return None if wanted is None else (self.file.parent / _expanded(wanted, self.file)).resolve()


def read_sweep(file: Path) -> SweepPlan:
    """Parse and check a sweep file. Raises InputError with the file, the field, the value and the remedy."""
    content = _parsed(file)
    candidates: list[Candidate] = []
    for entry in content.strategy:
        try:
            candidates += _expand(entry, content.ablations)
        except HopBenchError as error:
            raise InputError(f"{file}: {error}") from error
    datasets = tuple(dict.fromkeys(_dataset(name, file) for name in content.datasets))
    named = frozenset(name for entry in content.strategy for name in (*entry.base, *entry.grid))
    return SweepPlan(file, content, datasets, tuple(_distinct(candidates)), named)


def _parsed(file: Path) -> SweepFile:
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
    allowed = f"; it takes {', '.join(SweepFile.model_fields)}" if details["type"] == "extra_forbidden" else ""
    return f"{'.'.join(where) or 'the file'}: {details['msg'].removeprefix('Value error, ')}{given}{allowed}"


def _expand(entry: Entry, ablations: bool) -> list[Candidate]:
    """Every combination of an entry's grid, each followed by its ablations."""
    start = make(entry.strategy)
    kind, name = type(start), start.name
    both = sorted(set(entry.base) & set(entry.grid))
    if both:
        raise InputError(f"{name}: {', '.join(both)} stands in base and in grid: leave it in one of them")
    for parameter in (*entry.base, *entry.grid):
        if parameter not in kind.parameters():
            raise UnknownNameError(f"parameter of {name}", parameter, kind.parameters())
    found = []
    for values in product(*entry.grid.values()):
        varied = dict(zip(entry.grid, values, strict=True))
        whole = _made(kind, {**start.spec(), **entry.base, **varied})
        label = label_of(entry.strategy, None, {one: str(value) for one, value in {**entry.base, **varied}.items()})
        found.append(Candidate(whole, label, varied))
        if ablations:
            found += [Candidate(less, label, varied, edges, whole) for less, edges in ablated(whole).items()]
    return found


def ablated(whole: Strategy) -> dict[Strategy, tuple[str, ...]]:
    """The strategy without each of its edge types: variant → the types it lacks.

    Types that can only go together make one variant; the strategy itself is the variant without a type it does not use.
    """
    found: dict[Strategy, tuple[str, ...]] = {}
    for edge, changes in whole.ablations.items():
        less = replace(whole, **changes)
        found[less] = (*found.get(less, ()), edge)
    return found


def _made(kind: type[Strategy], parameters: Mapping[str, Any]) -> Strategy:
    """The strategy; a whole number for a real parameter counts as that real, so that 1 and 1.0 are one trial."""
    real = {spec.name for spec in fields(kind) if isinstance(spec.default, float)}
    values: dict[str, Any] = {n: float(v) if n in real and type(v) is int else v for n, v in parameters.items()}
    return kind(**values)


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each configuration once; one that is an ablation of another as well counts as what the file asks for."""
    wanted = {candidate.strategy for candidate in candidates if candidate.of is None}
    first: dict[Strategy, Candidate] = {}
    for candidate in candidates:
        if candidate.of is None or candidate.strategy not in wanted:
            first.setdefault(candidate.strategy, candidate)
    return list(first.values())


def _dataset(name: str, file: Path) -> str:
    """A shipped name or a Hub name as it is, a path resolved against the file."""
    expanded = _expanded(name, file)
    if expanded in benchmark_names():
        return expanded
    path = file.parent / expanded
    if path.exists():
        return str(path.resolve())
    if expanded.startswith((".", "/", "~")):
        raise InputError(f"{file}: datasets: {name!r} is not there (looked at {path.resolve()}): correct the path")
    return expanded


def _expanded(text: str, file: Path) -> str:
    """`${NAME}` and `${NAME:-default}` replaced as a shell does."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match["name"]) or match["default"]
        if found is None:
            raise InputError(f"{file}: {text!r}: the environment variable {match['name']} is not set: set it")
        return found

    return _VARIABLE.sub(value, text)
