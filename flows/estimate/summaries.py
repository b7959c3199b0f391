"""`--dry-run`: what the summaries of dual_level's communities will take, where the graph is there to count them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hopbench.retrieval.support.errors import StoreError

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.types import Benchmark
    from hopbench.flows.settings.home import Home
    from hopbench.flows.settings.options import GraphOptions
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy

SUMMING = "dual_level"
NOT_COUNTED = f"not counted: {SUMMING} also has each community of the graph summed up once"
REMEDY = "build the graph (hopbench graph build with the same flags), and they are"


def summary_lines(
    options: GraphOptions, benchmark: Benchmark, strategies: Mapping[str, Strategy], home: Home
) -> tuple[list[Line], list[str]]:
    """A line per label that has communities summed up, and a warning where there is no graph to count them in."""
    from hopbench.eval.answering.estimate import summary_line

    summing = {label: strategy for label, strategy in strategies.items() if strategy.name == SUMMING}
    if not summing:
        return [], []
    try:
        index = _present(options, benchmark, home)
    except StoreError as error:
        return [], [f"{NOT_COUNTED} ({error})"]
    if index is None:
        return [], [f"{NOT_COUNTED}: {REMEDY}"]
    question = benchmark.questions[0].question
    lines = [summary_line(label, strategy, index, question) for label, strategy in summing.items()]
    return [line for line in lines if line.calls], []


def _present(options: GraphOptions, benchmark: Benchmark, home: Home) -> Index | None:
    """The index over the options' graph, if that is built."""
    from hopbench.flows.graph.build import open_index

    home.prepare()
    plan = options.graph_plan(benchmark, home)
    record = options.open_store(plan, home).record()
    return open_index(options, plan, home) if record and record["build_key"] == plan.build_key else None
