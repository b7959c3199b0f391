"""Why a question was answered as it was, for programs and notebooks: what `hopbench explain` prints, as objects."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import linked_entities
from hopbench.eval.report.traversal import draw, traversal
from hopbench.flows.explain.as_json import explanation_json
from hopbench.flows.explain.words import fate_words, path_words, rank_words
from hopbench.retrieval.retriever import LEFT

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.explain import Examiner
    from hopbench.flows.explain.target import Target

COLUMNS = {
    "entities": ("words", "entity", "name", "weight", "chunks"),
    "hits": ("rank", "passage", "title", "score", "origin", "path"),
    "gold": ("passage", "title", "fate", "rank", "why"),
}


@dataclass(frozen=True, repr=False)
class Explanation:
    """One question under one label: entities, hits with their paths, and what became of each gold passage.

    `details` is all that is known, as `hopbench explain --json` prints it. Plain values, which can be pickled.
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
        failure = examiner.answer.failure
        rows = {"entities": _entities(target), "hits": _hits(target, examiner), "gold": _gold(target, examiner)}
        details = json.loads(explanation_json(target, [examiner]))
        picture = _picture(target, examiner) if failure is None else ""
        return cls(target.question.text, examiner.answer.label, failure, details, rows, picture)

    def entities(self) -> pd.DataFrame:
        """The entities that the question names: words, entity, name, weight, and how many chunks mention it."""
        return self._table("entities")

    def hits(self) -> pd.DataFrame:
        """The first hits: rank, passage, title, score, origin, path."""
        return self._table("hits")

    def gold(self) -> pd.DataFrame:
        """What became of each gold passage: passage, title, fate, rank, why; empty for a question without gold."""
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
        """The picture, the fates of the gold passages and the hits, as a notebook shows them."""
        if self.failure is not None:
            return f"<p>{html.escape(self.label)} failed: {html.escape(self.failure)}</p>"
        tables = [self.gold(), self.hits()]
        shown = [table for table in tables if len(table)]
        parts = [table.to_html(index=False, float_format=lambda value: f"{value:.4g}") for table in shown]
        left = "".join(parts).replace("<td>", f"<td{LEFT}>").replace("<th>", f"<th{LEFT}>")
        about = html.escape(f"{self.question} ({self.label})")
        picture = base64.b64encode(self.svg().encode()).decode()  # as an image, whose style is not the page's
        return f'<img alt="{about}" src="data:image/svg+xml;base64,{picture}">{left}'


def _entities(target: Target) -> list[tuple[Any, ...]]:
    return [tuple(getattr(link, name) for name in COLUMNS["entities"]) for link in linked_entities(target.batch)]


def _hits(target: Target, examiner: Examiner) -> list[tuple[Any, ...]]:
    return [
        (
            *(place.rank, place.passage, target.title(place.passage), place.hit.score, place.hit.origin),
            path_words(place.hit.path, target.names),
        )
        for place in examiner.answer.places[: examiner.top]
    ]


def _gold(target: Target, examiner: Examiner) -> list[tuple[Any, ...]]:
    rows = []
    for passage in target.question.gold:
        fate = examiner.fate(passage)
        why = " ".join([rank_words(fate), *fate_words(fate, target.names, target.title)])
        rows.append((passage, target.title(passage), fate.kind, fate.place.rank if fate.place else None, why))
    return rows


def _picture(target: Target, examiner: Examiner) -> str:
    linked = {link.entity for link in linked_entities(target.batch)}
    return draw(traversal(target.question, examiner.answer, target.names, linked))
