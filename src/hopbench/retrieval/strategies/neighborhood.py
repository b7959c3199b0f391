"""Hybrid GraphRAG: the hybrid ranking, enriched with passages of neighbours of the entities that the question names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.context import MAX_TOKENS, SHOWN_RELATIONS, context_blocks
from hopbench.retrieval.graph.schema import LINKS_TO, MENTIONED_IN, NEXT, PART_OF, RELATED_TO
from hopbench.retrieval.index import Batch
from hopbench.retrieval.question.entities import MAX_NGRAM, recognise
from hopbench.retrieval.search.fusion import DECIMALS, Scored, ordered
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.adjacency import adjacency
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
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN, LINKS_TO, NEXT, PART_OF)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        RELATED_TO: {"use_graph": False},
        MENTIONED_IN: {"use_graph": False},
        LINKS_TO: {"link_weight": 0.0},
        NEXT: {"section_weight": 0.0},
        PART_OF: {"section_weight": 0.0},
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
    link_weight: float = param(0.0, "graph score of what a hybrid chunk links to; 0: not followed", 0.0, 1.0)
    section_weight: float = param(0.0, "the same for the chunks before and after, and the section above", 0.0, 1.0)
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
        types = [name.strip() for name in self.rel_types.split("|") if name.strip()]
        floor = batch.floor(self.name, "min_strength", self.min_strength)
        with stage(counters, "entities"):
            names_only = self.recognition == "names"
            limits = self.max_entities, names_only, self.fallback_entities, self.fallback_cosine, self.max_ngram
            key = ("recognised", *limits)
            recognised, cards = batch.memo.charged(key, counters, lambda spent: recognise(batch, spent, *limits))

        def surroundings(spent: Counters) -> tuple[list[QuestionSurroundings], Surroundings]:
            starts = sorted({entity for question in recognised for entity in question.entities})
            around = read_surroundings(batch, spent, starts, self.max_hops, self.min_strength, types, floor)
            size = len(batch.index.chunks)
            return [question_surroundings(one.entities, around, self.rarity, size) for one in recognised], around

        with stage(counters, "graph"):
            graph_key = ("graph", key, self.max_hops, self.min_strength, self.rel_types, self.rarity)
            graphs, around = batch.memo.charged(graph_key, counters, surroundings)
        rankings, shown = [], []
        with stage(counters, "merge"):
            if self.link_weight or self.section_weight:
                pairs = zip(graphs, initial, strict=True)
                graphs = [graph.with_links(self._linked(batch, counters, scored)) for graph, scored in pairs]
            for q, (scored, question, graph) in enumerate(zip(initial, recognised, graphs, strict=True)):
                ranking = self._merged(batch, q, scored, graph, around)
                graph_notes = {
                    "entities": question.entities,
                    "recognised_by": question.by,
                    "neighbours": _neighbours(graph, around),
                }
                ranking.notes = {**graph_notes, **ranking.notes}
                rankings.append(ranking)
                shown.append(question.entities if any(hit.components["graph"] > 0 for hit in ranking.hits) else ())
        with stage(counters, "context"):
            shape = {"max_tokens": self.block_tokens, "relations": self.shown_relations}
            block_key = ("blocks", tuple(map(tuple, shown)), self.min_strength, self.rel_types, *shape.values())
            blocks = batch.memo.charged(
                block_key,
                counters,
                lambda spent: context_blocks(batch, spent, shown, cards, self.min_strength, types, floor, **shape),
            )
            for ranking, block in zip(rankings, blocks, strict=True):
                ranking.graph_context = block
        return rankings

    def _linked(self, batch: Batch, counters: Counters, initial: Scored) -> dict[int, Step]:
        """The best edge of documents from the hybrid top k to each chunk: its weight times the chunk's hybrid score."""
        graph, index = adjacency(batch, counters), batch.index
        weights = {LINKS_TO: self.link_weight, NEXT: self.section_weight, PART_OF: self.section_weight}
        best: dict[int, Step] = {}
        for chunk, score in initial[: self.initial_k]:
            row = index.row_of[chunk]
            for kind, edges in graph.documents.items():
                around = slice(edges.indptr[row], edges.indptr[row + 1])
                for near, weight in zip(edges.indices[around].tolist(), edges.data[around].tolist(), strict=True):
                    value = round(weights[kind] * weight * score, DECIMALS)
                    if value > 0 and (near not in best or value > best[near].score):
                        best[near] = Step(kind, chunk, index.ids[near], weight, value)
        return best

    def _merged(
        self, batch: Batch, q: int, initial: Scored, graph: QuestionSurroundings, around: Surroundings
    ) -> Ranking:
        """The hybrid top k, re-scored where the graph reaches it, and the best `max_graph_chunks` others."""
        ids, row_of = batch.index.ids, batch.index.row_of
        seeds = [chunk for chunk, _ in initial[: self.initial_k]]
        known = initial[: self.initial_k] if self.hybrid_scores == "initial" else initial
        hybrid = {row_of[chunk]: score for chunk, score in known}
        combined = self.beta * graph.scores
        for row, score in hybrid.items():
            place = graph.place(row)
            if place is not None:
                combined[place] += self.alpha * score
        places = {row: graph.place(row) for row in (row_of[chunk] for chunk in seeds)}
        # Equal scores go to the smaller id.
        order = np.argsort(-np.round(combined, DECIMALS), kind="stable")[: self.max_graph_chunks + len(places)].tolist()
        new = [(row, place) for row, place in zip(graph.rows[order].tolist(), order, strict=True) if row not in places]
        others = dict(new[: self.max_graph_chunks])
        scores = {
            ids[row]: self.alpha * hybrid[row] if place is None else float(combined[place])
            for row, place in (places | others).items()
        }
        hits = []
        for chunk, score in ordered(scores):
            row = row_of[chunk]
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


def _neighbours(graph: QuestionSurroundings, around: Surroundings) -> list[dict[str, object]]:
    """The neighbours that have chunks: entity, recognised entity it is reached best from, hop, weight."""
    pairs = zip(graph.entities, graph.starts, strict=True)
    reached = ((entity, start, around.paths[start][entity]) for entity, start in pairs)
    return [
        {"entity": entity, "from": start, "hop": path.hop, "weight": path.weight} for entity, start, path in reached
    ]


def _evidence(
    graph: QuestionSurroundings, place: int | None, around: Surroundings, chunk: str
) -> tuple[dict[str, float], tuple[Step, ...]]:
    """The graph's part of a chunk's score, and the edges from the recognised entity to the chunk."""
    if place is None:
        return {"graph": 0.0}, ()
    owner = int(graph.owners[place])
    if owner < 0:
        step = graph.linked[int(graph.rows[place])]
        return {"graph": step.score, "weight": step.weight, "hop": 1}, (step,)
    start, entity, score = graph.starts[owner], graph.entities[owner], float(graph.scores[place])
    mentions = around.mentions[entity]
    count = int(mentions.weights[np.searchsorted(mentions.rows, graph.rows[place])])
    path = around.paths[start][entity]
    parts = {"graph": score, "weight": path.weight, "hop": path.hop, "mentions": count}
    return parts, (*around.path(start, entity), Step(MENTIONED_IN, entity, chunk, count, score))
