"""`hopbench train hoprank`: check inputs, build graphs and examples, fit weights, test on held-out questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import refuse_unwritable, write_atomically, write_table
from hopbench.eval.types import hashes_of
from hopbench.flows.orchestration.steps import Progress, Steps, plain_steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.studies.options import TrainOptions
from hopbench.retrieval.support.errors import HopBenchError, InputError, UnknownNameError

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
        """Record why a file could not be written."""
        try:
            yield
        except HopBenchError as error:
            self.unwritten = error


def train(options: TrainOptions, progress: Progress, prefect: bool = False) -> Trained:
    """Learn hoprank's weights and write them, as steps of the flow run under way (`prefect`).

    Bad input is refused before any graph is built.
    """
    home = Home.resolve()
    home.apply_environment()
    benchmarks = [GraphOptions(dataset=name).benchmark() for name in options.datasets]
    names = _names_of(options.datasets, benchmarks)
    embedders = _embedders_of(options.embedders, names)
    triples = _triples_of(options.triples, names)
    for embedder in dict.fromkeys(embedder for of_set in embedders.values() for embedder in of_set):
        GraphOptions(dataset="", embedder=embedder).open_embedder(home)
    _check_questions(benchmarks, options.folds)
    _check_files(options, benchmarks, triples)
    home.prepare()
    from hopbench.eval.training.boosting import Boosting
    from hopbench.eval.training.held_out import cross_validated, figures_of, left_out, table_of  # loads scipy
    from hopbench.eval.training.trainer import Trainer
    from hopbench.retrieval.strategies.hoprank.weights import to_json

    boosting = Boosting(rounds=options.rounds)
    trainer = Trainer(passes=options.passes, without=frozenset(options.without), boosting=boosting)
    progress.in_flow = prefect
    steps = Steps(prefect, progress, announce=True)
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
        trained.numbers, trained.trees = weights.size, len(weights.trees.trees)
        provenance = _provenance(options, benchmarks, triples, group, trained.figures)
        with trained.writing():
            steps("write", write_atomically, options.out, to_json(replace(weights, provenance=provenance)).encode())
    return trained


def _warnings(options: TrainOptions, benchmarks: Sequence[Benchmark], held: Sequence[HeldOut]) -> list[str]:
    """List warnings of sets for reporting, of untested questions, and of the data sets."""
    from hopbench.eval.benchmarks import shown_warnings

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
        f"{benchmark.name}: {warning}" for benchmark in benchmarks for warning in shown_warnings(benchmark)
    ]


def _graphs(dataset: str, triples: Path | None) -> list[GraphOptions]:
    """Return the rules' graph of a data set, and the one with triples too."""
    rules = GraphOptions(dataset=dataset)
    return [rules, rules.changed(extractor="rules+triples", triples=triples)] if triples else [rules]


def _examples(
    graph: GraphOptions, benchmark: Benchmark, embedders: Sequence[str], home: Home, progress: Progress
) -> list[TrainingExample]:
    """Build the examples of one graph with every embedder: mentions do not depend on it, so one graph serves all."""
    from hopbench.eval.training.examples import training_examples
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.hoprank import HopRank

    options = graph.changed(embedder=embedders[0])
    plan = options.graph_plan(benchmark, home)
    first = open_index(options, plan, home)
    built_graph(plan, first, home, plain_steps)
    result = list(training_examples(benchmark, first, HopRank()))
    for embedder in embedders[1:]:
        progress.begin(f"{benchmark.name} with {embedder}")
        other = options.changed(embedder=embedder).open_embedder(home)
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
    from hopbench.eval.training.fitting import L2
    from hopbench.eval.trials.key import code_version

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


def _names_of(given: Sequence[str], benchmarks: Sequence[Benchmark]) -> list[str]:
    """Return the sets' names; InputError for none, or one given twice."""
    names = [benchmark.name for benchmark in benchmarks]
    if not names or len(set(given)) < len(given):
        raise InputError(f"--dataset {', '.join(given) or 'is not given'}: name at least one data set, each once")
    if len(set(names)) < len(names):
        raise InputError(
            f"--dataset {', '.join(given)}: two have one name, which must tell them apart: rename a folder"
        )
    return names


def _check_files(options: TrainOptions, benchmarks: Sequence[Benchmark], triples: Mapping[str, Path]) -> None:
    """Refuse files that cannot be written, or that are inputs of training."""
    files = [file for file in (options.out, options.held_out) if file is not None]
    folders = [benchmark.folder.resolve() for benchmark in benchmarks if benchmark.folder]
    for file in files:
        refuse_unwritable(file)
        place = file.resolve()
        inside = any(place.is_relative_to(folder) for folder in folders)
        if place.exists() and (inside or place in {one.resolve() for one in triples.values()}):
            raise InputError(f"cannot write {file}: it is there already, among what is learned from: name another file")
    if len({file.resolve() for file in files}) < len(files):
        raise InputError(f"--out {options.out} and --held-out {options.held_out} are one file: name two")


def _check_questions(benchmarks: Sequence[Benchmark], folds: int) -> None:
    """Refuse a set without gold, and a number of folds for which there are too few questions."""
    asked = {benchmark.name: sum(bool(question.gold) for question in benchmark.questions) for benchmark in benchmarks}
    for name, count in asked.items():
        if not count:
            raise InputError(f"{name} has no question with gold passages: nothing to learn from")
    count = sum(asked.values())
    if folds and not 2 <= folds <= count:
        wanted = f"2 to {count}, the number of questions, or 0" if count > 1 else "0 for a single question"
        raise InputError(f"--folds {folds}: wanted is {wanted} for no cross-validation")


def _embedders_of(given: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Parse `EMBEDDER` for all sets and `EMBEDDER=SET,…` for some into data set → embedders; each set needs one."""
    result: dict[str, list[str]] = {name: [] for name in names}
    for text in given:
        embedder, equals, sets = text.partition("=")
        for name in sets.split(",") if equals else names:
            if name not in result:
                raise UnknownNameError("data set under --embedder", name, names)
            if embedder in result[name]:
                raise InputError(f"--embedder {', '.join(given)}: name each once, {embedder} is twice for {name}")
            result[name].append(embedder)
    bare = [name for name, of_set in result.items() if not of_set]
    if bare:
        raise InputError(f"--embedder {', '.join(given)}: none for {', '.join(bare)}; name it, or one for all sets")
    return result


def _triples_of(given: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Parse `NAME=FILE` into data set → file; refuse any other form, a set not trained on, and a missing file."""
    result: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or not Path(file).is_file():
            raise InputError(f"--triples {text}: write NAME=FILE, with a file that is there")
        if name not in names:
            raise UnknownNameError("data set under --triples", name, names)
        if name in result:
            raise InputError(f"--triples {', '.join(given)}: {name} has two files: name one")
        result[name] = Path(file)
    return result
