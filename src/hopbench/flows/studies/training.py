"""`hopbench train hoprank`: builds graphs and examples, fits the weights, and tests them on held-out questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically, write_table
from hopbench.eval.types import hashes_of
from hopbench.flows.orchestration.progress import Progress, ProgressSteps
from hopbench.flows.orchestration.steps import Steps, plain_steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.studies.train_inputs import check_files, check_questions, embedders_of, names_of, triples_of
from hopbench.flows.studies.train_options import TrainOptions
from hopbench.retrieval.support.errors import HopBenchError

if TYPE_CHECKING:
    from hopbench.eval.training.examples import TrainingExample
    from hopbench.eval.training.held_out import Figures, HeldOut
    from hopbench.eval.types import Benchmark


@dataclass
class Trained:
    """The figures on held-out questions, and warnings; no numbers or trees where no file was asked for.

    `unwritten` is why a file was not written: figures that took half an hour are not lost with it.
    """

    figures: Sequence[Figures]
    warnings: Sequence[str]
    numbers: int = 0
    trees: int = 0
    unwritten: HopBenchError | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Note why what is written within cannot be."""
        try:
            yield
        except HopBenchError as error:
            self.unwritten = error


def train(options: TrainOptions, progress: Progress, steps: Steps = plain_steps) -> Trained:
    """Learn hoprank's weights and write them; bad input is refused before any graph is built."""
    home = Home.resolve()
    home.apply_environment()
    benchmarks = [GraphOptions(dataset=name).benchmark() for name in options.datasets]
    names = names_of(options.datasets, benchmarks)
    embedders = embedders_of(options.embedders, names)
    triples = triples_of(options.triples, names)
    for embedder in dict.fromkeys(embedder for of_set in embedders.values() for embedder in of_set):
        GraphOptions(dataset="", embedder=embedder).open_embedder(home)
    check_questions(benchmarks, options.folds)
    check_files(options, benchmarks, triples)
    home.prepare()
    from hopbench.eval.training.boosting import Boosting
    from hopbench.eval.training.folds import cross_validated, left_out  # loads scipy
    from hopbench.eval.training.held_out import figures_of, table_of
    from hopbench.eval.training.hoprank import Trainer
    from hopbench.retrieval.strategies.hoprank.weights import to_json

    boosting = Boosting(rounds=options.rounds)
    trainer = Trainer(passes=options.passes, without=frozenset(options.without), boosting=boosting)
    steps = ProgressSteps(steps, progress, announce=True)
    group = [
        example
        for name, benchmark in zip(options.datasets, benchmarks, strict=True)
        for graph in _graphs(name, triples.get(benchmark.name))
        for example in steps(
            f"examples of {benchmark.name}", _examples, graph, benchmark, embedders[benchmark.name], home, progress
        )
    ]
    held: list[HeldOut] = []
    if options.folds:
        held += steps("cross-validation", cross_validated, trainer, group, options.folds, progress.begin)
    held += steps("left-out sets", left_out, trainer, group, progress.begin)
    trained = Trained(list(figures_of(held)), _warnings(options, benchmarks, held))
    if options.held_out is not None:
        with trained.writing():
            write_table(options.held_out, table_of(held), "zstd")
    if options.out is not None:
        weights = steps("weights", trainer.fit, group)
        trained.numbers, trained.trees = weights.size, len(weights.trees.trees) + len(weights.second_trees.trees)
        provenance = _provenance(options, benchmarks, triples, group, trained.figures)
        with trained.writing():
            steps("write", write_atomically, options.out, to_json(replace(weights, provenance=provenance)).encode())
    return trained


def _warnings(options: TrainOptions, benchmarks: Sequence[Benchmark], held: Sequence[HeldOut]) -> list[str]:
    """Of sets that are not for learning, of what could not be tested, and those of the data sets."""
    warnings = [
        f"{benchmark.name} is a set for reporting: weights learned from it must not be scored on it; if it is for "
        f"tuning, say so with `hopbench check-data {quote(dataset)} --set-role tune`"
        for dataset, benchmark in zip(options.datasets, benchmarks, strict=True)
        if benchmark.role == "report"
    ]
    tested = Counter((one.setting, one.model) for one in held)
    apart = tested["cross-validated apart", "linear"]
    if apart and (lacking := tested["cross-validated", "linear"] - apart):
        warnings.append(f"cross-validated apart lacks {lacking} questions: all others share gold with their fold")
    if not held:
        warnings.append("nothing was tested on questions not learned from: one family of sets needs --folds 2 or more")
    return warnings + [
        f"{benchmark.name}: {warning}" for benchmark in benchmarks for warning in benchmark.shown_warnings
    ]


def _graphs(dataset: str, triples: Path | None) -> list[GraphOptions]:
    """The rules' graph of a data set, and the one with triples beside."""
    rules = GraphOptions(dataset=dataset)
    return [rules, replace(rules, extractor="rules+triples", triples=triples)] if triples else [rules]


def _examples(
    graph: GraphOptions, benchmark: Benchmark, embedders: Sequence[str], home: Home, progress: Progress
) -> list[TrainingExample]:
    """The examples of one graph with every embedder; no mention depends on it, so one graph serves all."""
    from hopbench.eval.training.examples import training_examples
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.hoprank import HopRank

    options = replace(graph, embedder=embedders[0])
    plan = options.graph_plan(benchmark, home)
    first = open_index(options, plan, home)
    built_graph(plan, first, home, plain_steps)
    result = list(training_examples(benchmark, first, HopRank()))
    for embedder in embedders[1:]:
        progress.begin(f"{benchmark.name} with {embedder}")
        other = replace(options, embedder=embedder).open_embedder(home)
        result += training_examples(benchmark, Index.build(first.chunks, first.store, other), HopRank())
    return result


def _provenance(
    options: TrainOptions,
    benchmarks: Sequence[Benchmark],
    triples: Mapping[str, Path],
    group: Sequence[TrainingExample],
    figures: Sequence[Figures],
) -> dict[str, Any]:
    from hopbench.eval.training.boosting import Boosting
    from hopbench.eval.training.losses import L2
    from hopbench.eval.trials.version import code_version

    return {
        "learned_from": {
            b.name: {"digest": b.digest, "questions": len(b.questions), "role": b.role, **hashes_of(b)}
            for b in benchmarks
        },
        "embedders": sorted({example.embedder for example in group}),
        "triples": {name: sha256(file.read_bytes()).hexdigest() for name, file in triples.items()},
        "without": sorted(options.without),
        "passes": options.passes,
        "l2": L2,
        "boosting": asdict(Boosting(rounds=options.rounds)),
        "folds": options.folds,
        "code_version": code_version(weights=False),
        "figures": [asdict(figure) for figure in figures],
    }
