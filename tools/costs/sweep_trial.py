"""Measure what one more trial of a sweep costs: over 200 trials of a strategy that share their work."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from hopbench.flows.orchestration.steps import plain_steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home

# 200 configurations each, varying thresholds (another traversal) as well as weights (the same traversal, other scores).
GRIDS: Mapping[str, Mapping[str, Sequence[float | bool]]] = {
    "graph_expansion": {
        "initial_k": [5, 10],
        "min_similarity": [0.5, 0.6, 0.7, 0.8, 0.9],
        "min_strength": [0.3, 0.4, 0.5, 0.6, 0.7],
        "chunk_weight": [0.5, 0.6, 0.7, 0.8],
    },
    "neighborhood": {
        "vector_weight": [0.5, 0.7],
        "min_strength": [0.0, 0.2, 0.4, 0.6, 0.8],
        "alpha": [0.5, 0.6, 0.7, 0.8, 0.9],
        "max_graph_chunks": [2, 4, 6, 8],
    },
    "activation": {
        "max_branches": [2, 3, 4, 5],
        "min_similarity": [0.5, 0.6, 0.7, 0.8, 0.9],
        "tag_floor": [0.05, 0.1, 0.15, 0.2, 0.25],
        "use_similar": [True, False],
    },
    "pagerank": {
        "restart": [0.1, 0.15, 0.2, 0.3, 0.5],
        "question_weight": [0.5, 1.0, 2.0, 4.0, 8.0],
        "similar_weight": [0.0, 0.3],
        "initial_weight": [0.0, 0.05, 0.1, 0.2],
    },
}


@dataclass(frozen=True)
class MarginalCost:
    """Seconds of `trials` trials after the first, which also did what all share: mean and longest."""

    strategy: str
    questions: int
    trials: int
    first: float
    mean: float
    longest: float


def marginal_cost(dataset: str, strategy: str, home: Home, trials: int | None = None) -> MarginalCost:
    """Rank, score and keep the grid's trials on a data set as a sweep does, without Prefect and MLflow.

    `trials` takes that many of the grid, evenly spaced.
    """
    from hopbench.eval.sweep.context import TrialContext
    from hopbench.eval.sweep.plan import read_sweep
    from hopbench.eval.trials.ledger import Ledger
    from hopbench.flows.graph.build import built_graph, open_index

    home.apply_environment()
    home.prepare()
    options = GraphOptions(dataset=dataset)
    benchmark = options.benchmark()
    graph = options.graph_plan(benchmark, home)
    index = open_index(options, graph, home)
    record, _ = built_graph(graph, index, home, plain_steps)
    with TemporaryDirectory(dir=home.scratch) as folder:
        file = Path(folder) / "cost.yaml"
        named = str(Path(dataset).resolve()) if Path(dataset).exists() else dataset
        content = {"datasets": [named], "strategy": strategy, "grid": {n: list(v) for n, v in GRIDS[strategy].items()}}
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        plan = read_sweep(file)
        index.floors.update(plan.floors)
        context = TrialContext(benchmark, benchmark.digest, index, str(record["fingerprint"]), ragas=plan.content.ragas)
        _ = context.parts
        chosen = plan.candidates[:: max(1, len(plan.candidates) // (trials or len(plan.candidates)))]
        spent = []
        with Ledger.open(Path(folder) / "ledger.db") as ledger:
            for candidate in sorted(chosen, key=lambda one: one.strategy.shared_work()):
                begun = time.perf_counter()
                if ledger.claim(context.trial_id(candidate.strategy)):
                    ledger.put(context.run(candidate.strategy))
                spent.append(time.perf_counter() - begun)
    rest = spent[1:]
    return MarginalCost(
        strategy, len(benchmark.questions), len(rest), spent[0], sum(rest) / max(1, len(rest)), max(rest, default=0.0)
    )
