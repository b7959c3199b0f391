"""A sweep's trials on the workers of a task runner: a unit is a batch of questions × trials that share their traversal.

Workers only rank. Claims, scores, latency, the ledger and language models stay with the process that submitted the
work, so a trial is the same wherever it was ranked; it is recorded as soon as its last unit is back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.trials.trial import TrialOutcome, merged, run_unit
from hopbench.flows.orchestration.task_pool import TaskPool, drop_context, share_context
from hopbench.flows.run.worker import check_same_code, code_here, open_benchmark
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import WorkerOptions

if TYPE_CHECKING:
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.retrieval.graph.construction.plan import GraphPlan
    from hopbench.retrieval.index import Batch
    from hopbench.retrieval.strategies.base import Strategy

UNITS_EACH = 4  # of a worker, at least: so that none waits long for the last


@dataclass(frozen=True)
class TrialUnit:
    """A batch of questions to rank with several strategies, keyed by their numbers in the round."""

    part: int
    strategies: Mapping[int, Strategy]

    @property
    def title(self) -> str:
        """What Prefect shows."""
        name = next(iter(self.strategies.values())).name
        return f"{name} trials {', '.join(map(str, self.strategies))} batch {self.part}"


@dataclass(frozen=True)
class SweepJob:
    """What workers need: the graph, the questions, and the lower bounds down to which trials read edges."""

    token: str
    options: GraphOptions
    home: Path
    namespace: str
    build_key: str
    questions: Sequence[str]
    batch: int | None
    floors: Mapping[tuple[str, str], float]
    strategies: Sequence[Strategy]
    code: Mapping[str, str]

    def open(self) -> SweepContext:
        """Read data set and graph."""
        from hopbench.eval.trials.trial import batches

        check_same_code(self.code, self.strategies)
        benchmark, index = open_benchmark(self.options, self.home, self.namespace, self.build_key)
        index.floors.update(self.floors)
        asked = {question.id: question.question for question in benchmark.questions}
        return SweepContext(batches(index, [asked[name] for name in self.questions], self.batch))


@dataclass(frozen=True)
class SweepContext:
    """The questions in batches, with what trials share in them."""

    parts: Sequence[Batch]

    def run(self, unit: TrialUnit) -> dict[int, TrialOutcome]:
        """Rank a batch with each strategy; of a hit, only the scored fields come back."""
        from hopbench.retrieval.context import Budget

        result = {}
        for number, strategy in unit.strategies.items():
            done = run_unit(strategy.name, strategy, self.parts[unit.part], Budget())
            done.hits.clear()
            done.notes.clear()
            result[number] = done
        return result


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
    asked = [question.id for question in context.benchmark.questions]
    place = options.absolute(), home.root, plan.namespace, plan.build_key
    kinds = list({type(strategy): strategy for strategy in strategies.values()}.values())
    code = code_here(kinds)
    job = SweepJob(secrets.token_hex(8), *place, asked, context.batch, dict(context.index.floors), kinds, code)
    pool, parts = TaskPool(spread.runner, spread.workers, home), context.parts
    back: dict[int, dict[int, TrialOutcome]] = {number: {} for number in strategies}

    def keep(unit: TrialUnit, done: Mapping[int, TrialOutcome]) -> None:
        for number, outcome in done.items():
            back[number][unit.part] = outcome
            if len(back[number]) == len(parts):
                found = back.pop(number)
                then(number, merged([found[part] for part in range(len(parts))]))

    share_context(job.token, SweepContext(parts))
    try:
        pool.run(job, units_of(strategies, len(parts), pool.size), keep)
    finally:
        drop_context(job.token)


def units_of(strategies: Mapping[int, Strategy], parts: int, workers: int) -> list[TrialUnit]:
    """Cut the work into units: trials that share a traversal stay together unless that would leave workers idle."""
    most = max(1, ceil(len(strategies) * parts / (workers * UNITS_EACH)))
    numbers = sorted(strategies, key=lambda number: strategies[number].shared_work())
    groups = [list(group) for _, group in groupby(numbers, key=lambda number: strategies[number].shared_work())]
    cut = [group[begin : begin + most] for group in groups for begin in range(0, len(group), most)]
    return [TrialUnit(part, {number: strategies[number] for number in group}) for group in cut for part in range(parts)]
