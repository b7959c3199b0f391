"""`hopbench synthesize`: a data set made from a corpus alone, how far it may be trusted, and what it would cost."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from hopbench.flows.orchestration.steps import Progress, plain_steps
from hopbench.flows.run.estimate import Estimate, priced
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ModelOptions, open_models
from hopbench.flows.studies.options import UNFINISHED, SynthesizeOptions
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.notice import notice

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.quality import Quality
    from hopbench.eval.synthesize.trust import Agreement, Floats
    from hopbench.eval.synthesize.write import Origin
    from hopbench.eval.types import Benchmark, BenchmarkQuestion, Role
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.llm import LLM

EXAMPLES = 3
ROLES: Mapping[str, Sequence[tuple[str, Role, int | None]]] = {
    "tune": [("", "tune", None)],
    "report": [("", "report", None)],
    "halves": [("tune", "tune", 0), ("report", "report", 1)],
}
"""Role → (folder within --out, role of its set, half of the evidence)."""
SPARE = 1.5  # paths for each question that a model is to write: its filters drop some
SCHEMA = "hopbench.synthesize-check/1"

ASSUMED = "Assumed: nothing cached, no question dropped before its last check, passages of the corpus's mean length."
GOLD = 2.4  # passages of a question, a mean
SENTENCE = 40  # tokens
WRITTEN, ANSWERED, RAGAS_REPLY, RAGAS_PROMPT = 45, 12, 120, 900
SAMPLED = 200


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


@dataclass(frozen=True)
class CheckOutcome:
    """How synthetic sets of several seeds agree with the real questions, and each label's means (real, synthetic)."""

    benchmark: str
    digest: str
    passages: int
    embedder: str
    agreements: Sequence[Agreement]
    means: dict[str, tuple[float, float]]


@contextmanager
def _opened(
    options: GraphOptions, budget: float | None, progress: Progress
) -> Iterator[tuple[Benchmark, Index, LLM | None]]:
    """The corpus, its index, and the model that is named; a missing graph is built, by the model where it extracts.

    `budget` in US dollars is for all calls of the model. Raises IncompleteError where nothing answers at its address.
    """
    from hopbench.flows.graph.build import built_graph, open_index

    home = Home.resolve().prepare()
    home.apply_environment()
    named = ModelOptions(**options.model_settings(), budget=budget)
    notes = [*named.reach(home), *named.warnings()]
    with open_models(named, options.open_embedder(home), home) as models:
        from hopbench.eval.benchmarks import shown_warnings

        benchmark = options.benchmark(home, need_questions=False)
        progress.begin(f"graph of {benchmark.name}")
        llm = models.reading.reader
        plan = options.with_reader(options.graph_plan(benchmark, home), llm)
        index = open_index(options, plan, home)
        _, warnings = built_graph(plan, index, home, plain_steps)
        for line in (*notes, *shown_warnings(benchmark), *warnings):
            notice(f"warning: {line}")
        yield benchmark, index, llm


def synthesize(options: SynthesizeOptions, progress: Progress) -> list[Written]:
    """Make questions and write them with the corpus; builds the graph where it is missing.

    Raises InputError for what cannot be made, and for a corpus in which nothing links; UnfitError where the questions
    fail their self-check.
    """
    options.refuse_unusable()
    with _opened(options.graph, options.budget, progress) as (benchmark, index, llm):
        return synthesize_opened(options, benchmark, index, progress, llm)


def synthesize_opened(
    options: SynthesizeOptions, benchmark: Benchmark, index: Index, progress: Progress, llm: LLM | None = None
) -> list[Written]:
    """Make questions from a corpus whose index is open; every set is made before the first is written."""
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.quality import UnfitError, refuse_language
    from hopbench.eval.synthesize.write import Origin

    if llm is None:
        refuse_language(index.language)
    progress.begin("evidence")
    generator = Generator(index, benchmark.passages)
    made = []
    for name, of, half in ROLES[options.role]:
        progress.begin(f"questions{f' to {of}' if name else ''}")
        synthetic, origins, dropped, check = _make_set(options, benchmark, generator, half, llm)
        if not synthetic.questions:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items() if count)
            raise InputError(
                f"--llm {options.graph.llm}: no question is left: {reasons}. Try a stronger model, or no --llm"
            )
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
    return write_sets(options.folder, made, options.recipe.questions)


def _make_set(
    options: SynthesizeOptions, benchmark: Benchmark, generator: Generator, half: int | None, llm: LLM | None
) -> tuple[Benchmark, Sequence[Mapping[str, Any]], Mapping[str, int], Quality]:
    """The questions with their provenance, what was left out, and the self-check."""
    from hopbench.eval.synthesize.quality import quality, quality_of_texts
    from hopbench.eval.synthesize.write import benchmark_of, provenance, synthetic_name

    recipe, evidence = replace(options.recipe, half=half), generator.evidence
    count = recipe.questions
    if llm is None:
        found = generator.make(recipe)
    else:
        from hopbench.eval.synthesize.models import ragas_questions, worded

        found = generator.make(replace(recipe, questions=math.ceil(SPARE * count)))
        if options.by == "ragas":
            embedder = evidence.index.embedder
            asked, dropped = ragas_questions(llm, embedder, evidence, found.questions, count, recipe.seed)
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


def write_sets(out: Path, sets: Sequence[ToWrite], wanted: int) -> list[Written]:
    """Write all sets into one staging folder, then move them into place; `wanted` questions of each were asked for.

    What a process that was killed has left behind is written anew. Raises InputError where a folder cannot be written.
    """
    from hopbench.eval.synthesize.write import write_synthetic

    staging = out / UNFINISHED
    staged = {one.name: staging / (one.name or out.resolve().name) for one in sets}  # the card has the folder's name
    rmtree(staging, ignore_errors=True)
    try:
        for one in sets:
            write_synthetic(staged[one.name], one.benchmark, one.provenances, one.origin)
        for one in sets:
            folder = out / one.name
            folder.mkdir(exist_ok=True)
            for file in sorted(staged[one.name].iterdir()):
                file.rename(folder / file.name)
    finally:
        rmtree(staging, ignore_errors=True)
    written = []
    for one in sets:
        questions = one.benchmark.questions
        types = dict(sorted(Counter(question.type for question in questions).items()))
        examples = [question.text for question in questions[:EXAMPLES]]
        written.append(
            Written(out / one.name, one.origin.role, types, one.origin.dropped, wanted, examples, one.origin.check)
        )
    return written


def check(options: SynthesizeOptions, progress: Progress) -> CheckOutcome:
    """Make `seeds` synthetic sets from a labelled set's corpus and compare what they say of the labels.

    Raises InputError for a set without gold.
    """
    from hopbench.eval.files import refuse_unwritable, write_atomically
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.quality import refuse_language
    from hopbench.eval.synthesize.trust import agreement, measured
    from hopbench.eval.synthesize.write import benchmark_of
    from hopbench.retrieval.strategies.registry import resolve

    if options.out is not None:
        refuse_unwritable(options.out)
    labels = resolve(options.strategies)
    with _opened(options.graph, options.budget, progress) as (benchmark, index, _):
        asked = [question for question in benchmark.questions if question.gold]
        if not asked:
            raise InputError(
                f"--check {options.graph.dataset}: no question has gold passages, so there is nothing to compare "
                "synthetic questions with: name a labelled set (hopbench check-data shows what a set has)"
            )
        progress.expect((options.seeds + 1) * len(labels))

        def values(questions: Sequence[BenchmarkQuestion], of: str) -> dict[str, Floats]:
            return measured(index, questions, labels, lambda label: progress.begin(f"{label} on {of} questions"))

        refuse_language(index.language)
        generator = Generator(index, benchmark.passages)
        recipes = [replace(options.recipe, seed=options.seed + number) for number in range(options.seeds)]
        made = [benchmark_of(benchmark, generator.evidence, generator.make(one).questions) for one in recipes]
        real = values(asked, "real")
        synthetic = [values(one.questions, "synthetic") for one in made]
    means = {
        label: (float(real[label].mean()), float(sum(each[label].mean() for each in synthetic) / options.seeds))
        for label in labels
    }
    agreements, passages = [agreement(real, each) for each in synthetic], len(benchmark.passages)
    outcome = CheckOutcome(benchmark.name, benchmark.digest, passages, index.embedder.name, agreements, means)
    if options.out is not None:
        content = {"schema": SCHEMA, **asdict(outcome)}
        write_atomically(options.out, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
    return outcome


def estimate(options: SynthesizeOptions) -> Estimate:
    """Estimate the calls of the model. Raises InputError where none is named."""
    from hopbench.eval.answering.estimate import extraction_line
    from hopbench.retrieval.text.model_tokens import count_tokens

    options.refuse_unusable()
    if options.graph.llm is None:
        raise InputError("--dry-run estimates what a language model costs: name one with --llm MODEL[@URL]")
    home = Home.resolve()
    home.apply_environment()
    benchmark = options.graph.benchmark(need_questions=False)
    lengths = [count_tokens(one.text) for one in benchmark.passages[:: max(1, len(benchmark.passages) // SAMPLED)]]
    questions = math.ceil(SPARE * options.recipe.questions) * len(ROLES[options.role])
    lines = []
    if options.graph.extractor == "llm" and not options.graph.triples:
        lines.append(extraction_line(benchmark, options.graph.gleaning))
    lines += _written_lines(options, questions, sum(lengths) / len(lengths))
    return priced(lines, options.models, home)


def _written_lines(options: SynthesizeOptions, questions: int, passage: float) -> list[Line]:
    """The calls that write questions, and those of the filters; `passage` is the mean length in tokens."""
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.models import ANSWER, CALLS_PER_CHUNK, CALLS_PER_QUESTION, WRITE
    from hopbench.retrieval.text.model_tokens import count_tokens

    if options.by == "ragas":
        calls = CALLS_PER_CHUNK * GOLD * questions + CALLS_PER_QUESTION * options.recipe.questions
        return [Line("ragas", "synthesize:ragas", "llm", calls, calls * (RAGAS_PROMPT + passage), calls * RAGAS_REPLY)]
    prompts = questions * (count_tokens(WRITE) + GOLD * SENTENCE)
    checks = (1 + GOLD) * questions
    read = checks * (count_tokens(ANSWER) + WRITTEN) + GOLD * questions * passage
    return [
        Line("rules", "synthesize:write", "llm", questions, prompts, questions * WRITTEN),
        Line("rules", "synthesize:check", "llm", checks, read, checks * ANSWERED),
    ]
