"""Resolves the arguments of `hopbench explain`: an open index, a question and its gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.eval.explain import (
    Examiner,
    Names,
    answer,
    browser_text,
    linked_entities,
    pairs_of,
    pasteable,
    queries_of,
    stated,
)
from hopbench.eval.files import write_atomically
from hopbench.eval.runs.external import recorded, stored_rankings
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.flows.graph.build import open_index
from hopbench.flows.run.finished import RunFolder
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.external import FOREIGN
from hopbench.retrieval.fitted import question_hash
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.label import Label
from hopbench.retrieval.strategies.registry import InSample, kind_of, make, remade
from hopbench.retrieval.support.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from hopbench.retrieval.strategies.base import Strategy
    from hopbench.retrieval.types import Step

FREE_TEXT = "(free text)"
MAX_QUOTED = 100
"""Characters of a question that a message repeats."""


@dataclass(frozen=True)
class Target:
    """What is explained. `question` has no gold when it is free text; `run` is the run it belongs to, if any."""

    benchmark: Benchmark
    question: BenchmarkQuestion
    index: Index
    run: RunFolder | None = None

    @cached_property
    def names(self) -> Names:
        """Readable names of the graph's nodes."""
        return Names.read(self.index)

    @cached_property
    def batch(self) -> Batch:
        """The question as a batch over the index; its intermediate results are shared by all variants tried."""
        return Batch(self.index, [self.question.question])

    def stated(self, path: Sequence[Step]) -> list[str]:
        """The relations of the entities on a path, each in its own direction."""
        pairs = pairs_of(path)
        known = stated(self.index, pairs, self.names)
        return [line for pair in pairs for line in known.get(pair, ())]

    def strategy(self, label: str) -> Strategy:
        """The strategy of a label, with the parameters of the run where it was run there."""
        if self.run is None or label not in self.run.labels:
            return make(label)
        entry = self.run.results["strategies"][label]
        if entry.get("kind") == FOREIGN:  # the retriever is not called again: its ranking is in the run
            rows = self.run.rows(label).reset_index()
            return recorded(stored_rankings(rows))
        parameters: Mapping[str, object] = entry["params"]
        try:
            return remade(Label.of_any(label).stages, parameters)
        except UnknownNameError as error:
            raise InputError(
                f"{self.run.folder}: {label} was run with what is unknown here ({error}): run it again"
            ) from error

    def kind(self, label: str) -> tuple[str, InSample | None]:
        """Where a label's numbers come from, and which of the sets that chose them hold this question, if any."""
        stored = self.run.results["strategies"].get(label) if self.run is not None else None
        if stored is not None and "kind" in stored:
            return str(stored["kind"]), stored["in_sample"]
        found = kind_of(label, self.strategy(label))
        if self.question.id == FREE_TEXT:
            return found.kind, None
        # A set that has hashes of its questions needs no digest to be recognised, and a large corpus has a slow one.
        digest = "" if all(one.questions for one in found.fitted_on) else self.benchmark.digest
        return found.kind, found.in_sample(digest, {question_hash(self.question.text)})

    def examine(self, label: str, top: int) -> Examiner:
        """The question answered by a label."""
        return Examiner(self.batch, answer(label, self.strategy(label), self.batch), top)

    def cypher(self, label: str) -> str:
        """The Cypher that a label runs for the question, and its source's example, to paste into a Neo4j browser."""
        strategy, question = self.strategy(label), self.question.question
        sent = browser_text(queries_of(strategy, self.index, question), f"{label}: round trip")
        own = browser_text(pasteable(strategy, self.index, question), f"{label}: the source's own query")
        return "\n\n".join(filter(None, (sent, own)))

    def draw(self, examiner: Examiner, file: Path) -> None:
        """Write the picture of a label's traversal."""
        from hopbench.eval.report.traversal import draw, traversal

        linked = {link.entity for link in linked_entities(self.batch)}
        picture = draw(traversal(self.question, examiner.answer, self.names, linked))
        write_atomically(file, picture.encode())

    def title(self, passage: str) -> str:
        """A passage's title, or its id without one."""
        known = self.benchmark.by_id.get(passage)
        return known.title or passage if known else passage

    def stored(self, label: str) -> Sequence[str] | None:
        """The ranking that the run has stored for a label, None where there is none."""
        if self.run is None or label not in self.run.labels:
            return None
        rows = self.run.rows(label)["ranked_ids"].to_dict()
        return [str(passage) for passage in rows[self.question.id]] if self.question.id in rows else None


def open_target(question: str, asked: GraphOptions, run: Path | None, dataset: str | None) -> Target:
    """Open the benchmark, find the question, open the graph. InputError where one of them is not there."""
    home = Home.resolve()
    home.apply_environment()
    folder = RunFolder.read(run) if run else None
    options = folder.options(dataset) if folder else asked
    benchmark = folder.benchmark(dataset, home) if folder else options.benchmark(home, need_questions=False)
    found = find_question(question, benchmark)
    plan = options.graph_plan(benchmark, home)
    if options.open_store(plan, home).record() is None:
        raise InputError(f"no graph is built for {options.dataset!r} with these settings: {options.build_command()}")
    return Target(benchmark, found, open_index(options, plan, home), folder)


def find_question(text: str, benchmark: Benchmark) -> BenchmarkQuestion:
    """The question of that id or of exactly that text; else the text itself, without gold, if it has several words."""
    for question in benchmark.questions:
        if text in (question.id, question.text):
            return question
    if len(text.split()) > 1:
        return BenchmarkQuestion(FREE_TEXT, text)
    ids = [question.id for question in benchmark.questions]
    asked = repr(text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…")
    if not ids:
        raise InputError(f"{asked}: {benchmark.name} has no questions of its own: ask one in more than one word")
    near = get_close_matches(text, ids, n=3) or ids[:3]
    raise InputError(
        f"{asked} is no question of {benchmark.name}, which has {len(ids)}, such as {', '.join(near)}; "
        "a question in words needs more than one word"
    )
