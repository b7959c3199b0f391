"""The flows `evaluate` and `nightly`: they only sequence; building, ranking and scoring are functions elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from eval.metrics import all_metrics
from flows.home import Home
from flows.prefect_runtime import PrefectRuntime
from flows.report_progress import Report, ReportedSteps, Silent
from flows.steps import Steps, run_flow
from flows.tracking import Tracker
from retrieval.errors import IncompleteError

if TYPE_CHECKING:
    from eval.evaluate import Evaluation, Ranker
    from flows.options import RunOptions

MAX_FAILED = 0.05
FIXED_STEPS = 5  # fingerprint, candidates, score, compare, write; building adds its own


@dataclass(frozen=True)
class Remarks:
    """What a command says of an evaluation before it is written: in the report, as tags in MLflow, as warnings.

    `expired` are keys of earlier runs in MLflow whose artifacts may go.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    label_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    expired: Sequence[str] = ()


@dataclass(frozen=True)
class Finished:
    """A run that ended: its evaluation, what happened on the way, and the labels that failed too often.

    `key` names it in MLflow, `run_ids` are MLflow's own names by key.
    """

    evaluation: Evaluation
    warnings: list[str]
    incomplete: list[str]
    key: str
    run_ids: Mapping[str, str]


def run(
    options: RunOptions,
    flow: str = "evaluate",
    report: Report | None = None,
    remark: Callable[[Finished], Remarks] | None = None,
) -> Finished:
    """Build the graph if needed, run the strategies, write, report and track. Bad input is refused before all else.

    `remark` looks at what was found before it is written.
    """
    home = Home.resolve()
    home.apply_environment()
    options.models.check()
    benchmark = options.benchmark()
    from retrieval.strategies.registry import resolve  # loads scipy; a missing file is told before

    strategies = resolve(options.strategies, options.changes)
    options.open_embedder(home)
    report = report or Silent()
    home.prepare()
    _writable(options)
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime.start(home)) if options.prefect else None
        tracker = stack.enter_context(Tracker.start(home, f"hopbench/{benchmark.name}"))
        # Both servers are starting now; what needs neither goes on here.
        from eval.evaluate import Plan, evaluate
        from eval.results import write_results
        from eval.unfinished import Unfinished
        from flows.build_graph import built_graph, open_index
        from flows.models import open_models
        from flows.run_record import run_facts, tracked_run, tracked_trials, tracking_key

        begun = time.time()
        report.expect(len(strategies) + FIXED_STEPS + options.models.steps(len(strategies)))
        report.begin("embed and index")
        plan = options.graph_plan(benchmark, home)
        index = open_index(options, plan, home)
        kept = Unfinished(options.out / ".unfinished")
        models = stack.enter_context(open_models(options.models, index.embedder, home))
        plan = options.with_reader(plan, models.reading.reader)
        models.serve(index)

        def build(steps: Steps) -> tuple[Any, list[str]]:
            return built_graph(plan, index, home, ReportedSteps(steps, report))

        def whole(flow_steps: Steps) -> Finished:
            steps = ReportedSteps(flow_steps, report)
            record, warnings = run_flow("build_graph", build, runtime=runtime, parameters={"graph": plan.namespace})
            todo = Plan(
                benchmark,
                index,
                record,
                strategies,
                options.ragas,
                options.seed,
                reading=models.reading,
                batch=options.batch,
            )
            evaluation = evaluate(todo, kept, steps, _ranker(options, home, runtime))
            warnings += options.models.warnings() + _warnings(evaluation)
            key = tracking_key(options, begun)
            found = Finished(evaluation, warnings, incomplete_labels(evaluation), key, tracker.run_ids)
            remarks = steps("remark", lambda: remark(found)) if remark else Remarks()
            warnings += remarks.warnings
            facts = run_facts(options, evaluation, warnings, datetime.fromtimestamp(begun, UTC), models.calls())
            files = steps("write", lambda: write_results(evaluation, options.out, {**facts, **remarks.facts}))
            for payload in [
                *tracked_trials(evaluation, options, begun, remarks.label_tags),
                tracked_run(evaluation, options, begun, files, remarks.tags, models.calls()),
            ]:
                tracker.log(payload)
            for key in remarks.expired:
                tracker.drop_artifacts(key)
            return found

        shown = {"dataset": benchmark.name, "strategies": options.strategies, "out": options.out.name}
        finished = run_flow(flow, whole, runtime=runtime, parameters=shown, tags=[benchmark.name])
        tracker.close()
    kept.clear()
    return finished


def _ranker(options: RunOptions, home: Home, runtime: PrefectRuntime | None) -> Ranker | None:
    if not options.runner or runtime is None:
        return None
    from flows.scale_out import ScaledOut

    return ScaledOut(options, home, runtime)


def _writable(options: RunOptions) -> None:
    from eval.files import write_atomically

    probe = options.out / ".writable"
    write_atomically(probe, b"")
    probe.unlink()


def _warnings(evaluation: Evaluation) -> list[str]:
    failed = [
        f"{label}: {trial.failures} of {len(trial.rankings)} questions failed"
        for label, trial in evaluation.trials.items()
        if trial.failures
    ]
    unsaid = [
        f"{label}: {failures} of {len(answers)} questions have no answer"
        for label, answers in evaluation.read.answers.items()
        if (failures := sum(one.failure is not None for one in answers.values()))
    ]
    unjudged = [f"{label}: {metric} covers {share:.1%} of the questions" for label, metric, share in _gaps(evaluation)]
    return failed + unsaid + unjudged


def _gaps(evaluation: Evaluation) -> list[tuple[str, str, float]]:
    """Label, metric and coverage of what a reader or a judge could not tell of every question."""
    said = [*all_metrics("answer"), *all_metrics("judge")]
    return [
        (label, metric, summary["measured"][metric])
        for label, summary in evaluation.summaries.items()
        for metric in said
        if summary["measured"].get(metric, 1.0) < 1.0
    ]


def incomplete_labels(evaluation: Evaluation) -> list[str]:
    """The labels that failed, or were not answered or judged, on over 5% of the questions."""
    failed = [
        label for label, trial in evaluation.trials.items() if trial.failures > MAX_FAILED * max(1, len(trial.rankings))
    ]
    gaps = [label for label, _, share in _gaps(evaluation) if share < 1.0 - MAX_FAILED]
    return list(dict.fromkeys([*failed, *gaps]))


def refuse_incomplete(finished: Finished) -> None:
    """Raise IncompleteError (exit 4) where a label failed on over 5% of the questions."""
    if finished.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed for {', '.join(finished.incomplete)}: "
            "the reasons stand in questions.parquet (failure, answer_failure, judge_failure) and in the report; the "
            "same command asks again what a model did not answer"
        )
