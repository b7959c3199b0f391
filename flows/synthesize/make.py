"""`hopbench synthesize`: a data set made from a corpus alone, in one folder or in two halves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.orchestration.progress import Progress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.eval.synthesize.generate import Generator, Recipe
    from hopbench.eval.types import Benchmark, Role
    from hopbench.retrieval.index import Index

ROLES: Mapping[str, Sequence[tuple[str, Role, int | None]]] = {
    "tune": [("", "tune", None)],
    "report": [("", "report", None)],
    "halves": [("tune", "tune", 0), ("report", "report", 1)],
}
"""Role → (folder within --out, role of its set, half of the evidence)."""


@dataclass(frozen=True)
class Written:
    """A data set that was written: its folder, questions by type, and what was left out for which reason."""

    folder: Path
    role: str
    types: Mapping[str, int]
    dropped: Mapping[str, int]
    wanted: int
    examples: Sequence[str]


def synthesize(options: GraphOptions, recipe: Recipe, out: Path, role: str, progress: Progress) -> list[Written]:
    """Make questions and write them with the corpus; builds the graph where it is missing.

    Raises InputError for a folder that holds something, and for a corpus in which nothing links.
    """
    from hopbench.eval.synthesize.generate import Generator

    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: holds something already: name a folder that does not exist")
    benchmark, index = opened(options, progress)
    progress.begin("evidence")
    generator = Generator(index)
    return list(_sets(benchmark, generator, recipe, out, role, progress))


def opened(options: GraphOptions, progress: Progress) -> tuple[Benchmark, Index]:
    """The corpus, and its index with the graph."""
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.flows.orchestration.steps import plain_steps

    home = Home.resolve().prepare()
    home.apply_environment()
    benchmark = options.benchmark(need_questions=False)
    progress.begin(f"graph of {benchmark.name}")
    plan = options.graph_plan(benchmark, home)
    index = open_index(options, plan, home)
    built_graph(plan, index, home, plain_steps)
    return benchmark, index


def _sets(
    benchmark: Benchmark, generator: Generator, recipe: Recipe, out: Path, role: str, progress: Progress
) -> Iterator[Written]:
    from hopbench.eval.synthesize.card import Origin
    from hopbench.eval.synthesize.write import benchmark_of, write_synthetic

    made = {}
    for name, of, half in ROLES[role]:
        progress.begin(f"questions{f' to {of}' if name else ''}")
        made[name] = generator.make(replace(recipe, half=half))
    for name, of, _ in ROLES[role]:
        questions, dropped = made[name].questions, made[name].dropped
        synthetic = benchmark_of(benchmark, generator.evidence, questions, of)
        origin = Origin(
            corpus=benchmark.name,
            corpus_digest=replace(benchmark, questions=()).digest,
            by="rules",
            seed=recipe.seed,
            role=of,
            dropped=dropped,
        )
        write_synthetic(out / name, synthetic, questions, generator.evidence, origin)
        types = [question.type for question in synthetic.questions]
        examples = [question.text for question in synthetic.questions[:3]]
        counts = {kind: types.count(kind) for kind in dict.fromkeys(sorted(types))}
        yield Written(out / name, of, counts, dropped, recipe.questions, examples)
