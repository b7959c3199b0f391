"""A sweep's inputs: data sets, embedders and language models, checked before it starts, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hopbench.eval.files import write_atomically
from hopbench.eval.metrics import ADD_GOLD, get_metric
from hopbench.eval.types import Benchmark, fitted_on
from hopbench.flows.run.estimate import NOT_COUNTED, SUMMING
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.sweep.file import SweepFile
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.space import Build
    from hopbench.flows.run.estimate import Estimate
    from hopbench.retrieval.embedding.base import Embedder


@contextmanager
def plan_of_content(content: Mapping[str, Any], out: Path) -> Iterator[SweepPlan]:
    """The plan, written to `out/sweep.yaml`.

    Where the block refuses it by an InputError, as for a folder that holds another sweep, the file is as before.
    """
    from hopbench.eval.sweep.plan import read_sweep

    source = out / "sweep.yaml"
    before = source.read_bytes() if source.is_file() else None
    write_atomically(source, yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True).encode())
    try:
        yield read_sweep(source)
    except InputError:
        if before is None:
            source.unlink(missing_ok=True)
        else:
            write_atomically(source, before)
        raise


def model_options(content: SweepFile) -> ModelOptions:
    """The file's models as those of a run."""
    return ModelOptions(
        llm=content.llm,
        reasoning_effort=content.reasoning_effort,
        completion_tokens=content.completion_tokens,
        judge=content.judge,
        judge_on=content.judge_on if content.judge else "all",
        judge_profile=content.judge_profile,
        judge_metrics=",".join(content.judge_metrics) or "all",
        repeats=content.judge_repeats,
        budget=content.budget,
    )


def estimate_models(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> Estimate | None:
    """The most that a sweep's models can cost, with prices and times; None without models."""
    from hopbench.flows.run.estimate import priced

    options = model_options(plan.content)
    options.check()
    if not options.endpoints():
        return None
    summing = plan.content.llm is not None and any(space.start.name == SUMMING for space in plan.spaces)
    return priced(model_lines(plan, benchmarks), options, Home.resolve(), [NOT_COUNTED] if summing else [])


def model_lines(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> list[Line]:
    """The most that a sweep's models can cost: equal calls and equal contexts are paid once."""
    from hopbench.eval.answering.estimate import (
        answer_line,
        extraction_line,
        judge_lines,
        strategy_lines,
        typical_samples,
    )

    content = plan.content
    lines: list[Line] = []
    for name in [*plan.datasets, *([plan.report_on] if plan.report_on else [])]:
        benchmark = benchmarks[name]
        label, samples = benchmark.name, typical_samples(benchmark)
        asked = questions_read(plan, name, len(benchmark.questions))
        if content.llm is not None:
            if any(build.extractor == "llm" for build in plan.builds):
                lines.append(replace(extraction_line(benchmark, 0), label=f"{label} graph"))
            whole = len(benchmark.questions)
            for kind in dict.fromkeys(space.start.name for space in plan.spaces):
                lines += strategy_lines(f"{label} {kind}", kind, samples, whole)
        if content.answered:
            lines.append(answer_line(label, samples, asked))
        lines += judge_lines(
            [label],
            content.judge_profile,
            content.judged(),
            samples,
            questions=asked,
            answered=content.answered,
            repeats=content.judge_repeats,
        )
    return lines


def questions_read(plan: SweepPlan, dataset: str, questions: int) -> int:
    """How often a question of a data set is answered or judged: each configuration on the most it is asked."""
    from hopbench.eval.sweep.search import rounds

    content = plan.content
    if not content.read:
        return 0
    if dataset == plan.report_on:
        return questions
    limit = min(questions, content.questions or questions)
    seeds = len(content.all_seeds) if limit < questions else 1
    if content.finalists is not None:
        return min(content.finalists, plan.configurations) * limit * seeds
    left, asked = plan.configurations, 0
    for size in rounds(plan, questions):
        go_on = 0 if size is None or content.halving is None else ceil(left / content.halving.factor)
        asked += (left - go_on) * min(size or limit, limit) * seeds
        left = go_on
    return asked


def graph_options(plan: SweepPlan, dataset: str, build: Build) -> GraphOptions:
    """The options of the graph that a configuration is tried on; fields of the same name are the sweep file's."""
    content = plan.content
    asked = content.asked if content.llm else {}
    return _data_options(plan, dataset).changed(llm=content.llm, **asked, **asdict(build))


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


def _shares_questions(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> Mapping[str, Any] | None:
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
    if shared := _shares_questions(plan, benchmarks):
        raise InputError(
            f"--champion: {shared['questions']} questions of {benchmarks[plan.report_on].name} are also in {named}, "
            "which choose the winner: name a set of other questions under report_on, or leave --champion out"
        )


def warnings_of_plan(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> list[str]:
    """What a reader should know before the sweep starts."""
    from hopbench.eval.benchmarks import shown_warnings

    content = plan.content
    lines = [
        f"{benchmarks[name].name} is for reporting: parameters chosen on it make its figures too good. Sweep on a set "
        "with the role tune, and name this one under report_on; if it is for tuning, declare it with "
        f"`hopbench check-data {name} --set-role tune`"
        for name in plan.datasets
        if benchmarks[name].role == "report"
    ]
    lines += [
        f"{benchmark.name}: {warning}" for benchmark in benchmarks.values() for warning in shown_warnings(benchmark)
    ]
    shared = _shares_questions(plan, benchmarks)
    if shared is not None and plan.report_on is not None:
        lines.append(
            f"report_on: {shared['questions']} questions of {benchmarks[plan.report_on].name} are also in "
            f"{', '.join(shared['sets'])}, which choose the winner: its figure there says nothing about other questions"
        )
    if len(content.all_seeds) > 1 and content.questions is None and content.halving is None:
        lines.append("seeds: their trials are equal, since all questions are asked: draw some of them with questions")
    lines += [line for space in plan.spaces for line in space.short_ranges()]
    most = max(len(benchmarks[name].questions) for name in plan.datasets)
    if content.halving is not None and (asked := content.halving.questions) >= most:
        lines.append(f"halving.questions: {asked} are all there are ({most}): nothing will be dropped")
    return lines + model_options(content).warnings(content.answered)


# Seconds on two cores of 2024, for when the ledger knows no trial of a strategy yet.
QUESTION_SECONDS = {"activation": 0.006, "dual_level": 0.006, "kg2rag": 0.01, "entity_expansion": 0.004}
OTHER_QUESTION_SECONDS = 0.0015
PASSAGE_BUILD_SECONDS = 0.0015
OPEN_SECONDS = 3.0  # read, embed from the cache, index
START_SECONDS = 12.0  # Prefect's server and MLflow's writer
LATENCY_CALLS = 51
CALL_SECONDS = 0.02


@dataclass(frozen=True)
class SweepEstimate:
    """Trials that would run (halving counts its rounds), graphs in use and to build, and seconds in all."""

    trials: int
    graphs: int
    rebuilds: int
    seconds: float
    known_pace: bool


def estimate_sweep(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> SweepEstimate:
    """Estimate a sweep from what the ledger knows of its strategies' pace, else from figures measured once."""
    from hopbench.eval.sweep.search import rounds
    from hopbench.eval.trials.ledger import Ledger

    home = Home.resolve()
    graphs = [(name, build) for name in plan.datasets for build in plan.builds]
    graphs += [(plan.report_on, build) for build in plan.builds[:1] if plan.report_on]  # the winner's, whichever it is
    rebuilds = []
    for name, build in graphs:
        options = graph_options(plan, "", build)
        place: Path | None = None
        if plan.content.store != "neo4j" and home.graphs.is_dir():
            place = getattr(options.open_store(options.graph_plan(benchmarks[name], home), home), "path", None)
        if place is None or not place.exists():
            rebuilds.append(name)
    questions = {name: len(benchmarks[name].questions) for name in plan.datasets}
    limited = {name: min(count, plan.content.questions or count) for name, count in questions.items()}
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open(home.ledger)) if home.ledger.is_file() else None
        names = [space.start.name for space in plan.spaces]
        measured = [ledger.pace(name) if ledger else None for name in names]
    usual = [QUESTION_SECONDS.get(name, OTHER_QUESTION_SECONDS) for name in names]
    pace = sum(one if one is not None else other for one, other in zip(measured, usual, strict=True)) / len(names)
    configurations, trials, seconds = plan.configurations, 0, START_SECONDS
    for size in rounds(plan, max(questions.values())):
        each = len(plan.content.all_seeds) * plan.content.repeats * configurations
        trials += each * len(limited)
        seconds += each * sum(min(count, size or count) for count in limited.values()) * pace
        seconds += each * len(limited) * LATENCY_CALLS * CALL_SECONDS if plan.content.timed else 0.0
        configurations = ceil(configurations / plan.content.halving.factor) if plan.content.halving else 0
    if plan.report_on:
        seconds += len(benchmarks[plan.report_on].questions) * plan.content.repeats * pace
    seconds += OPEN_SECONDS * len(graphs)
    seconds += PASSAGE_BUILD_SECONDS * sum(len(benchmarks[name].passages) for name in rebuilds)
    return SweepEstimate(trials, len(graphs), len(rebuilds), seconds, None not in measured)
