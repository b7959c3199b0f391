"""A sweep's trials: on which graph and questions, in which order, by which process, on the workers of a task runner.

Workers only rank. Claims, scores, latency, the ledger and language models stay with the process that submitted the
work, so a trial is the same wherever it was ranked; it is recorded as soon as its last unit is back.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically
from hopbench.eval.trials.trial import TrialOutcome, merged, run_unit
from hopbench.eval.types import Benchmark
from hopbench.flows.orchestration.runtime import PrefectRuntime
from hopbench.flows.orchestration.steps import Progress, Steps
from hopbench.flows.run.worker import check_same_code, code_here, open_benchmark, run_units, workers_of
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import WorkerOptions
from hopbench.flows.sweeps.inputs import graph_options
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
    from hopbench.retrieval.index import Batch, Index
    from hopbench.retrieval.strategies.base import Strategy

MAX_OPEN_GRAPHS = 4
POLL_SECONDS = 0.2  # between looks at a trial that another process is running
UNITS_EACH = 4  # of a worker, at least: so that none waits long for the last
MAX_SHOWN = 60  # characters of a setting

TrialUnit = tuple[int, tuple[int, ...]]
"""A batch of questions to rank with several strategies, by their numbers in the round."""


def hold(file: Path, settings: Mapping[str, Any]) -> str:
    """Add settings to those that decide a sweep's outcome, which `sweep.json` in its --out folder has by name.

    Returns the sweep's id. Raises InputError where one is there with another value.
    """
    known: dict[str, Any] = {}
    if file.exists():
        try:
            known = dict(json.loads(file.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            remedy = "remove it, and the same command goes on with the trials that the ledger keeps"
            raise InputError(f"{file} is damaged ({reason}): {remedy}") from error
    wanted = json.loads(json.dumps(settings))
    changed = [line for name, value in wanted.items() for line in _changes(name, known.get(name, value), value)]
    if changed:
        differences = "; ".join(changed)
        raise InputError(
            f"{file.parent} holds a sweep with other settings, and trials of both must not be mixed: "
            f"{differences}. Name another --out (equal trials are still reused), or delete that folder"
        )
    write_atomically(file, json.dumps({**known, **wanted}, indent=1, ensure_ascii=False).encode())
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]


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
    was, now = (json.dumps(value, ensure_ascii=False) for value in (old, new))
    cut = [text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}…" for text in (was, now)]
    return [f"{name} was {cut[0]}, is {cut[1]}"]


@dataclass
class Trials:
    """Runs a sweep's trials on the graphs they need, the latest few kept open, or takes them from the ledger.

    `done` counts all trials, `reused` those from the ledger; `warnings` names graphs that changed. `settings` is the
    file of `hold`.
    """

    plan: SweepPlan
    benchmarks: Mapping[str, Benchmark]
    home: Home
    settings: Path
    runtime: PrefectRuntime | None
    models: Models
    ledger: Ledger
    publisher: SweepPublisher
    progress: Progress
    spread: WorkerOptions
    done: int = 0
    reused: int = 0
    warnings: list[str] = field(default_factory=list)
    _opened: OrderedDict[tuple[str, Build], tuple[Index, str]] = field(default_factory=OrderedDict)

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
                    context = self._context(dataset, build, cell, turn.questions, steps, read)
                    todo = {place: turn.candidates[place] for place in places}
                    for place, record in self._records(dataset, context, cell, todo, steps).items():
                        found[place][cell] = record
        return [Result(*pair, turn.questions) for pair in zip(turn.candidates, found, strict=True)]

    def reported(self, winner: Candidate, dataset: str, steps: Steps) -> Result:
        """The winner on the data set that did not choose it."""
        from hopbench.eval.sweep.results import Result

        cell = self._cells(dataset)[0]
        self.progress.expect(1)
        context = self._context(dataset, winner.build, cell, None, steps, read=True)
        return Result(winner, {cell: self._records(dataset, context, cell, {0: winner}, steps, "report")[0]})

    def _cells(self, dataset: str) -> list[Cell]:
        from hopbench.eval.sweep.results import Cell

        name, content = self.benchmarks[dataset].name, self.plan.content
        return [Cell(name, seed, repeat) for seed in content.all_seeds for repeat in range(content.repeats)]

    def _context(
        self, dataset: str, build: Build, cell: Cell, questions: int | None, steps: Steps, read: bool
    ) -> TrialContext:
        """What a cell's trials share: the graph, built if needed, and the questions; `read` has models read trials."""
        from hopbench.eval.sweep.context import TrialContext, sampled

        index, fingerprint = self._graph(dataset, build, steps)
        benchmark, content = self.benchmarks[dataset], self.plan.content
        drawn = sampled(benchmark, content.questions, cell.seed) if dataset != self.plan.report_on else benchmark
        context = TrialContext(
            sampled(drawn, questions, cell.seed, nested=True),
            benchmark.digest,
            index,
            fingerprint,
            cell.seed,
            latency=content.timed,
            ragas=content.ragas,
            repeat=cell.repeat,
            batch=self.spread.batch,
            metrics=content.objective.asked,
            processes=self.spread.processes,
        )
        if not read:
            return context
        # The closed-book row is the same for all trials: only `run` has it.
        reader = self.models.reading.reader if content.answered else None
        reading = replace(self.models.reading, reader=reader, finalists=None, closed_book=False)
        return replace(context, reading=reading)

    def _graph(self, dataset: str, build: Build, steps: Steps) -> tuple[Index, str]:
        from hopbench.flows.graph.build import build_flow, open_index

        place = dataset, build
        if place not in self._opened:
            option, graph = self._planned(dataset, build)
            graph = option.with_reader(graph, self.models.reading.reader)
            self.progress.expect(1)
            index = steps("embed and index", lambda: open_index(option, graph, self.home))
            self.models.serve(index)
            index.floors.update(self.plan.floors)
            record, warnings = build_flow(graph, index, self.home, self.runtime, self.progress)
            self.warnings += warnings
            fingerprint = str(record["fingerprint"])
            hold(self.settings, {f"graph of {self.benchmarks[dataset].name} ({build})": fingerprint})
            self._opened[place] = index, fingerprint
            while len(self._opened) > MAX_OPEN_GRAPHS:
                self._opened.popitem(last=False)
        self._opened.move_to_end(place)
        return self._opened[place]

    def _planned(self, dataset: str, build: Build) -> tuple[GraphOptions, GraphPlan]:
        option = graph_options(self.plan, dataset, build)
        return option, option.graph_plan(self.benchmarks[dataset], self.home)

    def _records(
        self,
        dataset: str,
        context: TrialContext,
        cell: Cell,
        todo: Mapping[int, Candidate],
        steps: Steps,
        role: str = "sweep",
    ) -> dict[int, TrialRecord]:
        """Each candidate's record: from the ledger, run here, or awaited from the process that is running it."""
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
        strategies = {place: one.strategy for place, one in todo.items()}
        mine = {place: one for place, one in strategies.items() if self.ledger.claim(context.trial_id(one))}
        if not mine:
            return
        graph = self._planned(dataset, next(iter(todo.values())).build)
        ranked: dict[int, TrialOutcome] = {}
        # Single calls are timed when the workers are gone.
        then = ranked.__setitem__ if context.latency else take
        rank_on_workers(self.spread, self.home, context, graph, mine, then)
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


def rank_on_workers(
    spread: WorkerOptions,
    home: Home,
    context: TrialContext,
    graph: tuple[GraphOptions, GraphPlan],
    strategies: Mapping[int, Strategy],
    then: Callable[[int, TrialOutcome], None],
) -> None:
    """Rank all questions with each strategy; call `then` with a strategy's number as soon as its trial is complete."""
    options, plan = graph
    parts = context.parts
    back: dict[int, dict[int, TrialOutcome]] = {number: {} for number in strategies}

    def take(unit: TrialUnit, done: Mapping[int, TrialOutcome]) -> None:
        for number, outcome in done.items():
            back[number][unit[0]] = outcome
            if len(back[number]) == len(parts):
                found = back.pop(number)
                then(number, merged([found[part] for part in range(len(parts))]))

    elsewhere = partial(
        _open_trials,
        options.absolute(),
        home.root,
        (plan.namespace, plan.build_key),
        code_here({type(one): one for one in strategies.values()}.values()),
        [question.id for question in context.benchmark.questions],
        context.batch,
        dict(context.index.floors),
        strategies,
    )
    units = {
        (part, numbers): f"{strategies[numbers[0]].name} trials {', '.join(map(str, numbers))} batch {part}"
        for part, numbers in units_of(strategies, len(parts), workers_of(spread))
    }
    run_units(spread, home, elsewhere, partial(_rank_unit, parts, strategies), units, take)


def units_of(strategies: Mapping[int, Strategy], parts: int, workers: int) -> list[TrialUnit]:
    """Cut the work into units: trials that share a traversal stay together unless that would leave workers idle."""
    most = max(1, ceil(len(strategies) * parts / (workers * UNITS_EACH)))
    numbers = sorted(strategies, key=lambda number: strategies[number].shared_work())
    groups = [tuple(group) for _, group in groupby(numbers, key=lambda number: strategies[number].shared_work())]
    cut = [group[begin : begin + most] for group in groups for begin in range(0, len(group), most)]
    return [(part, group) for group in cut for part in range(parts)]


def _open_trials(
    options: GraphOptions,
    home: Path,
    graph: tuple[str, str],
    code: Mapping[str, str],
    questions: Sequence[str],
    batch: int | None,
    floors: Mapping[tuple[str, str], float],
    strategies: Mapping[int, Strategy],
) -> Callable[[TrialUnit], dict[int, TrialOutcome]]:
    """In a worker: read data set and graph; `floors` are the lower bounds down to which trials read edges."""
    from hopbench.eval.trials.trial import batches

    check_same_code(code, strategies.values())
    benchmark, index = open_benchmark(options, home, *graph)
    index.floors.update(floors)
    asked = {question.id: question.question for question in benchmark.questions}
    return partial(_rank_unit, batches(index, [asked[name] for name in questions], batch), strategies)


def _rank_unit(parts: Sequence[Batch], strategies: Mapping[int, Strategy], unit: TrialUnit) -> dict[int, TrialOutcome]:
    """Rank a batch with each strategy; of a hit, only the scored fields come back."""
    from hopbench.retrieval.context import Budget

    part, numbers = unit
    result = {}
    for number in numbers:
        strategy = strategies[number]
        done = run_unit(strategy.name, strategy, parts[part], Budget())
        done.hits.clear()
        done.notes.clear()
        result[number] = done
    return result
