"""Hybrid GraphRAG: the hybrid ranking, enriched with passages of neighbours of the entities that the question names.

Decisions where the source is silent (docs/strategies.md gives the reasons): each recognised entity has a neighbourhood
of its own, so one recognised entity can be another's neighbour; a neighbour's hop is its shortest, its weight the best
bottleneck among the shortest paths; an added chunk has hybrid score 0, as it is not among the hybrid results; an n-gram
of stop words alone is no name, and an n-gram inside a longer match is still looked up.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.context import MAX_TOKENS, SHOWN_RELATIONS, BlockShape, context_blocks
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.entities import MAX_NGRAM, Card, Recognised, recognise
from hopbench.retrieval.search.fusion import DECIMALS, Scored, ordered
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.entity_expansion import (
    QuestionSurroundings,
    Surroundings,
    question_surroundings,
    read_surroundings,
)
from hopbench.retrieval.types import Counters, Hit, Ranking, Step


@dataclass(frozen=True, kw_only=True)
class Neighborhood(Strategy):
    """Hybrid search, augmented by the graph (hybrid GraphRAG)."""

    name: ClassVar[str] = "neighborhood"
    summary: ClassVar[str] = "hybrid GraphRAG: hybrid search plus chunks of the neighbours of the question's entities"
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        RELATED_TO: {"use_graph": False},
        MENTIONED_IN: {"use_graph": False},
    }

    traversal_parameters: ClassVar[tuple[str, ...]] = (
        *("vector_weight", "recognition", "max_ngram", "max_entities", "fallback_entities", "fallback_cosine"),
        *("use_graph", "max_hops", "rel_types", "min_strength", "rarity"),
    )
    thresholds: ClassVar[tuple[str, ...]] = ("min_strength",)

    initial_k: int = param(10, "chunks of the hybrid ranking, all kept", 1, 100)
    vector_weight: float = param(
        0.7, "weight of the vector score in the hybrid ranking", 0.0, 1.0, aliases=["vectorWeight"]
    )
    max_entities: int = param(5, "recognised entities, longest name first, then rarest", 1, 20)
    max_hops: int = param(1, "steps over RELATED_TO", 1, 3, aliases=["maxHops"])
    rel_types: str = param(
        "", "follow only relations of these types, separated by |; all when empty", aliases=["relTypes"]
    )
    min_strength: float = param(0.0, "relations weaker than this are not followed", 0.0, 1.0)
    fallback_entities: int = param(3, "entities nearest to a question that names none", 0, 20)
    fallback_cosine: float = param(0.75, "cosine that such an entity needs", 0.0, 1.0, aliases=["minScore"])
    alpha: float = param(0.7, "weight of the hybrid score", 0.0, 1.0)
    beta: float = param(0.3, "weight of the graph score", 0.0, 1.0, aliases=["graphWeight", "weight"])
    max_graph_chunks: int = param(4, "chunks added to the hybrid ones", 0, 50, aliases=["maxGraphChunks", "maxChunks"])
    use_graph: bool = param(True, "false leaves the hybrid ranking as it is", aliases=["useGraph", "enabled"])
    recognition: str = param(
        "ngrams", "n-grams of up to max_ngram words, or the longest names", choices=("ngrams", "names")
    )
    max_ngram: int = param(MAX_NGRAM, "words of the longest n-gram", 1, 12)
    hybrid_scores: str = param("initial", "hybrid score of an added chunk: 0, or its own", choices=("initial", "all"))
    rarity: float = param(0.0, "exponent of the neighbour's rarity in the graph score; 0 leaves it out", 0.0, 4.0)
    block_tokens: int = param(MAX_TOKENS, "tokens of the context block at most; 0 leaves it out", 0, 1500)
    shown_relations: int = param(SHOWN_RELATIONS, "relations of an entity in the block, the strongest", 0, 50)

    def initial(self, batch: Batch) -> list[Scored]:
        """The hybrid ranking."""
        return hybrid_rankings(batch, self.vector_weight)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """Recognise entities, read their surroundings a round trip a hop, then merge question by question."""
        with stage(counters, "hybrid"):
            initial = self.initial(batch)
        if not self.use_graph:
            nothing = QuestionSurroundings(), Surroundings()
            return [self._merged(batch, q, scored, *nothing) for q, scored in enumerate(initial)]
        with stage(counters, "entities"):
            names_only = self.recognition == "names"
            limits = self.max_entities, names_only, self.fallback_entities, self.fallback_cosine, self.max_ngram
            key = ("recognised", *limits)
            recognised, cards = batch.memo.charged(key, counters, lambda spent: recognise(batch, spent, *limits))
        with stage(counters, "graph"):
            graphs, around = self._around(batch, counters, key, recognised)
        with stage(counters, "merge"):
            rankings = []
            for q, (scored, question, graph) in enumerate(zip(initial, recognised, graphs, strict=True)):
                rankings.append(self._merged(batch, q, scored, graph, around))
                graph_notes = {
                    "entities": question.entities,
                    "recognised_by": question.by,
                    "neighbours": _neighbours(graph, around),
                }
                rankings[-1].notes = {**graph_notes, **rankings[-1].notes}
        with stage(counters, "context"):
            shown_entities = [
                question.entities if contributes(r) else () for r, question in zip(rankings, recognised, strict=True)
            ]
            for ranking, block in zip(rankings, self._blocks(batch, counters, shown_entities, cards), strict=True):
                ranking.graph_context = block
        return rankings

    def _around(
        self, batch: Batch, counters: Counters, recognition: Hashable, recognised: Sequence[Recognised]
    ) -> tuple[list[QuestionSurroundings], Surroundings]:
        """The surroundings of each question's entities, and what was read for all, cached for other trials."""

        def read(spent: Counters) -> tuple[list[QuestionSurroundings], Surroundings]:
            starts = sorted({entity for question in recognised for entity in question.entities})
            floor = batch.floor(self.name, "min_strength", self.min_strength)
            around = read_surroundings(batch, spent, starts, self.max_hops, self.min_strength, self._types(), floor)
            size = len(batch.index.chunks)
            return [
                question_surroundings(question.entities, around, self.rarity, size) for question in recognised
            ], around

        key = ("graph", recognition, self.max_hops, self.min_strength, self.rel_types, self.rarity)
        return batch.memo.charged(key, counters, read)

    def _blocks(
        self, batch: Batch, counters: Counters, shown_entities: Sequence[Sequence[str]], cards: Mapping[str, Card]
    ) -> list[str]:
        floor = batch.floor(self.name, "min_strength", self.min_strength)
        shape = BlockShape(self.block_tokens, self.shown_relations)
        key = ("blocks", tuple(map(tuple, shown_entities)), self.min_strength, self.rel_types, shape)
        return batch.memo.charged(
            key,
            counters,
            lambda spent: context_blocks(
                batch, spent, shown_entities, cards, self.min_strength, self._types(), floor, shape
            ),
        )

    def _types(self) -> list[str]:
        return [name.strip() for name in self.rel_types.split("|") if name.strip()]

    def _merged(
        self, batch: Batch, q: int, initial: Scored, graph: QuestionSurroundings, around: Surroundings
    ) -> Ranking:
        """The hybrid top k, re-scored where the graph reaches it, and the best `max_graph_chunks` others."""
        seeds = [chunk for chunk, _ in initial[: self.initial_k]]
        known = initial[: self.initial_k] if self.hybrid_scores == "initial" else initial
        hybrid = {batch.index.row_of[chunk]: score for chunk, score in known}
        combined = self.beta * graph.scores
        for row, score in hybrid.items():
            place = graph.place(row)
            if place is not None:
                combined[place] += self.alpha * score
        places = {row: graph.place(row) for row in (batch.index.row_of[chunk] for chunk in seeds)}
        others = self._best_others(np.round(combined, DECIMALS), graph, places)
        scores = {
            batch.index.ids[row]: self.alpha * hybrid[row] if place is None else float(combined[place])
            for row, place in (places | others).items()
        }
        hits = []
        for chunk, score in ordered(scores):
            row = batch.index.row_of[chunk]
            origin, place = ("seed", places[row]) if row in places else ("graph", others[row])
            parts, path = _evidence(graph, place, around, chunk)
            hits.append(Hit(chunk, score, origin, {"hybrid": hybrid.get(row, 0.0), **parts}, path))
        notes = {
            "found": sum(len(around.mentions[entity].rows) for entity in graph.entities),
            "unique": len(graph.rows),
            "kept": sum(hit.components["graph"] > 0 for hit in hits),
            "graph_chunks": len(others),
        }
        return Ranking(batch.questions[q].id, hits, seeds, notes)

    def _best_others(
        self,
        combined: np.ndarray[tuple[int], np.dtype[np.float64]],
        graph: QuestionSurroundings,
        seeds: Mapping[int, int | None],
    ) -> dict[int, int]:
        """Rows of the best chunks that are no seeds, with their places; equal scores go to the smaller id."""
        order = np.argsort(-combined, kind="stable")[: self.max_graph_chunks + len(seeds)]
        others = [(int(graph.rows[place]), int(place)) for place in order if int(graph.rows[place]) not in seeds]
        return dict(others[: self.max_graph_chunks])


def _neighbours(graph: QuestionSurroundings, around: Surroundings) -> list[dict[str, object]]:
    """The neighbours that have chunks: entity, recognised entity it is reached best from, hop, weight."""
    paths = (
        (entity, start, around.paths[start][entity]) for entity, start in zip(graph.entities, graph.starts, strict=True)
    )
    return [{"entity": entity, "from": start, "hop": path.hop, "weight": path.weight} for entity, start, path in paths]


def contributes(ranking: Ranking) -> bool:
    """Whether the graph gave any chunk of the ranking a score."""
    return any(hit.components["graph"] > 0 for hit in ranking.hits)


def _evidence(
    graph: QuestionSurroundings, place: int | None, around: Surroundings, chunk: str
) -> tuple[dict[str, float], tuple[Step, ...]]:
    """The graph's part of a chunk's score, and the edges from the recognised entity to the chunk."""
    if place is None:
        return {"graph": 0.0}, ()
    owner = int(graph.owners[place])
    start, entity, score = graph.starts[owner], graph.entities[owner], float(graph.scores[place])
    mentions = around.mentions[entity]
    count = int(mentions.weights[np.searchsorted(mentions.rows, graph.rows[place])])
    path = around.paths[start][entity]
    parts = {"graph": score, "weight": path.weight, "hop": path.hop, "mentions": count}
    return parts, (*around.path(start, entity), Step(MENTIONED_IN, entity, chunk, count, score))
