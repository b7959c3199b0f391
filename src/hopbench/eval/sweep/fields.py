"""The parts of a sweep file: sections, ranges of numbers, entries, and the fields about language models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hopbench.eval.answering.judge.sample import INPUTS
from hopbench.eval.answering.reading import applicable, finalists_named
from hopbench.eval.metrics import Metric, all_metrics
from hopbench.retrieval.graph.construction.plan import build_numbers
from hopbench.retrieval.llm.endpoint import Asked, asked_of
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.parameters import by_field
from hopbench.retrieval.strategies.registry import canonical_label, registry
from hopbench.retrieval.support.errors import HopBenchError, InputError, UnknownNameError

Scalar = bool | int | float | str
MAX_VALUES = 10_000
MAX_LISTED = 10_000
"""Configurations of a sweep: more would take days, and minutes only to list."""
MAX_TRIALS = 100_000
LARGEST = 1e15
OBJECTIVES = [name for name, metric in all_metrics().items() if metric.group in ("ranking", "ragas", "answer", "judge")]


class Section(BaseModel):
    """A part of a sweep file: its fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Range(Section):
    """Values from `low` to `high`: every `step`-th one, or (random and Bayesian search) any of them."""

    low: int | float
    high: int | float
    step: int | float | None = Field(default=None, gt=0, description="distance of the values; needed by grid and ofat")
    log: bool = Field(default=False, description="small values are as likely as large ones: drawn by their logarithm")

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if not all(-LARGEST <= value <= LARGEST for value in (self.low, self.high)):  # NaN is not
            raise ValueError(f"low and high are numbers from {-LARGEST:g} to {LARGEST:g}")
        if self.low >= self.high:
            raise ValueError(f"low {self.low} is not below high {self.high}")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("log: needs a low above 0, and no step")
        if self.step is not None and self.step > self.high - self.low:
            raise ValueError(f"step {self.step} is above high - low ({self.high} - {self.low}): choose a smaller one")
        if self.step is not None and (self.high - self.low) / self.step > MAX_VALUES:
            raise ValueError(f"step {self.step} makes over {MAX_VALUES:,} values: choose a larger one, or none")
        return self

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        return all(type(value) is int for value in (self.low, self.high, self.step) if value is not None)

    def real(self) -> Range:
        """The same range for a parameter of real numbers: without a step, 0 to 1 includes all values between."""
        ends = {"low": float(self.low), "high": float(self.high)}
        return self if self.step is not None else self.model_copy(update=ends)

    def values(self) -> list[int | float]:
        """List every `step`-th value; none without a step."""
        if self.step is None:
            return []
        count = int((self.high - self.low) / self.step + 1e-9) + 1
        steps = [self.low + place * self.step for place in range(count)]
        return [value if self.whole else round(float(value), 9) for value in steps]

    def ends(self) -> tuple[int | float, int | float]:
        """The smallest and the largest value: `low`, and `high` where the steps reach it."""
        return (self.low, self.values()[-1]) if self.step is not None else (self.low, self.high)


class Entry(Section):
    """A strategy with the values that its trials take: `base` for all of them, `grid` and `space` for what varies.

    `strategy` is a label as `run` takes it (`NAME`, `NAME:tuned`); fields that stand nowhere here keep its values. A
    parameter of `when` varies only where the other parameters named there have one of the values listed. Names that the
    source documents have for parameters become the fields' own.
    """

    strategy: str = Field(description="a label as `hopbench run` takes it: NAME or NAME:tuned")
    base: dict[str, Scalar] = Field(default_factory=dict, description="parameter: the value that all trials take")
    grid: dict[str, list[Scalar]] = Field(default_factory=dict, description="parameter: the values to try")
    space: dict[str, Range] = Field(default_factory=dict, description="parameter: the range to try values of")
    when: dict[str, dict[str, list[Scalar] | Scalar]] = Field(
        default_factory=dict, description="parameter: {other parameter: value or values} under which it varies at all"
    )

    @field_validator("grid")
    @classmethod
    def _filled(cls, grid: dict[str, list[Scalar]]) -> dict[str, list[Scalar]]:
        if empty := [name for name, values in grid.items() if not values]:
            raise ValueError(f"no values for {', '.join(empty)}: list at least one")
        if long := [name for name, values in grid.items() if len(values) > MAX_VALUES]:
            raise ValueError(f"{', '.join(long)}: over {MAX_VALUES:,} values, which is the limit: list fewer")
        return grid

    @model_validator(mode="before")
    @classmethod
    def _own_names(cls, entry: Any) -> Any:
        """An entry as it was written, with aliases of parameters replaced; anything else stays as it is."""
        if not isinstance(entry, dict) or not isinstance(entry.get("strategy"), str):
            return entry
        parts = Label.of_any(entry["strategy"])
        if parts.reranker:
            raise ValueError(f"strategy: a sweep varies one strategy: leave out +{parts.reranker}")
        if parts.name not in registry().names():
            return entry
        kind = registry().get(parts.name)

        def own(values: Any) -> Any:
            return by_field(kind, values) if isinstance(values, dict) else values

        try:
            given = {field: own(entry[field]) for field in ("base", "grid", "space", "when") if field in entry}
            if isinstance(given.get("when"), dict):
                given["when"] = {parameter: own(others) for parameter, others in given["when"].items()}
            return {**entry, "strategy": canonical_label(entry["strategy"]), **given}
        except HopBenchError as error:
            raise ValueError(str(error)) from error


def _limits(name: str) -> Any:
    number = build_numbers()[name]
    return Field(ge=number.low, le=number.high)


def _values(name: str) -> Any:
    return Field(default_factory=list, description=build_numbers()[name].help)


class BuildValues(Section):
    """Build settings to try, each combination a graph of its own."""

    embedder: list[str] = Field(default_factory=list, description="as --embedder of run")
    extractor: list[str] = Field(default_factory=list, description="as --extractor of run")
    similar_top_k: list[Annotated[int, _limits("similar_top_k")]] = _values("similar_top_k")
    similar_floor: list[Annotated[float, _limits("similar_floor")]] = _values("similar_floor")
    max_tokens: list[Annotated[int, _limits("max_tokens")]] = _values("max_tokens")


class ModelFields(Section):
    """Reader and judge as `hopbench run` takes them; `repeats` of a judge is `judge_repeats` here."""

    llm: str | None = Field(default=None, description="as --llm of run: the strategies' model, and the reader")
    reasoning_effort: str | None = Field(default=None, description="as --reasoning-effort of run, of llm and judge")
    completion_tokens: int | None = Field(
        default=None, ge=1, description="as --completion-tokens of run, of llm and judge"
    )
    answers: bool | None = Field(
        default=None, description="whether llm also answers the questions from each trial's contexts; if judged, yes"
    )
    judge: str | None = Field(default=None, description="as --judge of run: MODEL or MODEL@URL")
    judge_on: str = Field(
        default="all", description="all trials, or finalists[:N]: the best N configurations by the objective (3)"
    )
    judge_profile: Literal["full", "compact"] = Field(default="full", description="as --judge-profile of run")
    judge_metrics: list[str] = Field(default_factory=list, description="some judged metrics in place of all")
    judge_repeats: int = Field(default=1, ge=1, le=100, description="as --repeats of run")
    budget: float | None = Field(default=None, gt=0, description="as --budget of run: US dollars at which to stop")

    @field_validator("judge_on")
    @classmethod
    def _known_trials(cls, text: str) -> str:
        try:
            finalists_named(text)
        except InputError as error:
            raise ValueError(str(error)) from error
        return text

    @field_validator("judge_metrics")
    @classmethod
    def _known_metrics(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in INPUTS:
                raise ValueError(str(UnknownNameError("judged metric", name, INPUTS)))
        return names

    @model_validator(mode="after")
    def _asked(self) -> ModelFields:
        """Refuse options that need a model where none is named."""
        if self.answers and self.llm is None:
            raise ValueError("answers: by which model? Name one with llm")
        if self.judge is None and (self.judge_metrics or self.judge_repeats != 1):
            raise ValueError("judge_metrics and judge_repeats need a judge: name one with judge")
        if not self.read and self.judge_on != "all":
            raise ValueError("judge_on needs a judge or answers: name a judge, or set answers with llm")
        if self.llm is None and self.judge is None and self.asked:
            raise ValueError(f"{', '.join(self.asked)}: no language model is asked: name one with llm or judge")
        if self.budget is not None and self.llm is None and self.judge is None:
            raise ValueError("budget: no language model is asked: name one with llm or judge, or leave it out")
        return self

    @property
    def asked(self) -> Asked:
        """Effort and completion budget, where they are set."""
        return asked_of(vars(self))

    @property
    def answered(self) -> bool:
        """Whether `llm` answers questions: as `answers` says, by default where there is a judge."""
        return self.llm is not None and (self.judge is not None if self.answers is None else self.answers)

    @property
    def read(self) -> bool:
        """Whether trials are answered or judged."""
        return self.answered or self.judge is not None

    @property
    def finalists(self) -> int | None:
        """How many configurations are answered and judged; None for all of them."""
        return finalists_named(self.judge_on)

    def judged(self) -> list[str]:
        """The judged metrics of a trial."""
        named = [name for name in INPUTS if not self.judge_metrics or name in self.judge_metrics]
        return [] if self.judge is None else applicable(named, "", self.answered)

    def refuse_unmeasured(self, metric: Metric, ragas: bool) -> None:
        """Raise ValueError for an objective that some trials have no value for."""
        name = metric.name
        if metric.group == "ragas" and not ragas:
            raise ValueError(f"objective: {name} is one of RAGAS's metrics: leave out ragas: false")
        if metric.group == "answer" and not self.answered:
            raise ValueError(f"objective: {name} needs answers: name llm and set answers: true")
        if metric.group == "judge" and name not in self.judged():
            known = ", ".join(self.judged()) or "nothing"
            raise ValueError(f"objective: {name} is not judged here (judged: {known}): see judge, judge_metrics, llm")
        if metric.group in ("answer", "judge") and self.finalists is not None:
            raise ValueError(f"objective: {name} is known of all trials only with judge_on: all")
