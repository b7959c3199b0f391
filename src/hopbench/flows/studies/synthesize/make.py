"""`hopbench synthesize`: a data set made from a corpus alone, in one folder or in two halves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.flows.orchestration.progress import Progress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.models import ModelOptions
from hopbench.flows.studies.synthesize.corpus import opened
from hopbench.flows.studies.synthesize.written import UNFINISHED, ToWrite, Written, write_sets
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Generator, Recipe
    from hopbench.eval.types import Benchmark, Role
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.llm import LLM

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
    """Graph, recipe, folder and role; `by` writes the questions, with `graph.llm` a model; `budget` in US dollars."""

    graph: GraphOptions
    recipe: Recipe
    out: Path
    role: str = "report"
    by: str = "rules"
    budget: float | None = None

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

    Raises InputError for what cannot be made, and for a corpus in which nothing links.
    """
    options.check()
    with opened(options.graph, options.budget, progress) as corpus:
        return synthesize_opened(options, corpus.benchmark, corpus.index, progress, corpus.llm)


def synthesize_opened(
    options: MakeOptions, benchmark: Benchmark, index: Index, progress: Progress, llm: LLM | None = None
) -> list[Written]:
    """Make questions from a corpus whose index is open, and write them; `synthesize` without opening anything."""
    from hopbench.eval.synthesize.generate import Generator

    progress.begin("evidence")
    return _sets(options, benchmark, Generator(index), llm, progress)


def _sets(
    options: MakeOptions, benchmark: Benchmark, generator: Generator, llm: LLM | None, progress: Progress
) -> list[Written]:
    """Every set is made before the first is written."""
    from hopbench.eval.synthesize.write import Origin

    made = []
    for name, of, half in ROLES[options.role]:
        progress.begin(f"questions{f' to {of}' if name else ''}")
        synthetic, origins, dropped = _made(options, benchmark, generator, half, llm)
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
    return write_sets(options.out, made, options.recipe.questions)


def _none_left(options: MakeOptions, dropped: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in dropped.items() if count)
    return f"--llm {options.graph.llm}: no question is left: {reasons}. Try a stronger model, or no --llm"


def _made(
    options: MakeOptions, benchmark: Benchmark, generator: Generator, half: int | None, llm: LLM | None
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
