"""A sweep's trials on the workers of a task runner: those that walk alike × a batch of questions are a unit.

Workers rank. Claims, scores, latency, the ledger and whoever reads stay with the process that asked, so a trial is the
same wherever it was ranked, and is kept as soon as its last unit is back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.trials.batch_work import Unit, UnitOutcome, merged, run_unit
from hopbench.flows.settings.options import GraphOptions, Spread, absolute
from hopbench.flows.workers.task_pool import Pool
from hopbench.flows.workers.units import code_here, leave_desk, opened, same_code, use_desk
from hopbench.retrieval.support.collector import collector_paused

if TYPE_CHECKING:
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.flows.settings.home import Home
    from hopbench.retrieval.graph.build.plan import GraphPlan
    from hopbench.retrieval.index import Batch
    from hopbench.retrieval.strategies.base import Strategy

UNITS_EACH = 4  # of a worker, at least: so that none waits long for the last


@dataclass(frozen=True)
class Walks:
    """Strategies, by their numbers in the round, for one batch of questions; those of a unit share their walks."""

    part: int
    strategies: Mapping[int, Strategy]

    @property
    def title(self) -> str:
        """What Prefect shows."""
        name = next(iter(self.strategies.values())).name
        return f"{name} trials {', '.join(map(str, self.strategies))} batch {self.part}"


@dataclass(frozen=True)
class ArenaJob:
    """An arena as workers know it: the graph, which of its questions, and how far down trials will read."""

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

    def open(self) -> ArenaDesk:
        """Read data set and graph."""
        from hopbench.eval.trials.trial import batches

        same_code(self.code, self.strategies)
        benchmark, index = opened(self.options, self.home, self.namespace, self.build_key)
        index.floors.update(self.floors)
        asked = {question.id: question.question for question in benchmark.questions}
        return ArenaDesk(batches(index, [asked[name] for name in self.questions], self.batch))


@dataclass(frozen=True)
class ArenaDesk:
    """An arena's questions in batches, with what trials share in them."""

    parts: Sequence[Batch]

    def run(self, unit: Walks) -> dict[int, UnitOutcome]:
        """Rank a batch with each strategy; of a hit only what is scored comes back."""
        from hopbench.retrieval.budget import Budget

        found = {}
        for number, strategy in unit.strategies.items():
            with collector_paused():
                done = run_unit(Unit(unit.part, strategy.name), strategy, self.parts[unit.part], Budget())
            done.outcome.hits.clear()
            done.outcome.notes.clear()
            found[number] = done
        return found


def rank_on_workers(
    spread: Spread,
    home: Home,
    arena: TrialContext,
    graph: tuple[GraphOptions, GraphPlan],
    strategies: Mapping[int, Strategy],
    then: Callable[[int, TrialOutcome], None],
) -> None:
    """Rank an arena's questions with each strategy, and hand each over when it is whole."""
    options, plan = graph
    asked = [question.id for question in arena.benchmark.questions]
    told = absolute(options), home.root, plan.namespace, plan.build_key
    kinds = list({type(strategy): strategy for strategy in strategies.values()}.values())
    code = code_here(kinds)
    job = ArenaJob(secrets.token_hex(8), *told, asked, arena.batch, dict(arena.index.floors), kinds, code)
    pool, parts = Pool(spread.runner, spread.workers, home), arena.parts
    back: dict[int, dict[int, UnitOutcome]] = {number: {} for number in strategies}

    def keep(unit: Walks, done: Mapping[int, UnitOutcome]) -> None:
        for number, outcome in done.items():
            back[number][unit.part] = outcome
            if len(back[number]) == len(parts):
                found = back.pop(number)
                then(number, merged([found[part] for part in range(len(parts))]))

    use_desk(job.token, ArenaDesk(parts))
    try:
        pool.do(job, units_of(strategies, len(parts), pool.size), keep)
    finally:
        leave_desk(job.token)


def units_of(strategies: Mapping[int, Strategy], parts: int, workers: int) -> list[Walks]:
    """The work in units: those that walk alike stay together, unless some workers would have nothing to do."""
    most = max(1, ceil(len(strategies) * parts / (workers * UNITS_EACH)))
    numbers = sorted(strategies, key=lambda number: strategies[number].shared_work())
    groups = [list(group) for _, group in groupby(numbers, key=lambda number: strategies[number].shared_work())]
    cut = [group[begin : begin + most] for group in groups for begin in range(0, len(group), most)]
    return [Walks(part, {number: strategies[number] for number in group}) for group in cut for part in range(parts)]
