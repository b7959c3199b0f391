"""Run strategies over a benchmark: check the input, start the servers, and rank, score, compare, track and report.

The session is the body of the flows `evaluate` and `nightly`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import refuse_unwritable
from hopbench.eval.metrics import rank_key, shown_in
from hopbench.eval.runs.results import comparisons, results
from hopbench.eval.synthesize.write import statements_of
from hopbench.eval.trials.key import plugin_warnings
from hopbench.eval.trials.trial import prepare
from hopbench.flows.orchestration.pages import REPORT, artifact_key, leave, link_in, table
from hopbench.flows.orchestration.runtime import PrefectRuntime, open_runtime
from hopbench.flows.orchestration.steps import FlowSteps, NoProgress, Progress, ProgressSteps, RunProgress, run_flow
from hopbench.flows.run.finished import Finished, incomplete_labels, warnings_of
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.payload import experiment_of
from hopbench.retrieval.support.forks import prepare_forks

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation, Plan
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.models import Models
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.graph.construction.plan import GraphPlan
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy


def leave_leaderboard(evaluation: Evaluation, out: Path, home: Home) -> None:
    """Leave the leaderboard, best first, with a link to the report; only inside a flow."""
    found = results(evaluation)
    benchmark, entries = found["benchmark"], found["strategies"]
    primary = benchmark["primary_metric"]
    verdicts = {str(pair["label"]): pair for pair in comparisons(evaluation)}
    measured = {name for entry in entries.values() for name in entry["metrics"]}
    metrics = [name for name in dict.fromkeys([primary, *shown_in("flow")]) if name in measured]
    order = list(entries)
    if primary:
        order.sort(key=lambda label: rank_key(primary, entries[label]["metrics"].get(primary)))
    rows: list[dict[str, Any]] = [
        {
            "label": label,
            "kind": entries[label].get("kind", ""),
            **{name: entries[label]["metrics"].get(name) for name in metrics},
            "against the baseline": verdicts[label]["verdict"] if label in verdicts else "–",
            "p50 ms": entries[label].get("latency_ms_p50"),
            "failures": entries[label].get("failures"),
        }
        for label in order
    ]
    name = str(benchmark["name"])
    head = f"# {name}\n\n{benchmark['questions']} questions · {benchmark['passages']} passages"
    content = f"{head}\n\n{link_in(home, out / REPORT)}\n\n{table(rows)}\n"
    leave(content, artifact_key("leaderboard", name), f"The leaderboard on {name}")


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
            from hopbench.flows.run.worker import ScaledOut

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
            processes=self.options.processes,
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
            leave_leaderboard(evaluation, options.out, self.home)
        self.tracker.log(tracked_run(evaluation, options, self.started_at, files, annotations.tags, calls))
        for key in annotations.expired:
            self.tracker.drop_artifacts(key)


def run(
    options: RunOptions,
    flow: str = "evaluate",
    progress: Progress | None = None,
    annotate: Callable[[Finished], Annotations] | None = None,
    force: bool = False,
) -> Finished:
    """Build the graph if needed, run the strategies, write, report and track. Bad input is refused before all else.

    `annotate` may look at the evaluation before it is written; `force` replaces another benchmark's run in --out.
    """
    prepare_forks()
    home = Home.resolve()
    home.apply_environment()
    options.models.check()
    notes = options.models.reach(home)
    benchmark, strategies = _checked_input(options, home, force)
    from hopbench.eval.metrics import primary_metric
    from hopbench.flows.settings.foreign import close_foreign, tie_notes
    from hopbench.flows.settings.locks import only_run  # loads pandas

    notes = [*notes, *tie_notes(strategies)]

    progress = progress or NoProgress()
    progress = RunProgress(progress) if options.prefect else progress
    home.prepare()
    refuse_unwritable(options.out / "results.json")
    with ExitStack() as stack:
        stack.enter_context(only_run(options.out, benchmark.name))
        stack.callback(close_foreign, strategies.values())
        tables = Path(stack.enter_context(TemporaryDirectory(prefix="tables-", dir=home.scratch)))
        runtime = stack.enter_context(open_runtime(home)) if options.prefect else None
        after = None if runtime is None else runtime.answering
        experiment, metric = experiment_of(benchmark.name), primary_metric(benchmark)
        tracker = stack.enter_context(Tracker.start(home, experiment, metric, after))
        # Both are starting; embedding and indexing need neither.
        session = RunSession.open(
            options, home, benchmark, strategies, progress, runtime, tracker, stack, notes, tables
        )
        session.annotate = annotate
        shown = {"dataset": benchmark.name, "strategies": options.strategies, "out": options.out.name}
        finished = run_flow(flow, session.execute, runtime=runtime, parameters=shown, tags=[benchmark.name])
        tracker.close()
        session.unfinished.clear()
    finished.warnings.extend(tracker.notes)
    finished.links.update(tracker.links([f"{finished.key}/{label}" for label in finished.evaluation.trials]))
    return finished


def _checked_input(options: RunOptions, home: Home, force: bool) -> tuple[Benchmark, Mapping[str, Strategy]]:
    """Load the benchmark and the strategies, and refuse whatever would fail later."""
    benchmark = options.benchmark(home)
    if not force:
        from hopbench.flows.settings.locks import refuse_other_run  # loads pandas

        refuse_other_run(options.out, benchmark)
    from hopbench.flows.settings.foreign import check_foreign  # loads scipy; report a missing file first

    strategies = options.labels()  # loads scipy; report a missing file first
    check_foreign(strategies, benchmark)
    for strategy in strategies.values():
        strategy.identity()  # reads the files that parameters name
    options.fitted_on()
    options.checked_targets(list(strategies), benchmark.questions)
    options.asked_metrics()  # refuses a name that is unknown
    options.open_embedder(home)
    return benchmark, strategies
