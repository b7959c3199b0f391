"""What strategies cost, and how that grows with the corpus: measured on worlds of the hopworld generator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.hopworld.write import write_benchmark
from hopbench.eval.trials.trial import batches, prepare, run_trial
from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.orchestration.steps import plain_steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.budget import Budget
from hopbench.retrieval.index import Index, ReadCache
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.types import Question

SEED = 1


@dataclass(frozen=True)
class Cost:
    """What one label cost on one corpus.

    `ms` is a question's share of the batch with nothing read before; `once_seconds` is the one-time extra cost,
    cached for the index (names, adjacency, communities). Round trips are the batch's, rows and edges a question's.
    """

    passages: int
    label: str
    ms: float
    once_seconds: float
    round_trips: int
    rows: float
    edges: float


@dataclass(frozen=True)
class Built:
    """What a corpus of this size cost before any strategy ran, in seconds: its graph, and BM25 and embeddings."""

    passages: int
    index_seconds: float
    graph_seconds: float


def growth(
    sizes: Sequence[int],
    strategies: Mapping[str, Strategy],
    questions: int,
    folder: Path,
    report: Callable[[str], None],
) -> Iterator[Built | Cost]:
    """Build a world of each size in `folder` and run every strategy over it, smallest first."""
    home = Home(folder)
    home.prepare()
    for size in sorted(sizes):
        report(f"{size:,} passages: writing the world")
        write_benchmark(folder / f"world-{size}", SEED, size, questions)
        options = GraphOptions(dataset=str(folder / f"world-{size}"))
        benchmark = load_benchmark(options.dataset)
        plan = options.graph_plan(benchmark, home)
        report(f"{size:,} passages: embedding and building the graph")
        begun = time.perf_counter()
        index = open_index(options, plan, home)
        indexed = time.perf_counter()
        built_graph(plan, index, home, plain_steps)
        yield Built(size, indexed - begun, time.perf_counter() - indexed)
        for label, strategy in strategies.items():
            report(f"{size:,} passages: {label}")
            yield measure(label, strategy, index, [question.question for question in benchmark.questions])


def measure(label: str, strategy: Strategy, index: Index, questions: Sequence[Question]) -> Cost:
    """Run a strategy twice over the questions, each time with nothing read from the store before."""
    seconds = []
    for _ in range(2):
        index.reads = ReadCache()
        parts = batches(index, questions)
        prepare(parts)
        trial = run_trial(label, strategy, parts, Budget())
        seconds.append(trial.seconds)
    count, spent = len(questions), trial.counters
    return Cost(
        len(index.chunks),
        label,
        1000 * seconds[1] / count,
        max(seconds[0] - seconds[1], 0.0),
        spent.round_trips,
        spent.rows / count,
        spent.edges_touched / count,
    )
