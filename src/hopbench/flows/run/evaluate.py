"""Runs strategies over a benchmark: checks the input, starts the servers, and runs the session as a flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hopbench.eval.files import refuse_unwritable
from hopbench.flows.orchestration.flow_run import open_runtime
from hopbench.flows.orchestration.progress import NoProgress, Progress
from hopbench.flows.orchestration.run_progress import RunProgress
from hopbench.flows.orchestration.steps import run_flow
from hopbench.flows.run.completeness import Finished
from hopbench.flows.run.session import Annotations, RunSession
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.client import Tracker
from hopbench.flows.tracking.names import experiment_of
from hopbench.retrieval.support.forked import prepare_forks

if TYPE_CHECKING:
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.options import RunOptions
    from hopbench.retrieval.strategies.base import Strategy


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
    from hopbench.flows.settings.out_folder import only_run  # loads pandas

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
        from hopbench.flows.settings.out_folder import refuse_other_run  # loads pandas

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
