"""A sweep's inputs: data sets and embedders, checked before it starts, and warnings about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hopbench.eval.metrics import ADD_GOLD, get_metric
from hopbench.eval.types import Benchmark, fitted_on
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.sweeps.models import model_options
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.space import Build
    from hopbench.retrieval.embedding.base import Embedder


def graph_options(plan: SweepPlan, dataset: str, build: Build) -> GraphOptions:
    """The options of the graph that a configuration is tried on; fields of the same name are the sweep file's."""
    content = plan.content
    asked = content.asked if content.llm else {}
    return replace(_data_options(plan, dataset), llm=content.llm, **asked, **asdict(build))


def _data_options(plan: SweepPlan, dataset: str) -> GraphOptions:
    content = plan.content
    return GraphOptions(dataset=dataset, store=content.store, min_grade=content.min_grade, strict=content.strict)


def open_embedders(plan: SweepPlan, home: Home) -> list[Embedder]:
    """The embedder of each graph; refuses an unknown store or extractor too, before any work begins."""
    try:
        return [graph_options(plan, "", build).open_embedder(home) for build in plan.builds]
    except InputError as error:
        raise InputError(f"{plan.file}: {error}") from error


def load_benchmarks(plan: SweepPlan, home: Home | None = None) -> dict[str, Benchmark]:
    """The plan's data sets and the one it reports on, by the plan's name for them; passages as `GraphOptions` says."""
    names = [*plan.datasets, *([plan.report_on] if plan.report_on else [])]
    try:
        benchmarks = {name: _data_options(plan, name).benchmark(home) for name in names}
    except InputError as error:
        raise InputError(f"{plan.file}: datasets: {error}") from error
    objective = plan.content.objective
    for benchmark in benchmarks.values():
        for metric in (objective.metric, objective.also):
            if not any(map(get_metric(metric).applies, benchmark.questions)):
                raise InputError(
                    f"{plan.file}: datasets: {benchmark.name} has no gold for the objective's {metric}: {ADD_GOLD}; "
                    "where it has answers, take objective: {metric: has_answer@10, also: has_answer@5}"
                )
    called = [benchmark.name for benchmark in benchmarks.values()]
    if twice := sorted({name for name in called if called.count(name) > 1}):
        raise InputError(f"{plan.file}: datasets: two are named {', '.join(twice)}: rename a folder")
    return benchmarks


def shares_questions(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> Mapping[str, Any] | None:
    """What the set to report on has in common with those that choose the winner; None for nothing."""
    if plan.report_on is None:
        return None
    from hopbench.retrieval.strategies.label import TUNED  # loads scipy
    from hopbench.retrieval.strategies.registry import LabelKind

    reported = fitted_on(benchmarks[plan.report_on])
    chosen_on = LabelKind(TUNED, tuple(fitted_on(benchmarks[name]) for name in plan.datasets))
    return chosen_on.in_sample(reported.digest, reported.questions)


def check_champion(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> None:
    """Raise InputError where there is no benchmark to be champion of except those that chose the winner."""
    named = ", ".join(benchmarks[name].name for name in plan.datasets)
    if plan.report_on is None:
        raise InputError(
            f"--champion: the winner is no champion of the sets that chose it ({named}): name another set under "
            f"report_on in {plan.file}, or leave --champion out"
        )
    if shared := shares_questions(plan, benchmarks):
        raise InputError(
            f"--champion: {shared['questions']} questions of {benchmarks[plan.report_on].name} are also in {named}, "
            "which choose the winner: name a set of other questions under report_on, or leave --champion out"
        )


def _shared_questions(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> list[str]:
    shared = shares_questions(plan, benchmarks)
    if shared is None or plan.report_on is None:
        return []
    return [
        f"report_on: {shared['questions']} questions of {benchmarks[plan.report_on].name} are also in "
        f"{', '.join(shared['sets'])}, which choose the winner: its figure there says nothing about other questions"
    ]


def warnings_of_plan(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> list[str]:
    """What a reader should know before the sweep starts."""
    content = plan.content
    lines = [
        f"{benchmarks[name].name} is for reporting: parameters chosen on it make its figures too good. Sweep on a set "
        "with the role tune, and name this one under report_on; if it is for tuning, declare it with "
        f"`hopbench check-data {name} --set-role tune`"
        for name in plan.datasets
        if benchmarks[name].role == "report"
    ]
    lines += [
        f"{benchmark.name}: {warning}" for benchmark in benchmarks.values() for warning in benchmark.shown_warnings
    ]
    lines += _shared_questions(plan, benchmarks)
    if len(content.all_seeds) > 1 and content.questions is None and content.halving is None:
        lines.append("seeds: their trials are equal, since all questions are asked: draw some of them with questions")
    lines += [line for space in plan.spaces for line in space.short_ranges()]
    most = max(len(benchmarks[name].questions) for name in plan.datasets)
    if content.halving is not None and (asked := content.halving.questions) >= most:
        lines.append(f"halving.questions: {asked} are all there are ({most}): nothing will be dropped")
    return lines + model_options(content).warnings(content.answered)
