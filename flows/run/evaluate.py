"""The flows `evaluate` and `nightly`: they only sequence; building, ranking and scoring are functions elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import refuse_unwritable
from hopbench.eval.trials.trial import prepare
from hopbench.eval.trials.version import plugin_warnings
from hopbench.flows.orchestration.progress import NoProgress, Progress, ProgressSteps
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import FlowSteps, run_flow
from hopbench.flows.run.completeness import Finished, incomplete_labels, warnings_of
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.names import experiment_of

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Plan
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.models import Models
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.graph.build.plan import GraphPlan
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy

FIXED_STEPS = 4  # candidates, score, compare, write; building and remarks announce their own


@dataclass(frozen=True)
class Remarks:
    """What a command adds to an evaluation before it is written: facts for the report, tags for MLflow, warnings.

    `expired` are keys of earlier runs in MLflow whose artifacts may go.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    label_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    expired: Sequence[str] = ()


def run(
    options: RunOptions,
    flow: str = "evaluate",
    progress: Progress | None = None,
    remark: Callable[[Finished], Remarks] | None = None,
    force: bool = False,
) -> Finished:
    """Build the graph if needed, run the strategies, write, report and track. Bad input is refused before all else.

    `remark` may look at the evaluation before it is written; `force` replaces another benchmark's run in --out.
    """
    home = Home.resolve()
    home.apply_environment()
    options.models.check()
    notes = options.models.reach(home)
    benchmark, strategies = _checked_input(options, home, force)
    from hopbench.flows.settings.foreign import close_foreign

    progress = progress or NoProgress()
    home.prepare()
    refuse_unwritable(options.out / "results.json")
    with ExitStack() as stack:
        stack.callback(close_foreign, strategies.values())
        runtime = stack.enter_context(PrefectRuntime.start(home)) if options.prefect else None
        tracker = stack.enter_context(Tracker.start(home, experiment_of(benchmark.name)))
        # Both servers are starting now; what needs neither goes on here.
        session = RunSession.open(options, home, benchmark, strategies, progress, runtime, tracker, stack, notes)
        session.remark = remark
        shown = {"dataset": benchmark.name, "strategies": options.strategies, "out": options.out.name}
        finished = run_flow(flow, session.execute, runtime=runtime, parameters=shown, tags=[benchmark.name])
        tracker.close()
    finished.warnings.extend(tracker.notes)
    session.unfinished.clear()
    return finished


def _checked_input(options: RunOptions, home: Home, force: bool) -> tuple[Benchmark, Mapping[str, Strategy]]:
    """Load the benchmark and the strategies, and refuse whatever would fail later."""
    benchmark = options.benchmark()
    if not force:
        from hopbench.flows.settings.out_folder import refuse_other_run  # loads pandas

        refuse_other_run(options.out, benchmark)
    from hopbench.flows.settings.foreign import check_foreign  # loads scipy; report a missing file first

    strategies = options.labels()  # loads scipy; a missing file is told before
    check_foreign(strategies, benchmark)
    for strategy in strategies.values():
        strategy.identity()  # reads the files that parameters name
    options.fitted_on()
    options.checked_targets(list(strategies), benchmark.questions)
    options.asked_metrics()  # refuses a name that is unknown
    options.open_embedder(home)
    return benchmark, strategies


@dataclass
class RunSession:
    """A run with its index, models and tracker open; `execute` is the body of its flow."""

    options: RunOptions
    home: Home
    benchmark: Benchmark
    strategies: Mapping[str, Strategy]
    progress: Progress
    runtime: PrefectRuntime | None
    tracker: Tracker
    started_at: float
    graph: GraphPlan
    index: Index
    models: Models
    unfinished: Unfinished
    notes: Sequence[str]
    remark: Callable[[Finished], Remarks] | None = None

    @classmethod
    def open(
        cls,
        options: RunOptions,
        home: Home,
        benchmark: Benchmark,
        strategies: Mapping[str, Strategy],
        progress: Progress,
        runtime: PrefectRuntime | None,
        tracker: Tracker,
        stack: ExitStack,
        notes: Sequence[str],
    ) -> RunSession:
        """Embed and index, and open the models; `stack` closes them."""
        from hopbench.eval.trials.unfinished import Unfinished
        from hopbench.flows.graph.build import open_index
        from hopbench.flows.settings.models import open_models

        started_at = time.time()
        progress.expect(len(strategies) + FIXED_STEPS + options.models.steps(len(strategies)))
        progress.begin("embed and index")
        graph = options.graph_plan(benchmark, home)
        index = open_index(options, graph, home)
        models = stack.enter_context(open_models(options.models, index.embedder, home))
        graph = options.with_reader(graph, models.reading.reader)
        models.serve(index)
        return cls(
            options,
            home,
            benchmark,
            strategies,
            progress,
            runtime,
            tracker,
            started_at,
            graph,
            index,
            models,
            Unfinished(options.out / ".unfinished"),
            notes,
        )

    def execute(self, flow_steps: FlowSteps) -> Finished:
        """Build the graph, rank, score, remark, write and track.

        The loop over labels is here rather than in a function of its own: a traceback from a strategy then shows the
        flow, the trial and the strategy, and little else.
        """
        steps = ProgressSteps(flow_steps, self.progress)
        plan, warnings = self._plan()
        if self.options.runner and self.runtime is not None:
            from hopbench.flows.run.scale_out import ScaledOut

            trials, shared_seconds = ScaledOut(self.options, self.home)(plan, self.unfinished, steps)
        else:
            shared_seconds = steps("candidates", prepare, plan.parts)
            finished: dict[str, TrialOutcome] = {}
            for label in plan.strategies:
                outcome = self.unfinished.get(plan.key_of(label))
                if outcome is None:
                    trial, name = plan.trial(label), f"trial {label}"
                    self.progress.begin(name)
                    flow_steps.task(name, trial.run)()
                    self.progress.end()
                    outcome = trial.outcome
                    self.unfinished.put(plan.key_of(label), outcome)
                finished[label] = outcome
            trials = finished
        return self._finished(plan, trials, shared_seconds, warnings, flow_steps)

    def _plan(self) -> tuple[Plan, list[str]]:
        """Build the graph, as a flow of its own, and say what to evaluate; with warnings about the graph."""
        from hopbench.eval.runs.evaluate import Plan
        from hopbench.flows.graph.build import build_flow

        record, warnings = build_flow(self.graph, self.index, self.home, self.runtime, self.progress)
        plan = Plan(
            self.benchmark,
            self.index,
            record,
            self.strategies,
            self.options.ragas,
            self.options.seed,
            reading=self.models.reading,
            batch=self.options.batch,
            tuned_on=self.options.fitted_on(),
            targets=self.options.checked_targets(list(self.strategies)),
            metrics=self.options.asked_metrics(),
        )
        return plan, warnings

    def _finished(
        self,
        plan: Plan,
        trials: Mapping[str, TrialOutcome],
        shared_seconds: float,
        warnings: list[str],
        flow_steps: FlowSteps,
    ) -> Finished:
        """Score and compare the trials, have `remark` look at them, write files and log to MLflow."""
        from hopbench.eval.runs.evaluate import evaluate
        from hopbench.flows.run.payloads import tracking_key

        steps = ProgressSteps(flow_steps, self.progress)
        evaluation = evaluate(plan, trials, shared_seconds, steps)
        warnings += [
            *self.notes,
            *self.benchmark.shown_warnings,
            *self.options.models.warnings(),
            *warnings_of(evaluation),
        ]
        warnings += plugin_warnings(self.strategies.values()) + self._broken_plugins()
        key = tracking_key(self.options, self.started_at)
        finished = Finished(evaluation, warnings, incomplete_labels(evaluation), key, self.tracker.run_ids)
        remarks = Remarks()
        if self.remark is not None:
            remarks = ProgressSteps(flow_steps, self.progress, announce=True)("remark", self.remark, finished)
        warnings += remarks.warnings
        self._record(finished, remarks, steps)
        return finished

    def _broken_plugins(self) -> list[str]:
        """The plug-ins that would have ranked (`all`) or scored by default, had they loaded."""
        from hopbench.eval.metrics import catalogue
        from hopbench.retrieval.strategies.registry import registry

        every = "all" in (part.strip() for part in self.options.strategies.split(","))
        return [*(registry().broken.values() if every else ()), *catalogue().registry.broken.values()]

    def _record(self, finished: Finished, remarks: Remarks, steps: ProgressSteps) -> None:
        """Write the run's files and hand them to the tracker."""
        from hopbench.eval.report import write_run
        from hopbench.flows.run.payloads import run_facts, tracked_run, tracked_trials

        evaluation, options, calls = finished.evaluation, self.options, self.models.calls()
        facts = run_facts(options, evaluation, finished.warnings, datetime.fromtimestamp(self.started_at, UTC), calls)
        files = steps("write", lambda: write_run(evaluation, options.out, {**facts, **remarks.facts}))
        for payload in tracked_trials(evaluation, options, self.started_at, remarks.label_tags):
            self.tracker.log(payload)
        self.tracker.log(tracked_run(evaluation, options, self.started_at, files, remarks.tags, calls))
        for key in remarks.expired:
            self.tracker.drop_artifacts(key)
