"""The flow `sweep`: each candidate on each data set, unless the ledger knows the trial; then table, preset, MLflow."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.files import write_atomically
from eval.types import Benchmark
from eval.version import code_version
from flows.home import Home
from flows.models import ModelOptions, Models, open_models
from flows.options import GraphOptions
from flows.prefect_runtime import PrefectRuntime
from flows.report_progress import Report, ReportedSteps, Silent
from flows.steps import Steps, run_flow
from flows.sweep_record import Tracked
from flows.tracking import Tracker
from retrieval.errors import InputError

if TYPE_CHECKING:
    from eval.ledger import Ledger, TrialRecord
    from eval.sweep import Arena, Result
    from eval.sweep_plan import SweepPlan

EXPERIMENT = "hopbench/sweeps"
TABLE_FILE = "trials.parquet"
STEPS_A_DATASET = 3  # embed and index, fingerprint, candidates; building adds its own


@dataclass(frozen=True)
class Swept:
    """A finished sweep: results best first, how many trials were there already, and what a reader should know."""

    plan: SweepPlan
    results: Sequence[Result]
    reused: int
    warnings: Sequence[str]
    files: Sequence[Path]


def sweep(plan: SweepPlan, out: Path, *, prefect: bool = True, report: Report | None = None) -> Swept:
    """Run what is not finished of a sweep, write `out`/trials.parquet and the preset it asks for, and track it."""
    home = Home.resolve()
    home.apply_environment()
    options = [_options(plan, dataset) for dataset in plan.datasets]
    benchmarks = _benchmarks(plan, options)
    embedder = options[0].open_embedder(home)
    ModelOptions(llm=plan.content.llm).check()
    home.prepare()
    write_atomically(out / ".writable", b"")
    (out / ".writable").unlink()
    report = report or Silent()
    report.expect(len(plan.datasets) * STEPS_A_DATASET + plan.trials)
    with ExitStack() as stack:
        runtime = stack.enter_context(PrefectRuntime.start(home)) if prefect else None
        tracker = stack.enter_context(Tracker.start(home, EXPERIMENT))
        from eval.ledger import Ledger

        ledger = stack.enter_context(Ledger.open(home.ledger))
        sweep_id = _sweep_id(plan, benchmarks)
        tracked = Tracked(tracker, plan, sweep_id, ledger.sweep_started(sweep_id))
        models = stack.enter_context(open_models(ModelOptions(llm=plan.content.llm), embedder, home))
        run = _Run(plan, home, ledger, tracked, report, runtime, models)

        def body(steps: Steps) -> Swept:
            return run.whole(options, benchmarks, out, steps)

        swept = run_flow("sweep", body, runtime=runtime, parameters={"file": plan.file.name, "out": out.name})
        tracker.close()
    return swept


@dataclass
class _Run:
    plan: SweepPlan
    home: Home
    ledger: Ledger
    tracked: Tracked
    report: Report
    runtime: PrefectRuntime | None
    models: Models
    reused: int = 0

    def whole(
        self, options: Sequence[GraphOptions], benchmarks: Sequence[Benchmark], out: Path, flow_steps: Steps
    ) -> Swept:
        from eval.sweep import Result, ranked

        steps = ReportedSteps(flow_steps, self.report)
        warnings = [_role_warning(one) for one in benchmarks if one.role == "report"]
        found: list[dict[str, TrialRecord]] = [{} for _ in self.plan.candidates]
        for option, benchmark in zip(options, benchmarks, strict=True):
            arena, told = self._arena(option, benchmark, steps)
            warnings += told
            for place, record in enumerate(self._trials(arena, steps)):
                found[place][benchmark.name] = record
        pairs = zip(self.plan.candidates, found, strict=True)
        results = ranked([Result(*pair) for pair in pairs], self.plan.content.objective)
        files = _written(self.plan, results, benchmarks, out)
        self.tracked.finished(results, files)
        return Swept(self.plan, results, self.reused, warnings, files)

    def _arena(self, option: GraphOptions, benchmark: Benchmark, steps: Steps) -> tuple[Arena, list[str]]:
        from eval.sweep import Arena, sampled
        from flows.build_graph import built_graph, open_index

        graph = option.graph_plan(benchmark, self.home)
        graph = option.with_reader(graph, self.models.reading.reader)
        index = steps("embed and index", lambda: open_index(option, graph, self.home))
        self.models.serve(index)

        def build(inner: Steps) -> tuple[str, list[str]]:
            record, warnings = built_graph(graph, index, self.home, ReportedSteps(inner, self.report))
            return str(record["fingerprint"]), warnings

        fingerprint, warnings = run_flow(
            "build_graph", build, runtime=self.runtime, parameters={"graph": graph.namespace}
        )
        content = self.plan.content
        subset = sampled(benchmark, content.questions, content.seed)
        arena = Arena(subset, benchmark.digest, index, fingerprint, content.seed)
        steps("candidates", lambda: arena.parts)
        return arena, warnings

    def _trials(self, arena: Arena, steps: Steps) -> Iterator[TrialRecord]:
        from eval.ledger import trial_id

        for candidate in self.plan.candidates:
            record = self.ledger.get(trial_id(**arena.settings(candidate.strategy)))
            if record is None:
                name = " without ".join([f"{arena.benchmark.name} {candidate.label}", *candidate.without])
                record = steps(name, lambda: arena.run(candidate.strategy))  # noqa: B023 - called at once
                self.ledger.put(record)
            else:
                self.reused += 1
                self.report.end()
            self.tracked.trial(candidate, arena, record)
            yield record


def _options(plan: SweepPlan, dataset: str) -> GraphOptions:
    content = plan.content
    return GraphOptions(dataset=dataset, embedder=content.embedder, extractor=content.extractor, llm=content.llm)


def _benchmarks(plan: SweepPlan, options: Sequence[GraphOptions]) -> list[Benchmark]:
    try:
        benchmarks = [option.benchmark() for option in options]
    except InputError as error:
        raise InputError(f"{plan.file}: datasets: {error}") from error
    for benchmark in benchmarks:
        if not any(question.gold for question in benchmark.questions):
            raise InputError(f"{plan.file}: datasets: {benchmark.name} has no gold, so no trial can be scored on it")
    names = [benchmark.name for benchmark in benchmarks]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{plan.file}: datasets: two are named {', '.join(twice)}: rename a folder")
    return benchmarks


def _role_warning(benchmark: Benchmark) -> str:
    return (
        f"{benchmark.name} is for reporting: parameters chosen on it make its figures too good. Sweep on a set with "
        "the role tune, and run the winner here once"
    )


def _sweep_id(plan: SweepPlan, benchmarks: Sequence[Benchmark]) -> str:
    """Names the sweep: its configurations, data, objective and the code; the same when it is resumed."""
    specs = [[one.strategy.name, one.strategy.spec(), list(one.without)] for one in plan.candidates]
    digests = [benchmark.digest for benchmark in benchmarks]
    parts = [plan.file.stem, specs, digests, plan.content.model_dump(exclude={"strategy", "datasets"}), code_version()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _written(plan: SweepPlan, results: Sequence[Result], benchmarks: Sequence[Benchmark], out: Path) -> list[Path]:
    from eval.preset_file import write_preset
    from eval.sweep import trials_table

    buffer = io.BytesIO()
    trials_table(results).to_parquet(buffer, index=False)
    files = [out / TABLE_FILE]
    write_atomically(files[0], buffer.getvalue())
    if plan.preset is not None:
        write_preset(plan.preset, plan, results[0], {benchmark.name: benchmark for benchmark in benchmarks})
        files.append(plan.preset)
    return files
