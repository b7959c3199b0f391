"""`hopbench synthesize`: a data set made from a corpus alone, in one folder or in two halves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions, open_models
from hopbench.flows.studies.options import UNFINISHED, SynthesizeOptions
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.write import Origin
    from hopbench.eval.types import Benchmark, Role
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


EXAMPLES = 3


@dataclass(frozen=True)
class ToWrite:
    """A set with the provenance of each question; `name` is its folder within --out, empty for --out itself."""

    name: str
    benchmark: Benchmark
    provenances: Sequence[Mapping[str, Any]]
    origin: Origin


@dataclass(frozen=True)
class Written:
    """A data set that was written: its folder, questions by type, and what was left out for which reason."""

    folder: Path
    role: str
    types: Mapping[str, int]
    dropped: Mapping[str, int]
    wanted: int
    examples: Sequence[str]


def write_sets(out: Path, sets: Sequence[ToWrite], wanted: int) -> list[Written]:
    """Write all sets beside each other, then move them into place; `wanted` questions of each were asked for.

    What a process that was killed has left behind is written anew. Raises InputError where a folder cannot be written.
    """
    from hopbench.eval.synthesize.write import write_synthetic

    staging = out / UNFINISHED
    rmtree(staging, ignore_errors=True)
    try:
        for one in sets:
            write_synthetic(_staged(out, one), one.benchmark, one.provenances, one.origin)
        for one in sets:
            _move(_staged(out, one), out / one.name)
    finally:
        rmtree(staging, ignore_errors=True)
    return [_written(out, one, wanted) for one in sets]


def _staged(out: Path, one: ToWrite) -> Path:
    """A folder of the final name, which the card has."""
    return out / UNFINISHED / (one.name or out.resolve().name)


def _move(staged: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for file in sorted(staged.iterdir()):
        file.rename(folder / file.name)


def _written(out: Path, one: ToWrite, wanted: int) -> Written:
    questions = one.benchmark.questions
    return Written(
        folder=out / one.name,
        role=one.origin.role,
        types=dict(sorted(Counter(question.type for question in questions).items())),
        dropped=one.origin.dropped,
        wanted=wanted,
        examples=[question.text for question in questions[:EXAMPLES]],
    )


ROLES: Mapping[str, Sequence[tuple[str, Role, int | None]]] = {
    "tune": [("", "tune", None)],
    "report": [("", "report", None)],
    "halves": [("tune", "tune", 0), ("report", "report", 1)],
}
"""Role → (folder within --out, role of its set, half of the evidence)."""


SPARE = 1.5  # paths for each question that a model is to write: its filters drop some


def synthesize(options: SynthesizeOptions, progress: Progress) -> list[Written]:
    """Make questions and write them with the corpus; builds the graph where it is missing.

    Raises InputError for what cannot be made, and for a corpus in which nothing links.
    """
    options.refuse_unusable()
    with opened(options.graph, options.budget, progress) as corpus:
        return synthesize_opened(options, corpus.benchmark, corpus.index, progress, corpus.llm)


def synthesize_opened(
    options: SynthesizeOptions, benchmark: Benchmark, index: Index, progress: Progress, llm: LLM | None = None
) -> list[Written]:
    """Make questions from a corpus whose index is open, and write them; `synthesize` without opening anything."""
    from hopbench.eval.synthesize.generate import Generator

    progress.begin("evidence")
    return _sets(options, benchmark, Generator(index), llm, progress)


def _sets(
    options: SynthesizeOptions, benchmark: Benchmark, generator: Generator, llm: LLM | None, progress: Progress
) -> list[Written]:
    """Every set is made before the first is written."""
    from hopbench.eval.synthesize.write import Origin

    made = []
    for name, of, half in ROLES[options.role]:
        progress.begin(f"questions{f' to {of}' if name else ''}")
        synthetic, origins, dropped = _make_set(options, benchmark, generator, half, llm)
        if not synthetic.questions:
            raise InputError(_none_left(options, dropped))
        origin = Origin(
            corpus=benchmark.name,
            corpus_digest=replace(benchmark, questions=()).digest,
            by=" ".join(filter(None, (options.by, options.graph.llm and options.graph.llm.partition("@")[0]))),
            seed=options.recipe.seed,
            role=of,
            dropped=dropped,
        )
        made.append(ToWrite(name, synthetic, origins, origin))
    return write_sets(options.folder, made, options.recipe.questions)


def _none_left(options: SynthesizeOptions, dropped: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items() if count)
    return f"--llm {options.graph.llm}: no question is left: {reasons}. Try a stronger model, or no --llm"


def _make_set(
    options: SynthesizeOptions, benchmark: Benchmark, generator: Generator, half: int | None, llm: LLM | None
) -> tuple[Benchmark, Sequence[Mapping[str, Any]], Mapping[str, int]]:
    """The questions with their provenance, and what was left out."""
    from hopbench.eval.synthesize.write import benchmark_of, provenance, synthetic_name

    recipe, evidence = replace(options.recipe, half=half), generator.evidence
    count = recipe.questions
    if llm is None:
        found = generator.make(recipe)
    else:
        from hopbench.eval.synthesize.models import worded

        found = generator.make(replace(recipe, questions=math.ceil(SPARE * count)))
        if options.by == "ragas":
            from hopbench.eval.synthesize.models import ragas_questions

            asked, dropped = ragas_questions(
                llm, evidence.index.embedder, evidence, found.questions, count, recipe.seed
            )
            whole = replace(benchmark, name=synthetic_name(benchmark), questions=tuple(asked))
            return whole, [{"by": "ragas", "passages": list(question.gold)} for question in asked], dropped
        found = worded(llm, found, evidence)
    questions = found.questions[:count]
    whole = benchmark_of(benchmark, evidence, questions)
    return whole, [provenance(each, evidence) for each in questions], found.dropped
