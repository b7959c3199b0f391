"""The flows `evaluate` and `nightly`: they only sequence; building, ranking and scoring are functions elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import refuse_unwritable
from hopbench.eval.trials.version import plugin_warnings
from hopbench.flows.orchestration.progress import Report, ReportedSteps, Silent
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Steps, run_flow
from hopbench.flows.run.completeness import Finished, incomplete_labels, warnings_of
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation, Ranker
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.models import Models
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.graph.build.plan import GraphPlan
    from hopbench.retrieval.index.index import Index
    from hopbench.retrieval.strategies.base import Strategy

FIXED_STEPS = 4  # candidates, score, compare, write; building and remarks announce their own


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


def run(
    options: RunOptions,
    flow: str = "evaluate",
    report: Report | None = None,
    remark: Callable[[Finished], Remarks] | None = None,
    force: bool = False,
) -> Finished:
    """Build the graph if needed, run the strategies, write, report and track. Bad input is refused before all else.

    `remark` looks at what was found before it is written; `force` replaces another benchmark's run in --out.
    """
    home = Home.resolve()
    home.apply_environment()
    options.models.check()
    notes = options.models.reach(home)
    benchmark = options.benchmark()
    if not force:
        from hopbench.flows.settings.out_folder import refuse_other_run  # loads pandas

        refuse_other_run(options.out, benchmark)
    from hopbench.retrieval.strategies.registry import resolve  # loads scipy; a missing file is told before

    strategies = resolve(options.strategies, options.changes)
    for strategy in strategies.values():
        strategy.identity()  # reads the files that parameters name
    options.fitted_on()
    options.checked_targets(list(strategies), benchmark.questions)
    options.open_embedder(home)
    report = report or Silent()
    home.prepare()
    refuse_unwritable(options.out / "results.json")
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime.start(home)) if options.prefect else None
        tracker = stack.enter_context(Tracker.start(home, f"hopbench/{benchmark.name}"))
        # Both servers are starting now; what needs neither goes on here.
        begun = _Begun.open(options, home, benchmark, strategies, report, runtime, tracker, stack, notes)
        shown = {"dataset": benchmark.name, "strategies": options.strategies, "out": options.out.name}
        finished = run_flow(
            flow, lambda steps: begun.whole(steps, remark), runtime=runtime, parameters=shown, tags=[benchmark.name]
        )
        tracker.close()
    finished.warnings.extend(tracker.notes)
    begun.kept.clear()
    return finished


@dataclass(frozen=True)
class _Begun:
    """A run whose index is open: what its flow works on."""

    options: RunOptions
    home: Home
    benchmark: Benchmark
    strategies: Mapping[str, Strategy]
    report: Report
    runtime: PrefectRuntime | None
    tracker: Tracker
    at: float
    graph: GraphPlan
    index: Index
    models: Models
    kept: Unfinished
    notes: Sequence[str]

    @classmethod
    def open(
        cls,
        options: RunOptions,
        home: Home,
        benchmark: Benchmark,
        strategies: Mapping[str, Strategy],
        report: Report,
        runtime: PrefectRuntime | None,
        tracker: Tracker,
        stack: ExitStack,
        notes: Sequence[str],
    ) -> _Begun:
        """Embed and index, and open the models."""
        from hopbench.eval.trials.unfinished import Unfinished
        from hopbench.flows.graph.build import open_index
        from hopbench.flows.settings.models import open_models

        at = time.time()
        report.expect(len(strategies) + FIXED_STEPS + options.models.steps(len(strategies)))
        report.begin("embed and index")
        graph = options.graph_plan(benchmark, home)
        index = open_index(options, graph, home)
        models = stack.enter_context(open_models(options.models, index.embedder, home))
        graph = options.with_reader(graph, models.reading.reader)
        models.serve(index)
        kept = Unfinished(options.out / ".unfinished")
        return cls(
            options, home, benchmark, strategies, report, runtime, tracker, at, graph, index, models, kept, notes
        )

    def whole(self, flow_steps: Steps, remark: Callable[[Finished], Remarks] | None) -> Finished:
        """The flow's body: graph, trials, scores, remarks, files, tracking."""
        from hopbench.flows.run.record import tracking_key

        steps = ReportedSteps(flow_steps, self.report)
        evaluation, warnings = self._evaluated(steps)
        warnings += [
            *self.notes,
            *self.benchmark.shown_warnings,
            *self.options.models.warnings(),
            *warnings_of(evaluation),
        ]
        warnings += plugin_warnings(self.strategies.values()) + self._left_out()
        key = tracking_key(self.options, self.at)
        found = Finished(evaluation, warnings, incomplete_labels(evaluation), key, self.tracker.run_ids)
        more = ReportedSteps(flow_steps, self.report, announce=True)
        remarks = more("remark", lambda: remark(found)) if remark else Remarks()
        warnings += remarks.warnings
        self._recorded(found, remarks, steps)
        return found

    def _left_out(self) -> list[str]:
        """The plug-ins that `all` would have run, could they be loaded."""
        from hopbench.retrieval.strategies.registry import registry

        every = "all" in (part.strip() for part in self.options.strategies.split(","))
        return list(registry().broken.values()) if every else []

    def _evaluated(self, steps: ReportedSteps) -> tuple[Evaluation, list[str]]:
        from hopbench.eval.runs.evaluate import Plan, evaluate
        from hopbench.flows.graph.build import built_graph

        def build(inner: Steps) -> tuple[Any, list[str]]:
            return built_graph(self.graph, self.index, self.home, ReportedSteps(inner, self.report, announce=True))

        shown = {"graph": self.graph.namespace}
        record, warnings = run_flow("build_graph", build, runtime=self.runtime, parameters=shown)
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
        )
        return evaluate(plan, self.kept, steps, _ranker(self.options, self.home, self.runtime)), warnings

    def _recorded(self, found: Finished, remarks: Remarks, steps: ReportedSteps) -> None:
        """Write the run's files and hand them to the tracker."""
        from hopbench.eval.runs.results import write_results
        from hopbench.flows.run.record import run_facts, tracked_run, tracked_trials

        evaluation, options, calls = found.evaluation, self.options, self.models.calls()
        facts = run_facts(options, evaluation, found.warnings, datetime.fromtimestamp(self.at, UTC), calls)
        files = steps("write", lambda: write_results(evaluation, options.out, {**facts, **remarks.facts}))
        for payload in tracked_trials(evaluation, options, self.at, remarks.label_tags):
            self.tracker.log(payload)
        self.tracker.log(tracked_run(evaluation, options, self.at, files, remarks.tags, calls))
        for key in remarks.expired:
            self.tracker.drop_artifacts(key)


def _ranker(options: RunOptions, home: Home, runtime: PrefectRuntime | None) -> Ranker | None:
    if not options.runner or runtime is None:
        return None
    from hopbench.flows.workers.scale_out import ScaledOut

    return ScaledOut(options, home)
