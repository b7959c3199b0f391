"""What a user asked for, after the command line and the config file are read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hopbench.eval.benchmarks import load_benchmark, load_triples
from hopbench.eval.types import Benchmark, BenchmarkQuestion, fitted_on
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.settings.names import EXTRACTORS, RUNNERS, STORES
from hopbench.retrieval.fitted import FittedOn
from hopbench.retrieval.graph.build.plan import BuildSettings, GraphPlan
from hopbench.retrieval.graph.extract.spacy_names import recogniser
from hopbench.retrieval.graph.stores.neo4j.connection import Connection
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.runs.targets import Target
    from hopbench.retrieval.embedding import Embedder
    from hopbench.retrieval.foreign.function import Function
    from hopbench.retrieval.graph.stores.base import GraphStore
    from hopbench.retrieval.llm import LLM
    from hopbench.retrieval.strategies.base import Strategy

BUILD_NUMBERS = ("similar_top_k", "similar_floor", "max_tokens")


def runner_parts(runner: str) -> tuple[str, str]:
    """`dask:HOST:PORT` → (`dask`, `HOST:PORT`); the address is empty where none is named. Refuses unknown runners."""
    kind, _, address = runner.partition(":")
    if kind not in RUNNERS:
        raise UnknownNameError("runner", kind, RUNNERS)
    if address and kind != "dask":
        raise InputError(f"--runner {runner}: only dask takes an address, such as dask:127.0.0.1:8786")
    return kind, address


@dataclass(frozen=True)
class Spread:
    """Over which task runner's workers trials are spread (none: done here), and questions a batch."""

    runner: str = ""
    workers: int | None = None
    batch: int | None = None

    def check(self, prefect: bool, llm: str | None) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot ask the model."""
        if self.runner:
            kind, _ = runner_parts(self.runner)
            if not prefect:
                raise InputError(f"--runner {self.runner} is one of Prefect's task runners: leave out --no-prefect")
            if llm is not None and kind != "threads":
                raise InputError(
                    f"--runner {self.runner} has workers that share no model's pace and budget: with --llm, choose "
                    "--runner threads or none"
                )
        elif self.workers is not None:
            raise InputError(f"--workers {self.workers}: of which runner? Add --runner {'|'.join(RUNNERS)}")


def check_store(engine: str, home: Home) -> None:
    """Refuse a store that is unknown, or whose server is not named anywhere."""
    if engine not in STORES:
        raise UnknownNameError("store", engine, STORES)
    if engine == "neo4j":
        Connection.resolve(os.environ, home.neo4j_env)


def open_store(engine: str, namespace: str, home: Home) -> GraphStore:
    """The engine's store of a namespace; connects or reads when it is first used."""
    check_store(engine, home)
    if engine == "neo4j":
        from hopbench.retrieval.graph.stores.neo4j.store import Neo4jStore  # loads pandas

        return Neo4jStore(Connection.resolve(os.environ, home.neo4j_env), namespace)
    from hopbench.retrieval.graph.stores.kglite_store import KgliteStore

    return KgliteStore(home.graphs, namespace)


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Which graph: of what corpus, by which extractor and embedder, in which store.

    `questions` is a file that is asked in place of the data set's own; `limit` keeps the first of them. `llm` and
    `gleaning` are the model of the extractor `llm` and how often it is asked what it missed.
    """

    dataset: str
    store: str = "kglite"
    embedder: str = "wordllama"
    extractor: str = "rules"
    triples: Path | None = None
    limit: int | None = None
    mapping: Path | None = None
    questions: Path | None = None
    llm: str | None = None
    gleaning: int = 0
    neo4j_vector_index: bool = False
    similar_top_k: int | None = None  # these three: None keeps the builder's default
    similar_floor: float | None = None
    max_tokens: int | None = None

    def graph_settings(self) -> dict[str, str | int | float | bool | None]:
        """What a later command needs to find this benchmark and its graph again."""
        triples = None if self.triples is None else str(self.triples)
        return {
            "dataset": self.dataset,
            "store": self.store,
            "embedder": self.embedder,
            "extractor": self.extractor,
            "triples": triples,
            "limit": self.limit,
            "questions": None if self.questions is None else str(self.questions),
            "mapping": None if self.mapping is None else str(self.mapping),
            "llm": self.llm,
            "gleaning": self.gleaning,
            "neo4j_vector_index": self.neo4j_vector_index,
            **self.build_numbers(),
        }

    def build_numbers(self) -> dict[str, int | float]:
        """The build settings that are not the builder's defaults."""
        numbers = {name: getattr(self, name) for name in BUILD_NUMBERS}
        return {name: value for name, value in numbers.items() if value is not None}

    def benchmark(self, *, need_questions: bool = True) -> Benchmark:
        """The benchmark, loaded and validated; a graph needs no questions."""
        return load_benchmark(self.dataset, limit=self.limit, questions=self.questions, need_questions=need_questions)

    def open_embedder(self, home: Home) -> Embedder:
        """The embedder behind its cache; refuses an unknown store or extractor too, before any work begins."""
        check_store(self.store, home)
        if self.extractor not in EXTRACTORS:
            raise UnknownNameError("extractor", self.extractor, EXTRACTORS)
        if self.extractor == "spacy":
            recogniser()  # refuses what is not installed
        if self.extractor == "llm" and not self.triples:
            self._reader_name()
        self._check_neo4j_flags()
        if self.extractor == "rules+triples" and not self.triples:
            raise InputError(
                "--extractor rules+triples adds ready triples to the rules' graph: --triples FILE names them"
            )
        if self.triples and not self.triples.is_file():
            what = "that is no regular file" if self.triples.exists() else "there is no such file"
            raise InputError(f"--triples {self.triples}: {what}: name a JSONL file of triples")
        from hopbench.retrieval.embedding import EmbeddingCache, get_embedder  # loads numpy

        return get_embedder(self.embedder, EmbeddingCache(home.embeddings))

    def _reader_name(self) -> str:
        """Model and prompts of the extractor `llm`."""
        if self.llm is None:
            raise InputError("--extractor llm needs a model: name one with --llm MODEL[@URL]")
        from hopbench.retrieval.graph.extract.model import recogniser as reader_name
        from hopbench.retrieval.llm import Endpoint

        return reader_name(Endpoint.parse(self.llm), self.gleaning)

    def _check_neo4j_flags(self) -> None:
        for flag, given in (("--mapping", self.mapping), ("--neo4j-vector-index", self.neo4j_vector_index)):
            if given and self.store != "neo4j":
                raise InputError(f"{flag} is for --store neo4j; the store is {self.store}")
        if self.mapping and self.neo4j_vector_index:
            raise InputError(
                "--neo4j-vector-index searches an index of HopBench's own, which --mapping graphs lack: leave one out"
            )
        if self.mapping:
            from hopbench.retrieval.graph.stores.mapped.file import load_mapping

            load_mapping(self.mapping)

    def graph_plan(self, benchmark: Benchmark, home: Home) -> GraphPlan:
        """The graph to build or to find built; where `llm` is to read it, `with_reader` adds the opened model."""
        triples = load_triples(self.triples, benchmark.titles) if self.triples else ()
        extractor = "triples" if triples and self.extractor != "rules+triples" else self.extractor
        named = {"spacy": recogniser, "llm": self._reader_name}.get(extractor, str)
        numbers: dict[str, Any] = self.build_numbers()
        settings = BuildSettings(extractor=extractor, recogniser=named(), **numbers)
        return GraphPlan(benchmark.name, benchmark.passages, settings, self.open_embedder(home), triples)

    def with_reader(self, plan: GraphPlan, llm: LLM | None) -> GraphPlan:
        """The plan with the model that reads its passages, where it has the extractor `llm`."""
        if plan.settings.extractor != "llm" or llm is None:
            return plan
        from hopbench.retrieval.graph.extract.model import TripleReader

        return replace(plan, reader=TripleReader(llm, self.gleaning))

    def open_store(self, plan: GraphPlan, home: Home) -> GraphStore:
        """The store that holds, or will hold, the plan's graph."""
        if self.mapping is None:
            return open_store(self.store, plan.namespace, home)
        from hopbench.retrieval.chunking import chunk_passages
        from hopbench.retrieval.graph.stores.mapped.file import load_mapping
        from hopbench.retrieval.graph.stores.mapped.store import MappedStore

        check_store(self.store, home)
        chunks = frozenset(chunk.id for chunk in chunk_passages(plan.passages, plan.settings.max_tokens))
        server = Connection.resolve(os.environ, home.neo4j_env)
        return MappedStore(server, load_mapping(self.mapping), chunks=chunks, build_key=plan.build_key)


def build_command(options: GraphOptions) -> str:
    """The command that builds the graph of these options."""
    plain = GraphOptions(dataset=options.dataset)
    names = ("store", "embedder", "extractor", "triples", *BUILD_NUMBERS, "llm", "gleaning")
    changed = {name: getattr(options, name) for name in names if getattr(options, name) != getattr(plain, name)}
    flags = "".join(f" --{name.replace('_', '-')} {value}" for name, value in changed.items())
    return f"hopbench graph build --dataset {options.dataset}{flags}"


@dataclass(frozen=True, kw_only=True)
class RunOptions(GraphOptions):
    """A run: which strategies over which questions, and where its files go."""

    out: Path
    strategies: str = "all"
    changes: Sequence[str] = ()
    ragas: bool = True
    targets: Sequence[str] = ()
    seed: int = 0
    prefect: bool = True
    models: ModelOptions = field(default_factory=ModelOptions)
    command: str = "hopbench run"
    runner: str = ""
    workers: int | None = None
    batch: int | None = None
    tuned_on: Sequence[str] = ()
    runs: Sequence[str] = ()
    retrievers: Sequence[str] = ()
    functions: Mapping[str, Function] = field(default_factory=dict)

    def labels(self) -> dict[str, Strategy]:
        """The labels of the run with their strategies: ours, then those of --runs, --retriever and `functions`."""
        from hopbench.flows.settings.foreign import foreign_labels, of_ours
        from hopbench.retrieval.strategies.registry import resolve  # loads scipy

        foreign = foreign_labels(self.runs, self.retrievers, self.functions, self.changes)
        return {**resolve(self.strategies, of_ours(self.changes, foreign)), **foreign}

    @property
    def selection(self) -> tuple[str, ...]:
        """What was asked for: nights that were asked the same are compared."""
        return (self.strategies, *self.changes, *self.runs, *self.retrievers, *self.functions)

    def fitted_on(self) -> list[FittedOn]:
        """The sets on which the labels' changes were tuned: as best.yaml writes them, or named as `--dataset` is."""
        return [FittedOn.read(text) or fitted_on(load_benchmark(text)) for text in self.tuned_on]

    def __post_init__(self) -> None:
        """Refuse a runner that is unknown, that has no Prefect to run on, or whose workers cannot ask the model."""
        Spread(self.runner, self.workers, self.batch).check(self.prefect, self.models.llm)
        if self.functions and self.runner not in ("", "threads"):
            raise InputError(
                f"--runner {self.runner} has workers in other processes, which lack {', '.join(self.functions)}: "
                "choose threads or no runner, or serve the function over HTTP (--retriever NAME=URL)"
            )

    def checked_targets(
        self, labels: Sequence[str], questions: Sequence[BenchmarkQuestion] | None = None
    ) -> list[Target]:
        """The targets for a run of these labels; refuses what is no target, and what the run will not measure."""
        from hopbench.eval.runs.targets import parse_targets, refuse_unmeasured

        models = self.models
        targets = parse_targets(self.targets, labels)
        judged = () if models.judge is None else models.metrics
        refuse_unmeasured(targets, ragas=self.ragas, judged=judged, reader=models.llm is not None, questions=questions)
        return targets


Options = TypeVar("Options", bound=GraphOptions)


def absolute(options: Options) -> Options:
    """The options with paths that mean the same from a worker's folder."""
    dataset = str(Path(options.dataset).absolute()) if Path(options.dataset).exists() else options.dataset
    triples = options.triples.absolute() if options.triples else None
    mapping = options.mapping.absolute() if options.mapping else None
    questions = options.questions.absolute() if options.questions else None
    found = replace(options, dataset=dataset, triples=triples, mapping=mapping, questions=questions)
    if isinstance(found, RunOptions) and found.runs:
        from hopbench.flows.settings.foreign import absolute_run

        return replace(found, runs=tuple(map(absolute_run, found.runs)))
    return found
