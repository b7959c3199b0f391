"""Why a question was answered as it was, for programs and notebooks: what `hopbench explain` prints, as objects."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopbench.eval.explain import Examiner, linked_entities
from hopbench.eval.report.traversal import traversal
from hopbench.eval.report.traversal_svg import draw
from hopbench.flows.explain.as_json import explanation_json
from hopbench.flows.explain.target import Target
from hopbench.flows.explain.words import fate_words, path_words, rank_words
from hopbench.retrieval.retriever import LEFT

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """One question under one label: entities, hits with their paths, and what became of each gold passage."""

    target: Target
    examiner: Examiner

    @property
    def question(self) -> str:
        """The question in words."""
        return self.target.question.text

    @property
    def label(self) -> str:
        """The label that answered."""
        return self.examiner.answer.label

    def entities(self) -> pd.DataFrame:
        """The entities that the question names: words, entity, name, weight, and how many chunks mention it."""
        import pandas as pd

        columns = ["words", "entity", "name", "weight", "chunks"]
        links = linked_entities(self.target.batch)
        return pd.DataFrame([[getattr(link, name) for name in columns] for link in links], columns=columns)

    def hits(self) -> pd.DataFrame:
        """The first hits: rank, passage, title, score, origin, path."""
        import pandas as pd

        rows = [
            (
                *(place.rank, place.passage, self.target.title(place.passage), place.hit.score, place.hit.origin),
                path_words(place.hit.path, self.target.names),
            )
            for place in self.examiner.answer.places[: self.examiner.top]
        ]
        return pd.DataFrame(rows, columns=["rank", "passage", "title", "score", "origin", "path"])

    def gold(self) -> pd.DataFrame:
        """What became of each gold passage: passage, title, fate, rank, why; empty for a question without gold."""
        import pandas as pd

        rows = []
        for passage in self.target.question.gold:
            fate = self.examiner.fate(passage)
            why = " ".join([rank_words(fate), *fate_words(fate, self.target.names, self.target.title)])
            rank = fate.place.rank if fate.place else None
            rows.append((passage, self.target.title(passage), fate.kind, rank, why))
        return pd.DataFrame(rows, columns=["passage", "title", "fate", "rank", "why"])

    def svg(self) -> str:
        """The picture of the traversal."""
        linked = {link.entity for link in linked_entities(self.target.batch)}
        return draw(traversal(self.target.question, self.examiner.answer, self.target.names, linked))

    @cached_property
    def details(self) -> dict[str, Any]:
        """All that is known, as `hopbench explain --json` prints it."""
        content: dict[str, Any] = json.loads(explanation_json(self.target, [self.examiner]))
        return content

    def __repr__(self) -> str:
        return f"<hopbench.Explanation of {self.question!r} by {self.label}>"

    def _repr_html_(self) -> str:
        """The picture, the fates of the gold passages and the hits, as a notebook shows them."""
        if self.examiner.answer.failure is not None:
            return f"<p>{html.escape(self.label)} failed: {html.escape(self.examiner.answer.failure)}</p>"
        tables = [self.gold(), self.hits()]
        shown = [table for table in tables if len(table)]
        parts = [table.to_html(index=False, float_format=lambda value: f"{value:.4g}") for table in shown]
        left = "".join(parts).replace("<td>", f"<td{LEFT}>").replace("<th>", f"<th{LEFT}>")
        about = html.escape(f"{self.question} ({self.label})")
        picture = base64.b64encode(self.svg().encode()).decode()  # as an image, whose style is not the page's
        return f'<img alt="{about}" src="data:image/svg+xml;base64,{picture}">{left}'
