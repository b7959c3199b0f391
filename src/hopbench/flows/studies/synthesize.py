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
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Generator, Recipe
    from hopbench.eval.synthesize.quality import Quality
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
    from hopbench.eval.benchmarks import shown_warnings
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
        for line in (*notes, *shown_warnings(benchmark), *warnings):
            notice(f"warning: {line}")
        yield Corpus(benchmark, index, llm)


UNFINISHED = ".unfinished"
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
    check: Quality


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
        check=one.origin.check,
    )


ROLES: Mapping[str, Sequence[tuple[str, Role, int | None]]] = {
    "tune": [("", "tune", None)],
    "report": [("", "report", None)],
    "halves": [("tune", "tune", 0), ("report", "report", 1)],
}
"""Role → (folder within --out, role of its set, half of the evidence)."""


WRITERS = ("rules", "ragas")
SPARE = 1.5  # paths for each question that a model is to write: its filters drop some


@dataclass(frozen=True, kw_only=True)
class MakeOptions:
    """Graph, recipe, folder and role; `by` writes the questions, with `graph.llm` a model; `budget` in US dollars.

    `force` writes a set that fails its self-check.
    """

    graph: GraphOptions
    recipe: Recipe
    out: Path
    role: str = "report"
    by: str = "rules"
    budget: float | None = None
    force: bool = False

    @property
    def models(self) -> ModelOptions:
        """The model, where one is named."""
        return ModelOptions(**self.graph.model_settings(), budget=self.budget)

    def check(self) -> None:
        """Raise InputError for what cannot be made, before any work begins."""
        if self.role not in ROLES:
            raise UnknownNameError("role", self.role, ROLES)
        if self.by not in WRITERS:
            raise UnknownNameError("writer under --by", self.by, WRITERS)
        if self.by == "ragas" and self.graph.llm is None:
            raise InputError("--by ragas asks a language model: name one with --llm MODEL[@URL]")
        if self.budget is not None and self.graph.llm is None:
            raise InputError(
                f"--budget {self.budget:g}: no language model is asked: name one with --llm, or leave it out"
            )
        self.models.check()
        if self.out.exists() and (not self.out.is_dir() or any(one.name != UNFINISHED for one in self.out.iterdir())):
            raise InputError(f"--out {self.out}: holds something already: name a folder that does not exist")


def synthesize(options: MakeOptions, progress: Progress) -> list[Written]:
    """Make questions and write them with the corpus; builds the graph where it is missing.

    Raises InputError for what cannot be made, and for a corpus in which nothing links; UnfitError where the questions
    fail their self-check.
    """
    options.check()
    with opened(options.graph, options.budget, progress) as corpus:
        return synthesize_opened(options, corpus.benchmark, corpus.index, progress, corpus.llm)


def synthesize_opened(
    options: MakeOptions, benchmark: Benchmark, index: Index, progress: Progress, llm: LLM | None = None
) -> list[Written]:
    """Make questions from a corpus whose index is open, and write them; `synthesize` without opening anything."""
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.quality import refuse_language

    if llm is None:
        refuse_language(index.language)
    progress.begin("evidence")
    return _sets(options, benchmark, Generator(index, benchmark.passages), llm, progress)


def _sets(
    options: MakeOptions, benchmark: Benchmark, generator: Generator, llm: LLM | None, progress: Progress
) -> list[Written]:
    """Every set is made and checked before the first is written."""
    from hopbench.eval.synthesize.quality import UnfitError
    from hopbench.eval.synthesize.write import Origin

    made = []
    for name, of, half in ROLES[options.role]:
        progress.begin(f"questions{f' to {of}' if name else ''}")
        synthetic, origins, dropped, check = _make_set(options, benchmark, generator, half, llm)
        if not synthetic.questions:
            raise InputError(_none_left(options, dropped))
        origin = Origin(
            corpus=benchmark.name,
            corpus_digest=replace(benchmark, questions=()).digest,
            by=" ".join(filter(None, (options.by, options.graph.llm and options.graph.llm.partition("@")[0]))),
            seed=options.recipe.seed,
            role=of,
            dropped=dropped,
            check=check,
        )
        made.append(ToWrite(name, synthetic, origins, origin))
    checks = [one.origin.check for one in made]
    if not options.force and any(check.faults() for check in checks):
        raise UnfitError(checks)
    return write_sets(options.out, made, options.recipe.questions)


def _none_left(options: MakeOptions, dropped: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items() if count)
    return f"--llm {options.graph.llm}: no question is left: {reasons}. Try a stronger model, or no --llm"


def _make_set(
    options: MakeOptions, benchmark: Benchmark, generator: Generator, half: int | None, llm: LLM | None
) -> tuple[Benchmark, Sequence[Mapping[str, Any]], Mapping[str, int], Quality]:
    """The questions with their provenance, what was left out, and the self-check."""
    from hopbench.eval.synthesize.quality import quality, quality_of_texts
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
            check = quality_of_texts([question.text for question in asked], count)
            origins = [
                {"by": "ragas", "passages": list(one.gold), "check": checked}
                for one, checked in zip(asked, check.questions, strict=True)
            ]
            return whole, origins, dropped, check
        found = worded(llm, found, evidence)
    questions = found.questions[:count]
    whole = benchmark_of(benchmark, evidence, questions)
    check = quality(evidence, questions, count)
    checked = zip(questions, check.questions, strict=True)
    return whole, [provenance(each, evidence, one) for each, one in checked], found.dropped, check
