"""Declare and read a sweep file: its fields, what is refused in them, and its paths and variables resolved."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from hopbench.eval.benchmarks import benchmark_names
from hopbench.eval.metrics import PRIMARY, get_metric, requested_metrics
from hopbench.eval.sweep.fields import MAX_LISTED, OBJECTIVES, BuildValues, Entry, ModelFields, Range, Section
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.input_files import read_yaml

COSTS = (
    "latency_ms_p50",
    "latency_ms_p95",
    "tokens",
    "context_tokens",
    "llm_calls",
    "round_trips",
    "edges_touched",
    "seconds",
)
SHORT_FORM = ("base", "grid", "space", "when")
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


class Objective(Section):
    """What the best trial has most of: `metric`, then `also`, each a mean over the data sets."""

    metric: str = Field(default=PRIMARY, description="the metric by which the winner is the best")
    also: str = Field(default="recall@5", description="the metric that decides between equal ones")

    @field_validator("metric", "also")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            if name not in OBJECTIVES:
                requested_metrics([name])
        except InputError as error:
            raise ValueError(str(error)) from error
        return name

    @property
    def asked(self) -> tuple[str, ...]:
        """The objective's metrics that are measured only on request, such as `recall@7`."""
        return requested_metrics((self.metric, self.also))


class Halving(Section):
    """Successive halving (Jamieson and Talwalkar, 2016): all on few questions, the best 1/factor on more, and so on."""

    questions: int = Field(ge=1, description="questions of each data set in the first round")
    factor: int = Field(default=3, ge=2, description="1/factor of the configurations go on")


class SweepFile(ModelFields):
    """The content of a sweep file. Relative paths are resolved against it; `datasets` takes shipped names too."""

    datasets: list[str] = Field(min_length=1, description="folders, shipped names or Hub names to score trials on")
    strategy: list[Entry] = Field(min_length=1, description="the strategies that compete, each with what it varies")
    build: BuildValues = Field(default=BuildValues(), description="build settings to try: each combination a graph")
    search: Literal["grid", "random", "ofat", "bayesian"] = Field(
        default="grid",
        description="every combination; `trials` random ones; one factor at a time from base; or Optuna's TPE",
    )
    trials: int | None = Field(
        default=None, ge=1, le=MAX_LISTED, description="configurations of a random or Bayesian search"
    )
    ablations: bool = Field(default=False, description="also each configuration without each of its edge types")
    objective: Objective = Field(default=Objective(), description="what the winner has most of")
    constraints: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default_factory=dict, description=f"cost: the most that the winner may have of it; costs: {', '.join(COSTS)}"
    )
    latency: bool = Field(default=False, description="measure the latency of single calls in every trial")
    ragas: bool = Field(default=True, description="RAGAS's id-based and non-LLM metrics too")
    halving: Halving | None = Field(default=None, description="drop hopeless configurations on few questions")
    questions: int | None = Field(default=None, ge=1, description="a seeded subset of each data set's questions")
    seed: int = Field(default=0, ge=0, description="seed of subsets, random draws and resampling")
    seeds: list[Annotated[int, Field(ge=0)]] = Field(
        default_factory=list, description="several seeds of the subset in place of one; the objective is their mean"
    )
    repeats: int = Field(default=1, ge=1, le=100, description="how often each trial is done, to steady its latency")
    report_on: str | None = Field(default=None, description="a data set on which the winner is scored once, at the end")
    embedder: str = Field(default="wordllama", description="the embedder, unless build varies it")
    extractor: str = Field(default="rules", description="the extractor, unless build varies it")
    store: str = Field(default="kglite", description="where graphs are kept: kglite, arrays or neo4j")
    min_grade: int = Field(default=1, ge=1, description="the lowest grade of judgements that counts as gold")
    strict: bool = Field(default=False, description="refuse gold passages that the corpus lacks")
    write_preset: str | None = Field(default=None, description="file for the winner's parameters with provenance")

    @model_validator(mode="before")
    @classmethod
    def _single(cls, content: Any) -> Any:
        """`strategy: NAME` with `base`, `grid`, `space` and `when` is short for a list of one entry."""
        if not isinstance(content, dict) or not isinstance(content.get("strategy"), str):
            return content
        entry = {name: content[name] for name in ("strategy", *SHORT_FORM) if name in content}
        return {**{k: v for k, v in content.items() if k not in entry}, "strategy": [entry]}

    @field_validator("constraints")
    @classmethod
    def _costs(cls, constraints: dict[str, float]) -> dict[str, float]:
        for name in constraints:
            if name not in COSTS:
                raise ValueError(str(UnknownNameError("cost", name, COSTS)))
        return constraints

    @model_validator(mode="after")
    def _one_winner(self) -> SweepFile:
        if self.write_preset is not None and len({Label.of_any(entry.strategy).name for entry in self.strategy}) > 1:
            raise ValueError("write_preset: a preset belongs to one strategy: list only one")
        return self

    @model_validator(mode="after")
    def _measured(self) -> SweepFile:
        for name in (self.objective.metric, self.objective.also):
            self.refuse_unmeasured(get_metric(name), self.ragas)
        return self

    @model_validator(mode="after")
    def _possible(self) -> SweepFile:
        drawn = self.search in {"random", "bayesian"}
        if drawn != (self.trials is not None):
            wanted = "say how many configurations to try" if drawn else "leave it out: the values decide their number"
            raise ValueError(f"trials: {wanted} (search: {self.search})")
        if self.halving is not None and (self.search == "bayesian" or self.ablations):
            raise ValueError(
                "halving: goes with grid, random and ofat, and without ablations: it compares what it drops"
            )
        if self.ablations and self.search == "bayesian":
            raise ValueError(
                "ablations: would be configurations to learn from: ablate the winner in a sweep of its own"
            )
        if self.halving is not None and self.questions is not None and self.halving.questions >= self.questions:
            raise ValueError(f"halving.questions: {self.halving.questions} leaves no round below {self.questions}")
        return self

    @property
    def all_seeds(self) -> list[int]:
        """The seeds of the questions' subsets, each once."""
        return list(dict.fromkeys(self.seeds)) or [self.seed]

    @property
    def timed(self) -> bool:
        """Whether trials measure the latency of single calls."""
        return self.latency or any(name.startswith("latency") for name in self.constraints)


def schema() -> dict[str, Any]:
    """Make the JSON Schema of a sweep file, including the short form for one strategy."""
    document = SweepFile.model_json_schema()
    fields, entry = document["properties"], document["$defs"]["Entry"]["properties"]
    name = {"type": "string", "description": "one strategy; its base, grid, space and when then stand beside it"}
    fields["strategy"] = {"anyOf": [name, fields["strategy"]]}
    fields |= {name: entry[name] for name in SHORT_FORM}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "A HopBench sweep"}


def read_file(file: Path, flags: Mapping[str, object] | None = None) -> SweepFile:
    """Parse and check a sweep file by itself; `flags` replace its fields of the same names.

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
    """Resolve a data set: names as they are, paths against the file; `field` names it in errors."""
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
    """Replace `${NAME}` and `${NAME:-default}` as a shell does; `field` is named in errors."""

    def value(match: re.Match[str]) -> str:
        expanded = os.environ.get(match["name"]) or match["default"]
        if expanded is None:
            raise InputError(f"{file}: {field}: {text!r}: the environment variable {match['name']} is not set: set it")
        return expanded

    return _VARIABLE.sub(value, text)
