"""What a user asked for, after the command line and the config file are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.benchmarks import load_benchmark, load_triples
from eval.types import Benchmark
from flows.home import Home
from retrieval.embedding import EmbeddingCache, get_embedder
from retrieval.errors import UnknownNameError
from retrieval.graph.build import BuildSettings, GraphPlan
from retrieval.graph.kglite_store import KgliteStore
from retrieval.graph.store import GraphStore

STORES = ("kglite",)


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Which graph: of what corpus, by which extractor and embedder, in which store."""

    dataset: str
    store: str = "kglite"
    embedder: str = "wordllama"
    extractor: str = "rules"
    triples: Path | None = None
    limit: int | None = None

    def graph_settings(self) -> dict[str, str | int | None]:
        """What a later command needs to find this benchmark and its graph again."""
        triples = None if self.triples is None else str(self.triples)
        return {
            "dataset": self.dataset,
            "store": self.store,
            "embedder": self.embedder,
            "extractor": self.extractor,
            "triples": triples,
            "limit": self.limit,
        }

    def benchmark(self) -> Benchmark:
        """The benchmark, loaded and validated."""
        return load_benchmark(self.dataset, limit=self.limit)

    def graph_plan(self, benchmark: Benchmark, home: Home) -> GraphPlan:
        """The graph to build or to find built."""
        triples = load_triples(self.triples, benchmark.titles) if self.triples else ()
        settings = BuildSettings(extractor="triples" if triples else self.extractor)
        embedder = get_embedder(self.embedder, EmbeddingCache(home.embeddings))
        return GraphPlan(benchmark.name, benchmark.passages, settings, embedder, triples)

    def open_store(self, plan: GraphPlan, home: Home) -> GraphStore:
        """The store that holds, or will hold, the plan's graph."""
        if self.store != "kglite":
            raise UnknownNameError("store", self.store, STORES)
        return KgliteStore(home.graphs, plan.namespace)


@dataclass(frozen=True, kw_only=True)
class RunOptions(GraphOptions):
    """A run: which strategies over which questions, and where its files go."""

    out: Path
    strategies: str = "all"
    changes: Sequence[str] = ()
    ragas: bool = False
    seed: int = 0
    prefect: bool = True
    command: str = "hopbench run"
