"""How far synthetic questions may be trusted beside real ones, and what writing them would cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.run.estimate import Estimate, priced
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.studies.synthesize import ROLES, SPARE, Corpus, MakeOptions, opened
from hopbench.retrieval.support.errors import InputError

if TYPE_CHECKING:
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.generate import Recipe
    from hopbench.eval.synthesize.trust import Agreement, Floats
    from hopbench.eval.types import BenchmarkQuestion
    from hopbench.retrieval.strategies.base import Strategy

SCHEMA = "hopbench.synthesize-check/1"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The labelled set, what to make of its corpus with how many `seeds`, the labels, and the JSON file to write.

    `budget`, in US dollars, is for the model that reads the graph, where one does.
    """

    graph: GraphOptions
    recipe: Recipe
    seeds: int
    strategies: str
    out: Path | None = None
    budget: float | None = None


@dataclass(frozen=True)
class CheckOutcome:
    """How synthetic sets of several seeds agree with the real questions, and each label's means (real, synthetic)."""

    benchmark: str
    digest: str
    passages: int
    embedder: str
    agreements: Sequence[Agreement]
    means: dict[str, tuple[float, float]]

    def plain(self) -> dict[str, object]:
        """As JSON."""
        return {"schema": SCHEMA, **asdict(self)}


def check(options: CheckOptions, progress: Progress) -> CheckOutcome:
    """Make `seeds` synthetic sets from a labelled set's corpus and compare what they say of the labels.

    Raises InputError for a set without gold.
    """
    from hopbench.eval.files import refuse_unwritable, write_atomically
    from hopbench.retrieval.strategies.registry import resolve

    if options.out is not None:
        refuse_unwritable(options.out)
    labels = resolve(options.strategies)
    with opened(options.graph, options.budget, progress) as corpus:
        outcome = _compared(options, corpus, labels, progress)
    if options.out is not None:
        write_atomically(options.out, (json.dumps(outcome.plain(), indent=1, ensure_ascii=False) + "\n").encode())
    return outcome


def _compared(
    options: CheckOptions, corpus: Corpus, labels: Mapping[str, Strategy], progress: Progress
) -> CheckOutcome:
    from hopbench.eval.synthesize.trust import agreement, measured

    benchmark, index = corpus.benchmark, corpus.index
    asked = [question for question in benchmark.questions if question.gold]
    if not asked:
        raise InputError(
            f"--check {options.graph.dataset}: no question has gold passages, so there is nothing to compare "
            "synthetic questions with: name a labelled set (hopbench check-data shows what a set has)"
        )
    progress.expect((options.seeds + 1) * len(labels))

    def values(questions: Sequence[BenchmarkQuestion], of: str) -> dict[str, Floats]:
        return measured(index, questions, labels, lambda label: progress.begin(f"{label} on {of} questions"))

    made = _make_checked(options, corpus)  # before the real questions are read
    real = values(asked, "real")
    synthetic = [values(questions, "synthetic") for questions in made]
    means = {
        label: (float(real[label].mean()), float(sum(each[label].mean() for each in synthetic) / options.seeds))
        for label in labels
    }
    agreements = [agreement(real, each) for each in synthetic]
    return CheckOutcome(
        benchmark.name, benchmark.digest, len(benchmark.passages), index.embedder.name, agreements, means
    )


def _make_checked(options: CheckOptions, corpus: Corpus) -> list[Sequence[BenchmarkQuestion]]:
    """The questions of each seed."""
    from hopbench.eval.synthesize.generate import Generator
    from hopbench.eval.synthesize.quality import refuse_language
    from hopbench.eval.synthesize.write import benchmark_of

    refuse_language(corpus.index.language)
    generator, first = Generator(corpus.index, corpus.benchmark.passages), options.recipe.seed
    recipes = [replace(options.recipe, seed=seed) for seed in range(first, first + options.seeds)]
    return [
        benchmark_of(corpus.benchmark, generator.evidence, generator.make(recipe).questions).questions
        for recipe in recipes
    ]


ASSUMED = "Assumed: nothing cached, no question dropped before its last check, passages of the corpus's mean length."
GOLD = 2.4  # passages of a question, a mean
SENTENCE = 40  # tokens
WRITTEN, ANSWERED, RAGAS_REPLY, RAGAS_PROMPT = 45, 12, 120, 900
SAMPLED = 200


def estimate(options: MakeOptions) -> Estimate:
    """Estimate the calls of the model. Raises InputError where none is named."""
    from hopbench.eval.answering.estimate import extraction_line
    from hopbench.retrieval.text.model_tokens import count_tokens

    options.check()
    if options.graph.llm is None:
        raise InputError("--dry-run estimates what a language model costs: name one with --llm MODEL[@URL]")
    home = Home.resolve()
    home.apply_environment()
    benchmark = options.graph.benchmark(need_questions=False)
    passage = _mean(
        [count_tokens(one.text) for one in benchmark.passages[:: max(1, len(benchmark.passages) // SAMPLED)]]
    )
    questions = math.ceil(SPARE * options.recipe.questions) * len(ROLES[options.role])
    lines = []
    if options.graph.extractor == "llm" and not options.graph.triples:
        lines.append(extraction_line(benchmark, options.graph.gleaning))
    lines += _by_ragas(options, questions, passage) if options.by == "ragas" else _by_rules(questions, passage)
    return priced(lines, options.models, home)


def _by_ragas(options: MakeOptions, questions: int, passage: float) -> list[Line]:
    """The calls of RAGAS's generator; `passage` is the mean length in tokens."""
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.models import CALLS_PER_CHUNK, CALLS_PER_QUESTION

    calls = CALLS_PER_CHUNK * GOLD * questions + CALLS_PER_QUESTION * options.recipe.questions
    return [Line("ragas", "synthesize:ragas", "llm", calls, calls * (RAGAS_PROMPT + passage), calls * RAGAS_REPLY)]


def _by_rules(questions: int, passage: float) -> list[Line]:
    """The calls that put the rules' paths into words, and those of the filters."""
    from hopbench.eval.answering.estimate import Line
    from hopbench.eval.synthesize.models import ANSWER, WRITE
    from hopbench.retrieval.text.model_tokens import count_tokens

    prompts = questions * (count_tokens(WRITE) + GOLD * SENTENCE)
    checks = (1 + GOLD) * questions
    read = checks * (count_tokens(ANSWER) + WRITTEN) + GOLD * questions * passage
    return [
        Line("rules", "synthesize:write", "llm", questions, prompts, questions * WRITTEN),
        Line("rules", "synthesize:check", "llm", checks, read, checks * ANSWERED),
    ]


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)
