"""Flags that several commands take one by one."""

from __future__ import annotations

from typing import Annotated

from hopbench.flows.cli.flags.declare import setting_option
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.run_settings import RunSettings
from hopbench.flows.settings.setting import declared

_FLAG = {one.name: setting_option(one) for group in (GraphOptions, RunSettings) for one in declared(group)}

Dataset = Annotated[str, _FLAG["dataset"]]
Embedder = Annotated[str, _FLAG["embedder"]]
Llm = Annotated[str | None, _FLAG["llm"]]
ReasoningEffort = Annotated[str | None, _FLAG["reasoning_effort"]]
CompletionTokens = Annotated[int | None, _FLAG["completion_tokens"]]
NoPrefect = Annotated[bool, _FLAG["no_prefect"]]
Judge = Annotated[str | None, _FLAG["judge"]]
JudgeMetrics = Annotated[str, _FLAG["judge_metrics"]]
DryRun = Annotated[bool, _FLAG["dry_run"]]
BudgetUsd = Annotated[float | None, _FLAG["budget"]]
Runner = Annotated[str, _FLAG["runner"]]
Workers = Annotated[int | None, _FLAG["workers"]]
MinGrade = Annotated[int | None, _FLAG["min_grade"]]
Strict = Annotated[bool | None, _FLAG["strict"]]
Batch = Annotated[int | None, _FLAG["batch"]]
