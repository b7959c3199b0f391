"""A corpus with its graph, opened for questions, and why a question was answered as it was, as objects."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import linked_entities
from hopbench.eval.report.traversal import draw, traversal
from hopbench.flows.explain.words import explanation_json, outcome_words, path_words, rank_words
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.models import ReaderOptions
from hopbench.retrieval.retriever import DEFAULT_K, LEFT, Retrieved, Retriever

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.explain import Examiner
    from hopbench.eval.types import Benchmark
    from hopbench.flows.explain.target import Target
    from hopbench.retrieval.index import Index
    from hopbench.retrieval.strategies.base import Strategy
    from hopbench.retrieval.types import Passage

COLUMNS = {
    "entities": ("words", "entity", "name", "weight", "chunks"),
    "hits": ("rank", "passage", "title", "score", "origin", "path"),
    "gold": ("passage", "title", "fate", "rank", "why"),
}


@dataclass(frozen=True, repr=False)
class Explanation:
    """One question under one label: entities, hits with their paths, and what became of each gold passage.

    Made by `Corpus.explain`. Plain values, which can be pickled.

    Attributes:
        question: The question's text.
        label: The label that answered it.
        failure: Why the label failed; None where it did not.
        details: All that is known, as `hopbench explain --json` prints it.

    Example:
        >>> why = corpus.explain("q1", "hoprank")                                                  # doctest: +SKIP
        >>> why.gold()                                                                             # doctest: +SKIP
    """

    question: str
    label: str
    failure: str | None
    details: Mapping[str, Any] = field(hash=False)
    _rows: Mapping[str, Sequence[tuple[Any, ...]]] = field(hash=False)
    _picture: str = field(hash=False)

    @classmethod
    def of(cls, target: Target, examiner: Examiner) -> Explanation:
        """The explanation of an examined question."""
        answer, links = examiner.answer, linked_entities(target.batch)
        gold = []
        for passage in target.question.gold:
            outcome = examiner.fate(passage)
            why = " ".join([rank_words(outcome), *outcome_words(outcome, target.names, target.title)])
            rank = outcome.place.rank if outcome.place else None
            gold.append((passage, target.title(passage), outcome.kind, rank, why))
        hits = [
            (
                *(place.rank, place.passage, target.title(place.passage), place.hit.score, place.hit.origin),
                path_words(place.hit.path, target.names),
            )
            for place in answer.places[: examiner.top]
        ]
        entities = [tuple(getattr(link, name) for name in COLUMNS["entities"]) for link in links]
        details, picture = json.loads(explanation_json(target, [examiner])), ""
        if answer.failure is None:
            picture = draw(traversal(target.question, answer, target.names, {link.entity for link in links}))
        rows = {"entities": entities, "hits": hits, "gold": gold}
        return cls(target.question.text, answer.label, answer.failure, details, rows, picture)

    def entities(self) -> pd.DataFrame:
        """The entities that the question names: words, entity, name, weight, and how many chunks mention it."""
        return self._table("entities")

    def hits(self) -> pd.DataFrame:
        """The first hits: rank, passage, title, score, origin, path."""
        return self._table("hits")

    def gold(self) -> pd.DataFrame:
        """What became of each gold passage: passage, title, outcome, rank, why; empty for a question without gold."""
        return self._table("gold")

    def svg(self) -> str:
        """The picture of the traversal; empty where the label failed."""
        return self._picture

    def _table(self, name: str) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self._rows[name], columns=list(COLUMNS[name]))

    def __repr__(self) -> str:
        return f"<hopbench.Explanation of {self.question!r} by {self.label}>"

    def _repr_html_(self) -> str:
        """The picture, the outcomes of the gold passages and the hits, as a notebook shows them."""
        if self.failure is not None:
            return f"<p>{html.escape(self.label)} failed: {html.escape(self.failure)}</p>"
        shown = [table for table in (self.gold(), self.hits()) if len(table)]
        parts = [table.to_html(index=False, float_format=lambda value: f"{value:.4g}") for table in shown]
        left = "".join(parts).replace("<td>", f"<td{LEFT}>").replace("<th>", f"<th{LEFT}>")
        about = html.escape(f"{self.question} ({self.label})")
        picture = base64.b64encode(self.svg().encode()).decode()  # as an image, whose style is not the page's
        return f'<img alt="{about}" src="data:image/svg+xml;base64,{picture}">{left}'


DEFAULT = "hoprank"
SAMPLE = 20  # questions by which an exported retriever is checked


@dataclass(eq=False, repr=False)
class Corpus:
    """A data set's passages and questions with its graph. Make one with `hopbench.open`.

    Attributes:
        options: The settings of the graph.
        benchmark: Passages, questions and gold.
        index: The search index over passages and graph.
        record: The record of the graph's build: counts, fingerprint.
        warnings: What a reader should know of the graph, such as that a model could not read some passages.

    Example:
        >>> corpus = hopbench.open("hopworld")                                                     # doctest: +SKIP
        >>> corpus.retrieve("Who founded Hahom Academy?", "hoprank", k=3).ids                      # doctest: +SKIP
    """

    options: GraphOptions
    benchmark: Benchmark
    index: Index
    record: Mapping[str, Any]
    warnings: Sequence[str] = ()
    _retrievers: dict[str, Retriever] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The data set's name."""
        return self.benchmark.name

    @property
    def passages(self) -> Sequence[Passage]:
        """The passages, in the order of the file."""
        return self.benchmark.passages

    @property
    def questions(self) -> Mapping[str, str]:
        """Question id → its text; empty for a corpus without questions."""
        return {question.id: question.text for question in self.benchmark.questions}

    def retriever(self, strategy: str | Strategy = DEFAULT) -> Retriever:
        """A label such as `hoprank`, `pagerank[restart=0.3]`, or a strategy object, ready to be asked.

        Raises UnknownNameError or ParameterError for a label that names no strategy or a parameter outside its bounds.
        """
        from hopbench.retrieval.strategies.base import Strategy
        from hopbench.retrieval.support.errors import InputError

        if not isinstance(strategy, str):
            if not isinstance(strategy, Strategy):
                raise InputError(f"strategy = {strategy!r}: write a label, such as 'hoprank', or a Strategy")
            return Retriever(self.index, strategy, strategy.name)
        if strategy not in self._retrievers:
            from hopbench.retrieval.strategies.registry import make

            self._retrievers[strategy] = Retriever(self.index, make(strategy), strategy)
        return self._retrievers[strategy]

    def retrieve(self, question: str, strategy: str | Strategy = DEFAULT, k: int = DEFAULT_K) -> Retrieved:
        """The best `k` passages for a question, each with its score and the path that led to it."""
        return self.retriever(strategy)(question, k)

    def synthesize(
        self,
        out: str | Path,
        questions: int = 300,
        *,
        types: Sequence[str] = (),
        seed: int = 0,
        role: str = "report",
        force: bool = False,
    ) -> list[Path]:
        """Make a benchmark from the passages alone, by rules, as `hopbench synthesize` does; returns its folders.

        `types` are some of bridge, compositional, intersection, comparison and bridge-comparison (default: all that the
        corpus yields); `role` is tune, report or halves, which writes `out/tune` and `out/report`; `force` writes
        questions that fail their self-check.

        Raises InputError where nothing links, for questions that fail it, and for a folder that holds something.
        """
        from hopbench.flows.orchestration.steps import Progress
        from hopbench.flows.studies.options import SynthesizeOptions
        from hopbench.flows.studies.synthesize import synthesize_opened

        graph = {**dict(self.options), **dict.fromkeys(ReaderOptions.model_fields)}  # by rules, without a model
        made = {
            "out": out,
            "count": questions,
            "types": ",".join(types) or "all",
            "seed": seed,
            "role": role,
            "force": force,
        }
        options = SynthesizeOptions(**{**graph, **made})
        options.refuse_unusable()
        return [each.folder for each in synthesize_opened(options, self.benchmark, self.index, Progress())]

    def explain(self, question: str, strategy: str = DEFAULT, top: int = 10) -> Explanation:
        """Why each gold passage of a question was found or lost by a label.

        `question` is the id of one of the data set's questions, its text, or any other question in words, which has no
        gold. `top` is how many hits are listed, and the k that counts as found. Raises InputError for what is no
        question, a `top` below 1, and a label that names no strategy.
        """
        from hopbench.retrieval.support.errors import InputError

        if not isinstance(question, str):
            raise InputError(f"question = {question!r}: write a question's id or text")
        if top < 1:
            raise InputError(f"top = {top!r}: at least one hit must be listed")
        from hopbench.flows.explain.target import Target, find_question

        target = Target(self.benchmark, find_question(question, self.benchmark), self.index)
        return Explanation.of(target, target.examine(strategy, top))

    def export(self, folder: str | Path, strategy: str | Strategy = DEFAULT) -> Path:
        """Write a strategy with this corpus and graph into a folder, which `hopbench.load` opens anywhere.

        Raises InputError where the folder cannot be written or holds something else.
        """
        from hopbench.retrieval.bundle import write_bundle
        from hopbench.retrieval.types import MAX_TOKENS

        texts = list(self.questions.values())[:SAMPLE] or [p.title or p.text for p in self.passages[:SAMPLE]]
        return write_bundle(
            Path(folder),
            self.retriever(strategy),
            self.passages,
            [text for text in texts if text.strip()],
            embedder=self.options.embedder,
            max_tokens=self.options.max_tokens or MAX_TOKENS,
            dataset=self.name,
        )

    def __len__(self) -> int:
        return len(self.passages)

    def __repr__(self) -> str:
        return f"<hopbench.Corpus {self.name}: {len(self)} passages, {len(self.benchmark.questions)} questions>"

    def _repr_html_(self) -> str:
        """What there is, as a notebook shows it."""
        counts = {"passages": len(self), "questions": len(self.benchmark.questions)}
        counts |= {f"{name} nodes": number for name, number in self.record["nodes"].items()}
        counts |= {f"{name} edges": number for name, number in self.record["edges"].items()}
        rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{number:,}</td></tr>" for name, number in counts.items())
        return f"<table><caption>{html.escape(self.name)}</caption>{rows}</table>"


def open_corpus(options: GraphOptions) -> Corpus:
    """Open a data set and its graph; what is missing of the graph is built first.

    Raises InputError for a data set that cannot be read, an unknown store, embedder or extractor.
    """
    from hopbench.flows.graph.build import built_graph, open_index
    from hopbench.flows.orchestration.steps import plain_steps

    home = Home.resolve().prepare()
    home.apply_environment()
    benchmark = options.benchmark(home, need_questions=False)
    plan = options.graph_plan(benchmark, home)
    index = open_index(options, plan, home)
    record, warnings = built_graph(plan, index, home, plain_steps)
    return Corpus(options, benchmark, index, record, warnings)
