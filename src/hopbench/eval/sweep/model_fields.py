"""The fields of a sweep file about language models: reader, judge, which trials they read, and the cost limit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from hopbench.eval.answering.judge.sample import INPUTS
from hopbench.eval.answering.reading import applicable, finalists_named
from hopbench.eval.metrics import Metric, all_metrics
from hopbench.eval.sweep.values import Section
from hopbench.retrieval.llm.endpoint import Asked, asked_of
from hopbench.retrieval.support.errors import InputError, UnknownNameError


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
        """Refuse what only makes sense with a model that is not named."""
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
        """Raise ValueError for an objective that not every trial has a value of."""
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


OBJECTIVES = [name for name, metric in all_metrics().items() if metric.group in ("ranking", "ragas", "answer", "judge")]
