"""Run strategies over a benchmark: check the input, start the servers, and rank, score, compare, track and report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Progress, Steps, run_flow
from hopbench.flows.run.finished import Finished, incomplete_labels, warnings_of
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation, Plan
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


@dataclass
class RunSession:
    """A run with its tracker and, once opened, its index and models; `execute` is the body of its flow.

    `notes` are warnings known before it began; files in `tables` are read by the tracker until it is closed.
    """

    options: RunOptions
    home: Home
    benchmark: Benchmark
    strategies: Mapping[str, Strategy]
    progress: Progress
    runtime: PrefectRuntime | None
    tracker: Tracker
    notes: Sequence[str]
    tables: Path
    annotate: Callable[[Finished], None] | None
    unfinished: Unfinished
    started_at: float = field(default_factory=time.time)
    graph: GraphPlan = field(init=False)
    index: Index = field(init=False)
    models: Models = field(init=False)

    def open(self, stack: ExitStack) -> None:
        """Embed and index, and open the models; `stack` closes them."""
        from hopbench.flows.graph.build import open_index
        from hopbench.flows.settings.models import open_models

        labels = len(self.strategies)
        self.progress.expect(labels + FIXED_STEPS + self.options.models.steps(labels))
        self.progress.begin("embed and index")
        graph = self.options.graph_plan(self.benchmark, self.home)
        self.index = open_index(self.options, graph, self.home)
        self.models = stack.enter_context(open_models(self.options.models, self.index.embedder, self.home))
        self.graph = self.options.with_reader(graph, self.models.reading.reader)
        self.models.serve(self.index)

    def execute(self, steps: Steps) -> Finished:
        """Build the graph, rank, score, annotate, write and track.

        The loop over labels is here rather than in a function of its own: a traceback from a strategy then shows the
        flow, the trial and the strategy, and little else.
        """
        from hopbench.eval.runs.evaluate import evaluate

        plan, warnings = self._plan()
        if self.options.runner and self.runtime is not None:
            from hopbench.flows.run.worker import rank_on_workers

            trials, shared_seconds = rank_on_workers(plan, self.options, self.home, self.unfinished, steps)
        else:
            shared_seconds, trials = steps("candidates", prepare, plan.parts), {}
            for label in plan.strategies:
                outcome = self.unfinished.get(plan.key_of(label))
                if outcome is None:
                    trial, name = plan.trial(label), f"trial {label}"
                    self.progress.begin(name)
                    steps.task(name, trial.run)()
                    self.progress.end()
                    outcome = trial.outcome
                    self.unfinished.put(plan.key_of(label), outcome)
                trials[label] = outcome
        evaluation = evaluate(plan, trials, shared_seconds, steps)
        key = f"{self.options.out.name} {self.started_at:.3f}".replace("'", "")
        finished = Finished(evaluation, key, self.started_at, incomplete_labels(evaluation), self.tracker.run_ids)
        finished.warnings += [*warnings, *self._warnings(evaluation)]
        if self.annotate is not None:
            self.progress.expect(1)
            steps("annotate", self.annotate, finished)
        self._record(finished, steps)
        return finished

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

    def _warnings(self, evaluation: Evaluation) -> list[str]:
        from hopbench.eval.benchmarks import shown_warnings
        from hopbench.eval.metrics import catalogue
        from hopbench.flows.settings.foreign import changed_answers
        from hopbench.retrieval.strategies.registry import registry

        asked = [question.question for question in self.benchmark.questions]
        every = "all" in (part.strip() for part in self.options.strategies.split(","))
        return [
            *self.notes,
            *shown_warnings(self.benchmark),
            *statements_of(self.benchmark.folder),
            *self.options.models.warnings(),
            *warnings_of(evaluation),
            *changed_answers(self.strategies, evaluation.trials, asked, self.index),
            *plugin_warnings(self.strategies.values()),
            # Plug-ins that would have ranked (`all`) or scored by default, had they loaded.
            *(registry().broken.values() if every else ()),
            *catalogue().registry.broken.values(),
        ]

    def _record(self, finished: Finished, steps: Steps) -> None:
        """Write the run's files and hand them to the tracker, which writes the labels while the files are written."""
        from hopbench.eval.report import write_run
        from hopbench.flows.run.payloads import run_facts, tracked_run, tracked_trials

        options, calls = self.options, self.models.calls()
        for payload in tracked_trials(finished, options, self.tables):
            self.tracker.log(payload)
        facts = run_facts(finished, options, calls)
        files = steps("write", lambda: write_run(finished.evaluation, options.out, facts))
        if self.runtime is not None:
            leave_leaderboard(finished.evaluation, options.out, self.home)
        self.tracker.log(tracked_run(finished, options, files, calls))
        for key in finished.expired:
            self.tracker.drop_artifacts(key)


def run(
    options: RunOptions,
    flow: str = "evaluate",
    progress: Progress | None = None,
    annotate: Callable[[Finished], None] | None = None,
    force: bool = False,
) -> Finished:
    """Build the graph if needed, run the strategies, write, report and track. Bad input is refused before all else.

    `annotate` may look at the evaluation, and add to it, before it is written; `force` replaces another benchmark's run
    in --out.
    """
    home = Home.resolve()
    home.apply_environment()
    options.models.check()
    notes = options.models.reach(home)
    benchmark, strategies = _checked_input(options, home, force)
    from hopbench.eval.metrics import primary_metric
    from hopbench.eval.trials.unfinished import Unfinished
    from hopbench.flows.settings.foreign import close_foreign, tie_notes
    from hopbench.flows.settings.locks import only_run  # loads pandas

    notes += tie_notes(strategies)
    progress = progress or Progress()
    progress.in_flow = options.prefect
    home.prepare()
    refuse_unwritable(options.out / "results.json")
    with ExitStack() as stack:
        stack.enter_context(only_run(options.out, benchmark.name))
        stack.callback(close_foreign, strategies.values())
        tables = Path(stack.enter_context(TemporaryDirectory(prefix="tables-", dir=home.scratch)))
        runtime = stack.enter_context(PrefectRuntime(home)) if options.prefect else None
        after, metric = None if runtime is None else runtime.answering, primary_metric(benchmark)
        tracker = stack.enter_context(Tracker.start(home, f"hopbench/{benchmark.name}", metric, after))
        # Both are starting; embedding and indexing need neither.
        unfinished = Unfinished(options.out / ".unfinished")
        session = RunSession(
            options, home, benchmark, strategies, progress, runtime, tracker, notes, tables, annotate, unfinished
        )
        session.open(stack)
        shown = {"dataset": benchmark.name, "strategies": options.strategies, "out": options.out.name}
        finished = run_flow(
            flow, session.execute, runtime=runtime, parameters=shown, tags=[benchmark.name], progress=progress
        )
        tracker.close()
        unfinished.clear()
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
