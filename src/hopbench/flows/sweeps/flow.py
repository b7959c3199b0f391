"""The flow `sweep`: the rounds of a search, each trial unless the ledger knows it; then table, report and MLflow."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.eval.trials.key import code_version, plugin_code, plugin_warnings
from hopbench.eval.types import Benchmark, fitted_on
from hopbench.flows.orchestration.pages import artifact_key, changed_champion, leave, link_in, table
from hopbench.flows.orchestration.runtime import PrefectRuntime, open_runtime
from hopbench.flows.orchestration.steps import NoProgress, Progress, ProgressSteps, RunProgress, Steps, run_flow
from hopbench.flows.orchestration.task_pool import TaskPool
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import SWEEP
from hopbench.flows.settings.models import ModelOptions, Models, open_models
from hopbench.flows.settings.options import WorkerOptions
from hopbench.flows.sweeps.inputs import (
    check_champion,
    incomplete_trials,
    load_benchmarks,
    model_options,
    open_embedders,
    warnings_of_plan,
)
from hopbench.flows.sweeps.publisher import SweepPublisher
from hopbench.flows.sweeps.trials import Identity, TrialGraphs, Trials
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.payload import SWEEPS_EXPERIMENT

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Result, Selection
    from hopbench.eval.trials.ledger import Ledger
    from hopbench.retrieval.embedding.base import Embedder

SHOWN = 10


def leave_best(plan: SweepPlan, results: list[Result], reported: Result | None, report: Path, home: Home) -> None:
    """Leave the best configurations with a link to the report; only inside a flow."""
    objective = plan.content.objective
    metrics = list(dict.fromkeys((objective.metric, objective.also)))
    rows: list[dict[str, Any]] = [
        {
            "strategy": result.candidate.strategy.name,
            "varied": ", ".join(f"{name}={value}" for name, value in result.candidate.varied.items()) or "–",
            **{name: result.mean(name) for name in metrics},
            "dropped after": "–" if result.dropped_at is None else f"{result.dropped_at} questions",
        }
        for result in results[:SHOWN]
    ]
    lines = [f"# {plan.file.stem}", f"{len(results)} configurations on {', '.join(map(_name, plan.datasets))}"]
    if reported is not None:
        on = f"{objective.metric} {reported.mean(objective.metric):.3f}"
        lines.append(f"The best on {_name(str(plan.report_on))}, on which it was not chosen: {on}")
    content = "\n\n".join([*lines, link_in(home, report), table(rows)])
    leave(content + "\n", artifact_key("sweep", plan.file.stem), "The best configurations")


def _name(dataset: str) -> str:
    return Path(dataset).name


def crown(
    ledger: Ledger, winner: Result, run_ids: Mapping[str, str], metric: str, sweep: str, *, announced: bool
) -> None:
    """Record the winner in the ledger with its runs in MLflow (trial id → run id), which must be there by now.

    If `announced`, which needs a flow of Prefect, emit an event for each benchmark whose champion changed.
    """
    from hopbench.eval.trials.ledger import Champion

    for name, records in winner.by_dataset.items():
        trial, digest = records[0].trial_id, str(records[0].settings["dataset"])
        known = ledger.champion_of(digest)
        ledger.set_champion(Champion(digest, trial, winner.candidate.label, run_ids[trial], time.time()))
        if announced and (known is None or known.trial_id != trial):
            facts = {"sweep": sweep, "metric": metric, "value": winner.mean(metric)}
            changed_champion(name, digest, winner.candidate.label, known.label if known else None, facts)


TABLE_FILE = "trials.parquet"
BEST_FILE = "best.yaml"
REPORT_FILE = "report.html"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SweepOutcome:
    """A finished sweep: results best first, how many trials were reused, and warnings.

    `reported` is the winner on the set it was not chosen on, `bias` how much its lead is due to the choice, `calls` the
    calls to language models by purpose. `incomplete` names trials that failed or of which models answered too little.
    `links` are addresses of MLflow's pages by name.
    """

    plan: SweepPlan
    results: Sequence[Result]
    reported: Result | None
    bias: Selection | None
    trials: int
    reused: int
    warnings: Sequence[str]
    files: Sequence[Path]
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    incomplete: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)


def sweep(
    plan: SweepPlan,
    out: Path,
    *,
    prefect: bool = True,
    champion: bool = False,
    progress: Progress | None = None,
    spread: WorkerOptions = WorkerOptions(),  # noqa: B008 - frozen
) -> SweepOutcome:
    """Run what is not finished of a sweep, over the workers of `spread`, write its files to `out`, and track it."""
    from hopbench.eval.sweep.search import expected_trials

    spread.changed(no_prefect=not prefect).check_workers(plan.content.llm)
    home = Home.resolve()
    home.apply_environment()
    benchmarks, embedders, models_named, notes = _checked_input(plan, home, out, champion)
    home.prepare()
    if spread.runner:
        TaskPool(spread.runner, spread.workers, home).check_address()  # before a sweep is begun in MLflow
    sweep_id = Identity(out / SWEEP).hold({**identity(plan, benchmarks), "batch": spread.batch})
    progress = progress or NoProgress()
    progress = RunProgress(progress) if prefect else progress
    progress.expect(expected_trials(plan, max(len(benchmarks[name].questions) for name in plan.datasets)))
    with ExitStack() as stack:
        runtime = stack.enter_context(open_runtime(home)) if prefect else None
        after = None if runtime is None else runtime.answering
        metric = plan.content.objective.metric
        tracker = stack.enter_context(Tracker.start(home, SWEEPS_EXPERIMENT, metric, after))
        from hopbench.eval.trials.ledger import Ledger

        ledger = stack.enter_context(Ledger.open(home.ledger))
        publisher = SweepPublisher(tracker, plan, sweep_id, ledger.sweep_started(sweep_id), home)
        stack.callback(publisher.close)
        models = stack.enter_context(open_models(models_named, embedders[0], home))
        session = _SweepSession(plan, home, out, ledger, publisher, progress, runtime, models, champion, spread)
        swept = run_flow(
            "sweep",
            lambda steps: session.execute(benchmarks, steps),
            runtime=runtime,
            parameters={"file": plan.file.name, "out": out.name},
        )
        tracker.close()
        links = tracker.links(publisher.best(swept.results))
        swept = replace(swept, warnings=[*swept.warnings, *notes, *tracker.notes], links=links)
    return swept


def _checked_input(
    plan: SweepPlan, home: Home, out: Path, champion: bool
) -> tuple[Mapping[str, Benchmark], Sequence[Embedder], ModelOptions, Sequence[str]]:
    """Load data sets and embedders and refuse whatever would fail later; the last are notes about the models."""
    from hopbench.flows.settings.locks import refuse_run

    benchmarks = load_benchmarks(plan, home)
    if champion:
        check_champion(plan, benchmarks)
    embedders = open_embedders(plan, home)
    models_named = model_options(plan.content)
    models_named.check()
    notes = models_named.reach(home)
    refuse_run(out)
    return benchmarks, embedders, models_named, notes


@dataclass
class _SweepSession:
    plan: SweepPlan
    home: Home
    out: Path
    ledger: Ledger
    publisher: SweepPublisher
    progress: Progress
    runtime: PrefectRuntime | None
    models: Models
    champion: bool
    spread: WorkerOptions

    def execute(self, benchmarks: Mapping[str, Benchmark], flow_steps: Steps) -> SweepOutcome:
        from hopbench.eval.sweep.results import ranked
        from hopbench.eval.sweep.search import search_of

        steps = ProgressSteps(flow_steps, self.progress)
        content = self.plan.content
        identity = Identity(self.out / SWEEP)
        graphs = TrialGraphs(self.plan, benchmarks, self.home, self.runtime, self.progress, identity, self.models)
        graphs.batch = self.spread.batch
        graphs.processes = self.spread.processes
        trials = Trials(self.plan, graphs, self.ledger, self.publisher, self.progress, self.spread)
        search = search_of(self.plan, max(len(benchmarks[name].questions) for name in self.plan.datasets))
        by_candidate: dict[object, Result] = {}
        while (turn := search.ask()).candidates:
            results = trials.round(turn, self.plan.datasets, steps)
            search.tell(results)
            by_candidate |= {result.candidate.key: result for result in results}
        results = ranked(list(by_candidate.values()), content.objective, content.constraints)
        results = trials.finalists(results, self.plan.datasets, steps)
        reported = None
        if self.plan.report_on is not None:
            reported = trials.reported(results[0].candidate, self.plan.report_on, steps)
        if trials.reused:
            _log.info("%d of %d trials were finished before", trials.reused, trials.done)
        swept = self._outcome(results, reported, trials, [*graphs.warnings, *warnings_of_plan(self.plan, benchmarks)])
        files = _written(swept, benchmarks, self.out)
        if self.runtime is not None:
            leave_best(self.plan, results, reported, self.out / REPORT_FILE, self.home)
        self.publisher.finished(results, reported, swept.bias, files, swept.calls)
        if self.champion and not swept.incomplete and reported is not None:
            self._crown(reported)
        return replace(swept, files=files)

    def _crown(self, winner: Result) -> None:
        """In MLflow, then in the ledger, and then for automations: nobody hears of a champion that is not there."""
        tracker = self.publisher.tracker
        self.publisher.crown(winner)
        tracker.close()
        run_ids = {trial: tracker.run_ids[key] for trial, key in self.publisher.keys.items() if key in tracker.run_ids}
        metric, sweep_id = self.plan.content.objective.metric, self.publisher.sweep_id
        crown(self.ledger, winner, run_ids, metric, sweep_id, announced=self.runtime is not None)

    def _outcome(
        self, results: Sequence[Result], reported: Result | None, trials: Trials, warnings: Sequence[str]
    ) -> SweepOutcome:
        """The finished sweep before its files are written, with selection bias and all warnings."""
        from hopbench.eval.sweep.results import eligible, selection

        content = self.plan.content
        incomplete = incomplete_trials([*results, *([reported] if reported else [])])
        return SweepOutcome(
            self.plan,
            results,
            reported,
            selection(eligible(results, content.constraints), content.objective.metric, content.seed),
            trials.done,
            trials.reused,
            [
                *warnings,
                *_warnings_after(self.plan, results),
                *plugin_warnings(space.start for space in self.plan.spaces),
                *incomplete,
            ],
            (),
            self.models.calls(),
            incomplete,
        )


def identity(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> dict[str, Any]:
    """What identifies the sweep: the file's settings, the strategies' parameters, the data and the code."""
    unset = {"reasoning_effort", "completion_tokens"} - set(plan.content.asked)
    unidentifying = {"datasets", "report_on", "write_preset", "budget", *unset}
    return {
        "name": plan.file.stem,
        **plan.content.model_dump(mode="json", exclude=unidentifying),
        "start": [space.start.spec() for space in plan.spaces],
        "data": {benchmarks[name].name: benchmarks[name].digest for name in plan.datasets},
        "report_on": {benchmarks[name].name: benchmarks[name].digest for name in (plan.report_on,) if name},
        "code": code_version(),
        **({"plugins": plugins} if (plugins := plugin_code(space.start for space in plan.spaces)) else {}),
    }


def _warnings_after(plan: SweepPlan, results: Sequence[Result]) -> list[str]:
    lines = []
    if broken := results[0].violated(plan.content.constraints):
        lines.append(f"no configuration keeps the constraints; the best by the objective breaks {', '.join(broken)}")
    if repeated := plan.configurations - len(results):
        lines.append(f"{repeated} of the configurations that the search suggested had been tried before")
    return lines


def _written(swept: SweepOutcome, benchmarks: Mapping[str, Benchmark], out: Path) -> list[Path]:
    from hopbench.eval.sweep.report import SweepReport, write_sweep_report
    from hopbench.eval.sweep.results import trials_table
    from hopbench.eval.sweep.winner import best_yaml, write_preset

    plan, results = swept.plan, swept.results
    buffer = io.BytesIO()
    trials_table(results, plan.content.constraints, swept.reported).to_parquet(buffer, index=False)
    files = [out / TABLE_FILE, out / BEST_FILE, out / REPORT_FILE]
    write_atomically(files[0], buffer.getvalue())
    sets = [benchmarks[name] for name in plan.datasets]
    tuned_on = [fitted_on(one) for one in sets]
    write_atomically(files[1], best_yaml(plan, results[0], tuned_on).encode())
    ready = best_yaml(plan, results[0], [replace(one, questions=frozenset()) for one in tuned_on])  # to be read
    report = SweepReport(plan, results, swept.reported, swept.bias, swept.warnings, ready, swept.calls)
    write_sweep_report(report, files[2])
    if plan.preset is not None:
        write_preset(plan.preset, plan, results[0], {one.name: one for one in sets})
        files.append(plan.preset)
    return files
