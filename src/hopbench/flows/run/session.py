"""A run with its index, models and tracker open: the body of the flows `evaluate` and `nightly`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.synthesize.write import statements_of
from hopbench.eval.trials.key import plugin_warnings
from hopbench.eval.trials.trial import prepare
from hopbench.flows.orchestration.progress import Progress, ProgressSteps
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import FlowSteps
from hopbench.flows.run.completeness import Finished, incomplete_labels, warnings_of
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Plan
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.models import Models
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.graph.construction.plan import GraphPlan
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy

FIXED_STEPS = 4  # candidates, score, compare, write; building and annotations announce their own


@dataclass(frozen=True)
class Annotations:
    """What a command adds to an evaluation before it is written: facts for the report, tags for MLflow, warnings.

    `expired` are keys of earlier runs in MLflow whose artifacts may go.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    label_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    expired: Sequence[str] = ()


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
    tables: Path
    annotate: Callable[[Finished], Annotations] | None = None

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
        tables: Path,
    ) -> RunSession:
        """Embed and index, and open the models; `stack` closes them. The tracker reads files in `tables` later."""
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
            tables,
        )

    def execute(self, flow_steps: FlowSteps) -> Finished:
        """Build the graph, rank, score, annotate, write and track.

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
        """Build the graph, as a flow of its own, and plan the evaluation; with warnings about the graph."""
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
            processes=self.options.spread.processes,
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
        """Score and compare the trials, have `annotate` look at them, write files and log to MLflow."""
        from hopbench.eval.runs.evaluate import evaluate
        from hopbench.flows.run.payloads import tracking_key
        from hopbench.flows.settings.foreign import changed_answers

        steps = ProgressSteps(flow_steps, self.progress)
        evaluation = evaluate(plan, trials, shared_seconds, steps)
        warnings += [
            *self.notes,
            *self.benchmark.shown_warnings,
            *statements_of(self.benchmark.folder),
            *self.options.models.warnings(),
            *warnings_of(evaluation),
            *changed_answers(self.strategies, trials, [one.question for one in plan.benchmark.questions], self.index),
        ]
        warnings += plugin_warnings(self.strategies.values()) + self._broken_plugins()
        key = tracking_key(self.options, self.started_at)
        finished = Finished(evaluation, warnings, incomplete_labels(evaluation), key, self.tracker.run_ids)
        annotations = Annotations()
        if self.annotate is not None:
            annotations = ProgressSteps(flow_steps, self.progress, announce=True)("annotate", self.annotate, finished)
        warnings += annotations.warnings
        self._record(finished, annotations, steps)
        return finished

    def _broken_plugins(self) -> list[str]:
        """The plug-ins that would have ranked (`all`) or scored by default, had they loaded."""
        from hopbench.eval.metrics import catalogue
        from hopbench.retrieval.strategies.registry import registry

        every = "all" in (part.strip() for part in self.options.strategies.split(","))
        return [*(registry().broken.values() if every else ()), *catalogue().registry.broken.values()]

    def _record(self, finished: Finished, annotations: Annotations, steps: ProgressSteps) -> None:
        """Write the run's files and hand them to the tracker, which writes the labels while the files are written."""
        from hopbench.eval.report import write_run
        from hopbench.flows.run.label_payloads import tracked_trials
        from hopbench.flows.run.payloads import run_facts, tracked_run

        evaluation, options, calls = finished.evaluation, self.options, self.models.calls()
        for payload in tracked_trials(evaluation, options, self.started_at, annotations.label_tags, self.tables):
            self.tracker.log(payload)
        facts = run_facts(options, evaluation, finished.warnings, datetime.fromtimestamp(self.started_at, UTC), calls)
        files = steps("write", lambda: write_run(evaluation, options.out, {**facts, **annotations.facts}))
        if self.runtime is not None:
            from hopbench.flows.run.leaderboard import leave_leaderboard

            leave_leaderboard(evaluation, options.out, self.home)
        self.tracker.log(tracked_run(evaluation, options, self.started_at, files, annotations.tags, calls))
        for key in annotations.expired:
            self.tracker.drop_artifacts(key)
