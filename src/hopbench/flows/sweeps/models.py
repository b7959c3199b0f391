"""Language models in a sweep: opening those its file names, which trials they read, and the estimated cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hopbench.eval.types import Benchmark
from hopbench.flows.run.estimate import NOT_COUNTED, SUMMING
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions, Models

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.answering.reading import Reading
    from hopbench.eval.sweep.file import SweepFile
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Result
    from hopbench.flows.run.estimate import Estimate


def model_options(content: SweepFile) -> ModelOptions:
    """The file's models as those of a run."""
    return ModelOptions(
        llm=content.llm,
        reasoning_effort=content.reasoning_effort,
        completion_tokens=content.completion_tokens,
        judge=content.judge,
        judge_on=content.judge_on if content.judge else "all",
        judge_profile=content.judge_profile,
        judge_metrics=tuple(content.judge_metrics),
        repeats=content.judge_repeats,
        budget=content.budget,
    )


def trial_reading(content: SweepFile, models: Models) -> Reading:
    """The models that read a trial. The closed-book row is the same for all trials: only `run` has it."""
    reader = models.reading.reader if content.answered else None
    return replace(models.reading, reader=reader, finalists=None, closed_book=False)


def incomplete_trials(results: Sequence[Result]) -> list[str]:
    """The configurations of which too many questions failed, or were not answered or judged."""
    from hopbench.eval.sweep.results import shortcomings

    return [
        f"{result.candidate.title} on {cell.dataset}: {', '.join(shortages)}"
        for result in results
        for cell, record in result.records.items()
        if (shortages := shortcomings(record))
    ]


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
    from hopbench.eval.answering.estimate import answer_line, judge_lines, strategy_lines, typical_samples

    content = plan.content
    lines: list[Line] = []
    for name in [*plan.datasets, *([plan.report_on] if plan.report_on else [])]:
        benchmark = benchmarks[name]
        label, samples = benchmark.name, typical_samples(benchmark)
        asked = questions_read(plan, name, len(benchmark.questions))
        if content.llm is not None:
            lines += _graph_lines(plan, benchmark)
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


def _graph_lines(plan: SweepPlan, benchmark: Benchmark) -> list[Line]:
    from hopbench.eval.answering.estimate import extraction_line

    if all(build.extractor != "llm" for build in plan.builds):
        return []
    return [replace(extraction_line(benchmark, 0), label=f"{benchmark.name} graph")]


def questions_read(plan: SweepPlan, dataset: str, questions: int) -> int:
    """How often a question of a data set is answered or judged: each configuration on the most it is asked."""
    from math import ceil

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
