"""Opens the corpus that questions are made from: its index with the graph, and the model that is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopbench.flows.orchestration.progress import Progress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions, open_models
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    from hopbench.eval.types import Benchmark
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.llm import LLM


@dataclass(frozen=True)
class Corpus:
    """A corpus with its index, whose graph is built, and the model that is named."""

    benchmark: Benchmark
    index: Index
    llm: LLM | None


@contextmanager
def opened(options: GraphOptions, budget: float | None, progress: Progress) -> Iterator[Corpus]:
    """The corpus; its graph is built where it is missing, by the model where the extractor is one.

    `budget` in US dollars is for all calls of the model. Raises IncompleteError where nothing answers at its address.
    """
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.flows.orchestration.steps import plain_steps

    home = Home.resolve().prepare()
    home.apply_environment()
    named = ModelOptions(**options.model_settings(), budget=budget)
    notes = [*named.reach(home), *named.warnings()]
    with open_models(named, options.open_embedder(home), home) as models:
        benchmark = options.benchmark(home, need_questions=False)
        progress.begin(f"graph of {benchmark.name}")
        llm = models.reading.reader
        plan = options.with_reader(options.graph_plan(benchmark, home), llm)
        index = open_index(options, plan, home)
        _, warnings = built_graph(plan, index, home, plain_steps)
        for line in (*notes, *benchmark.shown_warnings, *warnings):
            notice(f"warning: {line}")
        yield Corpus(benchmark, index, llm)
