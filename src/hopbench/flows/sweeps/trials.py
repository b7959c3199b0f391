"""A sweep's trials: on which graph and questions, in which order, by which process, and in which folder."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.eval.types import Benchmark
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Progress, Steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import WorkerOptions
from hopbench.flows.sweeps.inputs import graph_options, trial_reading
from hopbench.flows.sweeps.publisher import SweepPublisher
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.results import Cell, Result
    from hopbench.eval.sweep.search import Round
    from hopbench.eval.sweep.space import Build, Candidate
    from hopbench.eval.trials.ledger import Ledger, TrialRecord
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.flows.settings.models import Models
    from hopbench.retrieval.graph.construction.plan import GraphPlan
    from hopbench.retrieval.index import Index


@dataclass(frozen=True)
class Identity:
    """All that decides a sweep's outcome, by name; `sweep.json` in its --out folder holds it."""

    file: Path

    def hold(self, settings: Mapping[str, Any]) -> str:
        """Add settings; returns the sweep's id. Raises InputError where one is there with another value."""
        known = self._known()
        wanted = json.loads(json.dumps(settings))
        changed = [line for name, value in wanted.items() for line in _changes(name, known.get(name, value), value)]
        if changed:
            differences = "; ".join(changed)
            raise InputError(
                f"{self.file.parent} holds a sweep with other settings, and trials of both must not be mixed: "
                f"{differences}. Name another --out (equal trials are still reused), or delete that folder"
            )
        write_atomically(self.file, json.dumps({**known, **wanted}, indent=1, ensure_ascii=False).encode())
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]

    def _known(self) -> dict[str, Any]:
        if not self.file.exists():
            return {}
        try:
            known: dict[str, Any] = dict(json.loads(self.file.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            remedy = "remove it, and the same command goes on with the trials that the ledger keeps"
            raise InputError(f"{self.file} is damaged ({reason}): {remedy}") from error
        return known


def _changes(name: str, old: Any, new: Any) -> list[str]:
    """What differs, down to the setting by itself."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(key for key in new if key not in old)]
        return [line for key in names for line in _changes(f"{name}.{key}", old.get(key), new.get(key))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(old[0], dict):
        pairs = zip(old, new, strict=True)
        return [line for place, pair in enumerate(pairs) for line in _changes(f"{name}.{place}", *pair)]
    return [f"{name} was {_short(old)}, is {_short(new)}"]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


MAX_OPEN_GRAPHS = 4
POLL_SECONDS = 0.2  # between looks at a trial that another process is running


@dataclass
class TrialGraphs:
    """The graphs and indices that trials need, the latest few kept open; `warnings` names graphs that changed."""

    plan: SweepPlan
    benchmarks: Mapping[str, Benchmark]
    home: Home
    runtime: PrefectRuntime | None
    progress: Progress
    identity: Identity
    models: Models
    batch: int | None = None
    processes: int = 1
    warnings: list[str] = field(default_factory=list)
    _kept: OrderedDict[tuple[str, Build], tuple[Index, str]] = field(default_factory=OrderedDict)

    def open(
        self, dataset: str, build: Build, cell: Cell, questions: int | None, steps: Steps, read: bool = False
    ) -> TrialContext:
        """The context of a cell: the graph built if needed, the questions drawn; `read` has the models read trials."""
        from hopbench.eval.sweep.context import TrialContext, sampled

        index, fingerprint = self._graph(dataset, build, steps)
        benchmark, content = self.benchmarks[dataset], self.plan.content
        drawn = sampled(benchmark, content.questions, cell.seed) if dataset != self.plan.report_on else benchmark
        subset = sampled(drawn, questions, cell.seed, nested=True)
        context = TrialContext(subset, benchmark.digest, index, fingerprint, cell.seed)
        context = replace(context, latency=content.timed, ragas=content.ragas, repeat=cell.repeat, batch=self.batch)
        context = replace(context, metrics=content.objective.asked, processes=self.processes)
        return replace(context, reading=trial_reading(content, self.models)) if read else context

    def graph(self, dataset: str, build: Build) -> tuple[GraphOptions, GraphPlan]:
        """What a worker needs to find the graph."""
        option = graph_options(self.plan, dataset, build)
        return option, option.graph_plan(self.benchmarks[dataset], self.home)

    def _graph(self, dataset: str, build: Build, steps: Steps) -> tuple[Index, str]:
        place = dataset, build
        if place not in self._kept:
            self._kept[place] = self._built(dataset, build, steps)
            while len(self._kept) > MAX_OPEN_GRAPHS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return self._kept[place]

    def _built(self, dataset: str, build: Build, steps: Steps) -> tuple[Index, str]:
        from hopbench.flows.graph.build import build_flow, open_index

        option, graph = self.graph(dataset, build)
        graph = option.with_reader(graph, self.models.reading.reader)
        self.progress.expect(1)
        index = steps("embed and index", lambda: open_index(option, graph, self.home))
        self.models.serve(index)
        index.floors.update(self.plan.floors)

        record, warnings = build_flow(graph, index, self.home, self.runtime, self.progress)
        fingerprint = str(record["fingerprint"])
        self.warnings += warnings
        self.identity.hold({f"graph of {self.benchmarks[dataset].name} ({build})": fingerprint})
        return index, fingerprint


@dataclass
class Trials:
    """Runs trials, or takes them from the ledger; `done` counts all, `reused` those from the ledger."""

    plan: SweepPlan
    graphs: TrialGraphs
    ledger: Ledger
    publisher: SweepPublisher
    progress: Progress
    spread: WorkerOptions = field(default_factory=WorkerOptions)
    done: int = 0
    reused: int = 0

    def finalists(self, results: Sequence[Result], datasets: Sequence[str], steps: Steps) -> list[Result]:
        """The results, best first; with answers and judgements of the best, where models read only those."""
        from hopbench.eval.sweep.search import Round

        count = self.plan.content.finalists
        best = [result.candidate for result in results if result.dropped_at is None][:count]
        if count is None or not self.plan.content.read:
            return list(results)
        self.progress.expect(len(best) * self.plan.each)
        read = {one.candidate.key: one for one in self.round(Round(best), datasets, steps, read=True)}
        return [read.get(result.candidate.key, result) for result in results]

    def round(self, turn: Round, datasets: Sequence[str], steps: Steps, read: bool | None = None) -> list[Result]:
        """The results of a round's candidates, in its order; `read` unless only finalists are."""
        from hopbench.eval.sweep.results import Result

        read = self.plan.content.finalists is None if read is None else read
        found: list[dict[Cell, TrialRecord]] = [{} for _ in turn.candidates]
        for dataset in datasets:
            for build in dict.fromkeys(candidate.build for candidate in turn.candidates):
                places = [i for i, candidate in enumerate(turn.candidates) if candidate.build == build]
                for cell in self._cells(dataset):
                    context = self.graphs.open(dataset, build, cell, turn.questions, steps, read)
                    todo = {place: turn.candidates[place] for place in places}
                    for place, record in self._records(dataset, context, cell, todo, steps).items():
                        found[place][cell] = record
        return [Result(*pair, turn.questions) for pair in zip(turn.candidates, found, strict=True)]

    def reported(self, winner: Candidate, dataset: str, steps: Steps) -> Result:
        """The winner on the data set that did not choose it."""
        from hopbench.eval.sweep.results import Result

        cell = self._cells(dataset)[0]
        self.progress.expect(1)
        context = self.graphs.open(dataset, winner.build, cell, None, steps, read=True)
        return Result(winner, {cell: self._records(dataset, context, cell, {0: winner}, steps, "report")[0]})

    def _cells(self, dataset: str) -> list[Cell]:
        from hopbench.eval.sweep.results import Cell

        name, content = self.graphs.benchmarks[dataset].name, self.plan.content
        return [Cell(name, seed, repeat) for seed in content.all_seeds for repeat in range(content.repeats)]

    def _records(
        self,
        dataset: str,
        context: TrialContext,
        cell: Cell,
        todo: Mapping[int, Candidate],
        steps: Steps,
        role: str = "sweep",
    ) -> dict[int, TrialRecord]:
        """Each candidate's record: from the ledger, run here, or awaited from the process that is running it.

        Those that share the most work follow each other; trials that another process is running are looked up
        again at the end.
        """
        result: dict[int, TrialRecord] = {}

        def take(place: int, ranked: TrialOutcome | None = None) -> None:
            record = self._record(context, todo[place], steps, ranked)
            if record is not None:
                result[place] = record
                self.done += 1
                self.publisher.trial(todo[place], cell, context, record, role)

        left = sorted(todo, key=lambda place: todo[place].strategy.shared_work())
        while left:
            before = len(result)
            if self.spread.runner:
                self._on_workers(dataset, context, {place: todo[place] for place in left}, take)
            for place in left:
                if place not in result:
                    take(place)
            left = [place for place in left if place not in result]
            if left and len(result) == before:
                time.sleep(POLL_SECONDS)
        return result

    def _on_workers(
        self,
        dataset: str,
        context: TrialContext,
        todo: Mapping[int, Candidate],
        take: Callable[[int, TrialOutcome | None], None],
    ) -> None:
        """Claim the trials that no process has claimed, and rank them on the runner's workers."""
        from hopbench.flows.sweeps.worker import rank_on_workers

        strategies = {place: one.strategy for place, one in todo.items()}
        mine = {place: one for place, one in strategies.items() if self.ledger.claim(context.trial_id(one))}
        if not mine:
            return
        graph = self.graphs.graph(dataset, next(iter(todo.values())).build)
        ranked: dict[int, TrialOutcome] = {}
        # Single calls are timed when the workers are gone.
        then = ranked.__setitem__ if context.latency else take
        rank_on_workers(self.spread, self.graphs.home, context, graph, mine, then)
        for place, outcome in ranked.items():
            take(place, outcome)

    def _record(
        self, context: TrialContext, candidate: Candidate, steps: Steps, ranked: TrialOutcome | None = None
    ) -> TrialRecord | None:
        from hopbench.eval.sweep.results import is_complete

        name = context.trial_id(candidate.strategy)
        record = self.ledger.get(name)
        if record is None and self.ledger.claim(name):
            shown = f"{context.benchmark.name} {candidate.title}"
            record = steps(shown, lambda: context.run(candidate.strategy, ranked))
            if is_complete(record):  # else the next run does it again
                self.ledger.put(record)
        elif record is not None:
            self.reused += 1
            self.progress.end()
        if record is None:
            return None
        return replace(record, questions=record.questions.drop(columns="ranked_ids", errors="ignore"))
