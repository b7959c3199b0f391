"""The flow `sweep`: the rounds of a search, each trial unless the ledger knows it; then table, report and MLflow."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.eval.trials.key import code_version, plugin_code, plugin_warnings
from hopbench.eval.types import Benchmark, fitted_on
from hopbench.flows.orchestration.pages import artifact_key, changed_champion, leave, link_in, table
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Progress, Steps, run_flow
from hopbench.flows.run.worker import check_runner
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import SWEEP
from hopbench.flows.settings.models import open_models
from hopbench.flows.settings.options import WorkerOptions
from hopbench.flows.sweeps.inputs import (
    check_champion,
    load_benchmarks,
    model_options,
    open_embedders,
    warnings_of_plan,
)
from hopbench.flows.sweeps.publisher import SweepOutcome, SweepPublisher
from hopbench.flows.sweeps.trials import Trials, hold
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.payload import SWEEPS_EXPERIMENT

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Result
    from hopbench.eval.trials.ledger import Ledger

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
    names = ", ".join(Path(dataset).name for dataset in plan.datasets)
    lines = [f"# {plan.file.stem}", f"{len(results)} configurations on {names}"]
    if reported is not None:
        on = f"{objective.metric} {reported.mean(objective.metric):.3f}"
        lines.append(f"The best on {Path(str(plan.report_on)).name}, on which it was not chosen: {on}")
    content = "\n\n".join([*lines, link_in(home, report), table(rows)])
    leave(content + "\n", artifact_key("sweep", plan.file.stem), "The best configurations")


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
    from hopbench.flows.settings.locks import refuse_run

    spread.changed(no_prefect=not prefect).check_workers(plan.content.llm)
    home = Home.resolve()
    home.apply_environment()
    benchmarks = load_benchmarks(plan, home)
    if champion:
        check_champion(plan, benchmarks)
    embedders = open_embedders(plan, home)
    models_named = model_options(plan.content)
    models_named.check()
    notes = models_named.reach(home)
    refuse_run(out)
    home.prepare()
    if spread.runner:
        check_runner(spread.runner)  # before a sweep is begun in MLflow
    sweep_id = hold(out / SWEEP, {**identity(plan, benchmarks), "batch": spread.batch})
    progress = progress or Progress()
    progress.in_flow = prefect
    progress.expect(expected_trials(plan, max(len(benchmarks[name].questions) for name in plan.datasets)))
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime(home)) if prefect else None
        after, metric = None if runtime is None else runtime.answering, plan.content.objective.metric
        tracker = stack.enter_context(Tracker.start(home, SWEEPS_EXPERIMENT, metric, after))
        from hopbench.eval.trials.ledger import Ledger

        ledger = stack.enter_context(Ledger.open(home.ledger))
        publisher = SweepPublisher(tracker, plan, sweep_id, ledger.sweep_started(sweep_id), home)
        stack.callback(publisher.close)
        models = stack.enter_context(open_models(models_named, embedders[0], home))
        trials = Trials(plan, benchmarks, home, out / SWEEP, runtime, models, ledger, publisher, progress, spread)
        body = partial(_swept, trials, out, champion)
        shown = {"file": plan.file.name, "out": out.name}
        swept = run_flow("sweep", body, runtime=runtime, parameters=shown, progress=progress)
        tracker.close()
        swept.links = tracker.links(publisher.best(swept.results))
        swept.warnings += [*notes, *tracker.notes]
    return swept


def _swept(trials: Trials, out: Path, champion: bool, steps: Steps) -> SweepOutcome:
    """Search, report, write and publish."""
    from hopbench.eval.sweep.results import ranked
    from hopbench.eval.sweep.search import search_of

    plan, content = trials.plan, trials.plan.content
    search = search_of(plan, max(len(trials.benchmarks[name].questions) for name in plan.datasets))
    by_candidate: dict[object, Result] = {}
    while (turn := search.ask()).candidates:
        found = trials.round(turn, plan.datasets, steps)
        search.tell(found)
        by_candidate |= {result.candidate.key: result for result in found}
    results = ranked(list(by_candidate.values()), content.objective, content.constraints)
    results = trials.finalists(results, plan.datasets, steps)
    reported = None
    if plan.report_on is not None:
        reported = trials.reported(results[0].candidate, plan.report_on, steps)
    if trials.reused:
        _log.info("%d of %d trials were finished before", trials.reused, trials.done)
    swept = _outcome(results, reported, trials)
    swept.files = _written(swept, trials.benchmarks, out)
    if trials.runtime is not None:
        leave_best(plan, results, reported, out / REPORT_FILE, trials.home)
    trials.publisher.finished(swept)
    if champion and not swept.incomplete and reported is not None:
        # In MLflow, then in the ledger, and then for automations: nobody hears of a champion that is not there.
        publisher, tracker = trials.publisher, trials.publisher.tracker
        publisher.crown(reported)
        tracker.close()
        run_ids = {trial: tracker.run_ids[key] for trial, key in publisher.keys.items() if key in tracker.run_ids}
        announced = trials.runtime is not None
        crown(trials.ledger, reported, run_ids, content.objective.metric, publisher.sweep_id, announced=announced)
    return swept


def _outcome(results: Sequence[Result], reported: Result | None, trials: Trials) -> SweepOutcome:
    """The finished sweep before its files are written, with selection bias and all warnings."""
    from hopbench.eval.sweep.results import eligible, selection, shortcomings

    plan, content = trials.plan, trials.plan.content
    incomplete = [
        f"{result.candidate.title} on {cell.dataset}: {', '.join(shortages)}"
        for result in [*results, *([reported] if reported else [])]
        for cell, record in result.records.items()
        if (shortages := shortcomings(record))
    ]
    warnings = [*trials.warnings, *warnings_of_plan(plan, trials.benchmarks)]
    if broken := results[0].violated(content.constraints):
        warnings.append(f"no configuration keeps the constraints; the best by the objective breaks {', '.join(broken)}")
    if repeated := plan.configurations - len(results):
        warnings.append(f"{repeated} of the configurations that the search suggested had been tried before")
    warnings += [*plugin_warnings(space.start for space in plan.spaces), *incomplete]
    bias = selection(eligible(results, content.constraints), content.objective.metric, content.seed)
    return SweepOutcome(
        plan,
        results,
        reported,
        bias,
        trials.done,
        trials.reused,
        warnings,
        calls=trials.models.calls(),
        incomplete=incomplete,
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


def _written(swept: SweepOutcome, benchmarks: Mapping[str, Benchmark], out: Path) -> list[Path]:
    from hopbench.eval.sweep.report import SweepReport, write_sweep_report
    from hopbench.eval.sweep.results import best_yaml, trials_table, write_preset

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
