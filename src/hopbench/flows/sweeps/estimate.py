"""What a sweep would cost, before it starts: trials, graphs to build, and about how long."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.types import Benchmark
from hopbench.flows.settings.home import Home
from hopbench.flows.sweeps.inputs import graph_options

if TYPE_CHECKING:
    from hopbench.eval.sweep.plan import SweepPlan
    from hopbench.eval.sweep.space import Build
    from hopbench.eval.trials.ledger import Ledger

# Seconds on two cores of 2024, for when the ledger knows no trial of a strategy yet.
QUESTION_SECONDS = {"activation": 0.006, "dual_level": 0.006, "kg2rag": 0.01, "entity_expansion": 0.004}
OTHER_QUESTION_SECONDS = 0.0015
PASSAGE_BUILD_SECONDS = 0.0015
OPEN_SECONDS = 3.0  # read, embed from the cache, index
START_SECONDS = 12.0  # Prefect's server and MLflow's writer
LATENCY_CALLS = 51
CALL_SECONDS = 0.02


@dataclass(frozen=True)
class Estimate:
    """Trials that would run (halving counts its rounds), graphs in use and to build, and seconds in all."""

    trials: int
    graphs: int
    rebuilds: int
    seconds: float
    known_pace: bool


def estimate(plan: SweepPlan, benchmarks: Mapping[str, Benchmark]) -> Estimate:
    """Estimate a sweep from what the ledger knows of its strategies' pace, else from figures measured once."""
    from hopbench.eval.sweep.search import rounds
    from hopbench.eval.trials.ledger import Ledger

    home = Home.resolve()
    graphs = [(name, build) for name in plan.datasets for build in plan.builds]
    graphs += [(plan.report_on, build) for build in plan.builds[:1] if plan.report_on]  # the winner's, whichever it is
    rebuilds = [(name, build) for name, build in graphs if not _is_built(plan, benchmarks[name], build, home)]
    questions = {name: len(benchmarks[name].questions) for name in plan.datasets}
    limited = {name: min(count, plan.content.questions or count) for name, count in questions.items()}
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open(home.ledger)) if home.ledger.is_file() else None
        pace, known = _pace(plan, ledger)
    configurations, trials, seconds = plan.configurations, 0, START_SECONDS
    for size in rounds(plan, max(questions.values())):
        each = len(plan.content.all_seeds) * plan.content.repeats * configurations
        trials += each * len(limited)
        seconds += each * sum(min(count, size or count) for count in limited.values()) * pace
        seconds += each * len(limited) * LATENCY_CALLS * CALL_SECONDS if plan.content.timed else 0.0
        configurations = ceil(configurations / plan.content.halving.factor) if plan.content.halving else 0
    if plan.report_on:
        seconds += len(benchmarks[plan.report_on].questions) * plan.content.repeats * pace
    seconds += OPEN_SECONDS * len(graphs)
    seconds += PASSAGE_BUILD_SECONDS * sum(len(benchmarks[name].passages) for name, _ in rebuilds)
    return Estimate(trials, len(graphs), len(rebuilds), seconds, known)


def _is_built(plan: SweepPlan, benchmark: Benchmark, build: Build, home: Home) -> bool:
    if plan.content.store == "neo4j" or not home.graphs.is_dir():
        return False
    options = graph_options(plan, "", build)
    place: Path | None = getattr(options.open_store(options.graph_plan(benchmark, home), home), "path", None)
    return place is not None and place.exists()


def _pace(plan: SweepPlan, ledger: Ledger | None) -> tuple[float, bool]:
    """Mean seconds per question over the entries, and whether all were measured on this machine."""
    names = [space.start.name for space in plan.spaces]
    measured = [ledger.pace(name) if ledger else None for name in names]
    usual = [QUESTION_SECONDS.get(name, OTHER_QUESTION_SECONDS) for name in names]
    paces = [one if one is not None else other for one, other in zip(measured, usual, strict=True)]
    return sum(paces) / len(paces), None not in measured
