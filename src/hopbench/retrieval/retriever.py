"""One strategy over one index, for programs that only want passages: it ranks exactly as a run does."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, overload

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.linking import Names
from hopbench.retrieval.strategies.base import Strategy
from hopbench.retrieval.support.errors import InputError, StrategyError
from hopbench.retrieval.types import UNKNOWN_SOURCE, Counters, Hit, Question, Ranking, Source, Step

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_K = 5
SHOWN_CHARACTERS = 300
LEFT = ' style="text-align: left"'


@dataclass(frozen=True)
class RetrievedPassage:
    """A passage at its rank (from 1), with what led to it.

    `origin` is `seed` (found by the strategy's own first search), `graph` (an edge led to it) or `fill` (it completes a
    short ranking). `path` holds the edges from a seed or an entity of the question to the passage, and `components`
    what the score is made of. `text` is the whole passage.
    """

    rank: int
    id: str
    title: str
    text: str
    score: float
    origin: str = "seed"
    path: tuple[Step, ...] = ()
    components: Mapping[str, float] = field(default_factory=dict)
    source: Source = UNKNOWN_SOURCE


@dataclass(frozen=True, repr=False)
class Retrieved(Sequence[RetrievedPassage]):
    """The best passages for one question, best first; a sequence that a notebook shows as a table.

    `notes` is what the strategy noted on its way, `graph_context` the block of text that some strategies put beside the
    passages (empty for most).
    """

    question: str
    label: str
    passages: tuple[RetrievedPassage, ...] = ()
    notes: Mapping[str, object] = field(default_factory=dict)
    graph_context: str = ""
    name_of: Callable[[str], str] = field(default=str, compare=False)

    @overload
    def __getitem__(self, index: int) -> RetrievedPassage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RetrievedPassage]: ...
    def __getitem__(self, index: int | slice) -> RetrievedPassage | Sequence[RetrievedPassage]:
        return self.passages[index]

    def __len__(self) -> int:
        return len(self.passages)

    @property
    def ids(self) -> list[str]:
        """Passage ids, best first."""
        return [passage.id for passage in self.passages]

    def paths(self) -> list[str]:
        """How each passage was reached, readable: `Jaipur -MENTIONED_IN-> [Hawa Mahal]`; empty for a seed."""
        name_of = self.name_of
        return [
            name_of(one.path[0].source) + "".join(f" -{step.edge}-> {name_of(step.target)}" for step in one.path)
            if one.path
            else ""
            for one in self.passages
        ]

    def to_frame(self) -> pd.DataFrame:
        """A row per passage: rank, id, title, score, origin, path, text."""
        import pandas as pd

        rows = [
            (one.rank, one.id, one.title, one.score, one.origin, path, one.text)
            for one, path in zip(self.passages, self.paths(), strict=True)
        ]
        return pd.DataFrame(rows, columns=["rank", "id", "title", "score", "origin", "path", "text"])

    def __getstate__(self) -> dict[str, Any]:
        # Of all the graph's names, only those that the paths show are pickled.
        nodes = {node for one in self.passages for step in one.path for node in (step.source, step.target)}
        return {**vars(self), "name_of": partial(_known, {node: self.name_of(node) for node in nodes})}

    def __repr__(self) -> str:
        return f"<hopbench.Retrieved {self.ids} for {self.question!r} by {self.label}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows; notebooks align cells to the right, in which texts are hard to read."""
        head = "".join(f"<th{LEFT}>{name}</th>" for name in ("rank", "passage", "score", "how it was reached", "text"))
        rows = ""
        for one, path in zip(self.passages, self.paths(), strict=True):
            text = one.text
            shown = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS].rstrip() + " …"
            cells = (str(one.rank), one.title or one.id, f"{one.score:.4g}", path or one.origin, shown)
            rows += f"<tr>{''.join(f'<td{LEFT}>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        caption = f"{html.escape(self.question)} <i>({html.escape(self.label)})</i>"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _known(names: Mapping[str, str], node: str) -> str:
    return names.get(node, node)


@dataclass(frozen=True, eq=False, repr=False)
class Retriever:
    """A strategy ready to be asked. `label` names it as runs do, such as `hoprank` or `pagerank[restart=0.3]`.

    >>> retriever("Who designed the tower?", k=3).ids                                              # doctest: +SKIP
    ['p12', 'p7', 'p31']
    """

    index: Index
    strategy: Strategy
    label: str

    def __repr__(self) -> str:
        return f"<hopbench.Retriever {self.label} over {len(self._texts):,} passages>"

    def __call__(self, question: str, k: int = DEFAULT_K) -> Retrieved:
        """The best `k` passages for one question; see `batch`."""
        return self.batch([question], k)[0]

    def batch(self, questions: Iterable[str], k: int = DEFAULT_K) -> list[Retrieved]:
        """The best passages for each of several questions, which share the work of one search.

        Args:
            questions: in words.
            k: passages for each question; at most 100 are ranked.

        Raises:
            InputError: for a question that is blank or no text, or a `k` that is no whole number above 0.
            StrategyError: where the strategy failed.
        """
        if isinstance(questions, str):
            raise InputError("questions is one text: call the retriever itself for one question, or pass a list")
        if not isinstance(k, Integral) or k < 1:
            raise InputError(f"k = {k!r}: a whole number of passages is wanted, at least 1")
        questions = list(questions)
        for place, text in enumerate(questions):
            if not isinstance(text, str) or not text.strip():
                reason = "is blank" if isinstance(text, str) else f"is of type {type(text).__name__}"
                raise InputError(f"question {place} {reason}: write a question in words")
        wanted = [Question(str(number), text) for number, text in enumerate(questions)]
        rankings = self.strategy.rank(Batch(self.index, wanted, alone=len(wanted) == 1), Counters())
        return [self._answer(text, ranking, k) for text, ranking in zip(questions, rankings, strict=True)]

    def _answer(self, question: str, ranking: Ranking, k: int) -> Retrieved:
        if ranking.failure is not None:
            raise StrategyError(f"{self.label} could not answer {question!r}: {ranking.failure}")
        best: dict[str, Hit] = {}
        for hit in ranking.hits:
            best.setdefault(self.index.passage_of[hit.chunk_id], hit)
            if len(best) == k:
                break
        passages = tuple(
            RetrievedPassage(
                rank, name, *self._texts[name], hit.score, hit.origin, hit.path, hit.components, hit.source
            )
            for rank, (name, hit) in enumerate(best.items(), 1)
        )
        return Retrieved(question, self.label, passages, ranking.notes, ranking.graph_context, self._name_of)

    def _name_of(self, node: str) -> str:
        """A node of a path as people call it; the names are read when the first path is shown."""
        return self._names(node)

    @cached_property
    def _names(self) -> Names:
        return Names.read(self.index)

    @cached_property
    def _texts(self) -> Mapping[str, tuple[str, str]]:
        """Passage id → title and text, parts of a split passage joined."""
        texts: dict[str, tuple[str, str]] = {}
        for chunk in sorted(self.index.chunks, key=lambda one: (one.passage_id, one.index)):
            title, before = texts.get(chunk.passage_id, (chunk.title, ""))
            texts[chunk.passage_id] = title, f"{before} {chunk.text}" if before else chunk.text
        return texts
