"""ADR-041 entity expansion: the question's entities, expanded in the graph, and the chunks that mention most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.question.entities import name_vectors, question_entities, synonyms
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.search.candidates import exact_cosines
from hopbench.retrieval.search.fusion import DECIMALS, Scored, min_max
from hopbench.retrieval.strategies.base import KEEP, Strategy, param
from hopbench.retrieval.strategies.baselines import hybrid_rankings, plain_ranking
from hopbench.retrieval.support.arrays import distinct
from hopbench.retrieval.support.timing import stage
from hopbench.retrieval.traversal.entity_expansion import (
    EntityMentions,
    Matches,
    inverse_frequency,
    matches,
    read_mentions,
)
from hopbench.retrieval.types import Counters, Hit, Ranking, Step


@dataclass(frozen=True, kw_only=True)
class EntityExpansion(Strategy):
    """Expands the question's entities and searches their chunks (ADR-041)."""

    name: ClassVar[str] = "entity_expansion"
    summary: ClassVar[str] = (
        "ADR-041 entity expansion: expand the question's entities, then chunks by how many they mention"
    )
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN)
    ablations: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        RELATED_TO: {"use_related": False},
        MENTIONED_IN: {"initial_weight": 1.0},
    }

    hops: int = param(1, "stage 2: steps over RELATED_TO", 1, 3, aliases=["graph_expansion_hops"])
    min_entities: int = param(
        10, "stage 3 runs only below so many entities", 5, 20, aliases=["graph_min_entities_threshold"]
    )
    max_synonyms: int = param(
        3,
        "stage 3: synonyms for each of the first 2 seeds",
        1,
        5,
        aliases=["graph_max_synonyms_per_entity", "max_per_entity"],
    )
    synonym_threshold: float = param(0.0, "cosine a synonym needs to its seed; 0: the embedder's own", 0.0, 1.0)
    semantic_reranking: bool = param(
        True, "stage 4: keep the entities nearest to the question", aliases=["graph_semantic_reranking_enabled"]
    )
    max_ranked: int = param(20, "stage 4: entities kept", 1, 200, aliases=["top_k"])
    use_related: bool = param(True, "stage 2 at all")
    use_synonyms: bool = param(True, "stage 3 at all")
    min_strength: float = param(0.0, "relations weaker than this are not followed", 0.0, 1.0)
    keep_seeds: bool = param(False, "stage 4 never drops the question's own entities")
    count: str = param(
        "entities", "a matched entity adds 1, its idf, or idf · strength", choices=("entities", "idf", "idf_strength")
    )
    initial_ranking: str = param("vector", "the hop-free ranking beside it", choices=("vector", "hybrid"))
    vector_weight: float = param(0.7, "weight of the vector score in a hybrid initial ranking", 0.0, 1.0)
    initial_weight: float = param(0.0, "share of the hop-free score in the final one", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking (or the hybrid one)."""
        if self.initial_ranking == "vector":
            return batch.vector_rankings
        return hybrid_rankings(batch, self.vector_weight)

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The four stages for the whole batch, then chunks by matched entities."""
        expanded, ranked = self._stages(batch, counters)
        with stage(counters, "chunks"):
            mentions = read_mentions(batch, counters, sorted({entity for entities in ranked for entity in entities}))
            initial = self.initial(batch)
            return [self._ranking(batch, q, one, ranked[q], mentions, initial[q]) for q, one in enumerate(expanded)]

    def pasteable(self, batch: Batch) -> Sequence[tuple[str, Mapping[str, object]]]:
        """The source's own query, for the entities that the four stages keep."""
        _, ranked = self._stages(batch, Counters())
        parameters = {"namespace": batch.index.store.namespace, "entities": list(ranked[0]), "top_k": KEEP}
        return [(cypher.ENTITY_SEARCH, parameters)] if ranked[0] else []

    def _stages(self, batch: Batch, counters: Counters) -> tuple[list[Expanded], list[list[str]]]:
        """Stages 1-4: each question's entities with their origins, and those that chunks are searched for by."""
        with stage(counters, "entities"):
            reader = linker(batch, counters)
            expanded = [Expanded(list(seeds)) for seeds in question_entities(batch, counters, reader)]
        with stage(counters, "graph"):
            if self.use_related:
                expand(batch, counters, expanded, self.hops, self.min_strength)
        with stage(counters, "synonyms"):
            if self.use_synonyms:
                sparse = [q for q, one in enumerate(expanded) if len(one) < self.min_entities]
                needed = self.synonym_threshold or batch.index.embedder.synonym_threshold
                add_synonyms(batch, counters, reader, expanded, sparse, self.max_synonyms, needed)
        with stage(counters, "reranking"):
            ranked = [one.entities for one in expanded]
            if self.semantic_reranking:
                ranked = nearest_to_question(batch, counters, reader, expanded, self.max_ranked, self.keep_seeds)
        return expanded, ranked

    def _ranking(
        self,
        batch: Batch,
        q: int,
        expanded: Expanded,
        ranked: Sequence[str],
        mentions: Mapping[str, EntityMentions],
        initial: Scored,
    ) -> Ranking:
        """Chunks by matched entities, then by cosine, then by id; the initial ranking where no entity is known."""
        question, ids = batch.questions[q], batch.index.ids
        if not expanded.seeds:
            flag = f"the question names no entity: the {self.initial_ranking} ranking"
            return plain_ranking(question, initial, self.initial_ranking, {"entities": [], "fallback": flag})
        values = []  # what each matched entity adds to a chunk
        for entity in ranked:
            idf = 1.0 if self.count == "entities" else inverse_frequency(mentions[entity], len(batch.index.chunks))
            values.append(idf * expanded.strength(entity) if self.count == "idf_strength" else idf)
        matched = matches(batch, q, ranked, values, mentions)
        rows, scores = matched.rows, matched.scores
        if self.initial_weight:  # the matches' share of the best, blended with the initial ranking's score
            stretched = {batch.index.row_of[chunk]: score for chunk, score in min_max(initial).items()}
            rows = distinct(np.concatenate([rows, np.array(list(stretched), dtype=np.int64)]))
            scores = self.initial_weight * np.array([stretched.get(row, 0.0) for row in rows.tolist()])
            share = matched.scores / matched.scores.max(initial=1.0)
            scores[np.searchsorted(rows, matched.rows)] += (1.0 - self.initial_weight) * share
        scores = np.round(scores, DECIMALS)
        hits = []
        for place in np.lexsort((rows, -scores))[:KEEP].tolist():
            chunk = ids[rows.item(place)]
            parts, path = _evidence(matched, rows.item(place), chunk, expanded, ranked)
            hits.append(Hit(chunk, scores.item(place), "graph" if path else "seed", parts, path))
        # The search begins at the chunks that mention the question's own entities.
        own = set(expanded.seeds)
        seeds = [hit.chunk_id for hit in hits if any(s.edge == MENTIONED_IN and s.source in own for s in hit.path)]
        return Ranking(question.id, hits, seeds, _notes(expanded, ranked, matched, hits))


def _notes(expanded: Expanded, ranked: Sequence[str], matched: Matches, hits: Sequence[Hit]) -> dict[str, object]:
    """The ranking's notes: the entities of each stage, what the chunks were matched on, and counts."""
    origins, synonyms = expanded.origins, expanded.synonyms
    return {
        "entities": expanded.seeds,
        "related": len(origins) - len(synonyms),
        "neighbours": [
            {"entity": entity, "from": source, "strength": strength}
            for entity, (edge, source, strength) in origins.items()
            if edge == RELATED_TO
        ],
        "synonyms": synonyms,
        "synonym_of": {one: {"seed": origins[one][1], "cosine": origins[one][2]} for one in synonyms},
        "matched_on": list(ranked),
        "found": len(matched.owners),
        "unique": len(matched.rows),
        "kept": sum(hit.origin == "graph" for hit in hits),
    }


def _evidence(
    matches: Matches, row: int, chunk: str, expanded: Expanded, ranked: Sequence[str]
) -> tuple[dict[str, float], tuple[Step, ...]]:
    """The parts of a chunk's score, and for each matched entity the path from its seed to the chunk.

    The score of a step to the chunk is the number of entities matched so far.
    """
    place = int(np.searchsorted(matches.rows, row))
    if place == len(matches.rows) or matches.rows[place] != row:
        return {"entity_count": 0.0}, ()
    entities = matches.matched(place)
    path: list[Step] = []
    for count, (number, weight) in enumerate(entities, 1):
        path += (*expanded.path(ranked[number]), Step(MENTIONED_IN, ranked[number], chunk, weight, float(count)))
    parts = {"entity_count": float(len(entities)), "cosine": float(matches.cosines[place])}
    return parts | {"matched": round(float(matches.values[place]), DECIMALS)}, tuple(path)


SYNONYM_SEEDS = 2
SYNONYM = "SYNONYM"  # the step from a seed to its synonym, which is no edge of the graph


@dataclass(slots=True)
class Expanded:
    """A question's entities: its seeds in order, and the origin of each other one: (edge, from entity, weight)."""

    seeds: list[str]
    origins: dict[str, tuple[str, str, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seeds) + len(self.origins)

    def __contains__(self, entity: str) -> bool:
        return entity in self.origins or entity in self.seeds

    @property
    def entities(self) -> list[str]:
        """All entities: seeds, then the others in the order of their discovery."""
        return [*self.seeds, *self.origins]

    @property
    def synonyms(self) -> list[str]:
        """The entities that stage 3 added."""
        return [entity for entity, (edge, _, _) in self.origins.items() if edge == SYNONYM]

    def path(self, entity: str) -> tuple[Step, ...]:
        """The steps from a seed to an entity; none for a seed."""
        if entity not in self.origins:
            return ()
        edge, source, weight = self.origins[entity]
        return (*self.path(source), Step(edge, source, entity, weight, round(self.strength(entity), DECIMALS)))

    def strength(self, entity: str) -> float:
        """The product of the weights along the path from a seed; 1 for a seed."""
        if entity not in self.origins:
            return 1.0
        _, source, weight = self.origins[entity]
        return weight * self.strength(source)

    def grow(self, frontier: Sequence[str], related: Mapping[str, Sequence[tuple[str, float]]]) -> list[str]:
        """Add the relations of the frontier, each new entity by its strongest; returns the new ones, sorted."""
        added: dict[str, tuple[str, str, float]] = {}
        for source in sorted(frontier):  # equal strengths go to the smaller id
            for target, strength in related[source]:
                if target not in self and (target not in added or strength > added[target][2]):
                    added[target] = RELATED_TO, source, strength
        self.origins |= {target: added[target] for target in sorted(added)}
        return sorted(added)


def expand(batch: Batch, counters: Counters, expanded: Sequence[Expanded], hops: int, min_strength: float) -> None:
    """Stage 2: add entities related to the seeds within `hops`; a hop of the whole batch is one round trip."""
    frontiers = [list(one.seeds) for one in expanded]
    related: dict[str, list[tuple[str, float]]] = {}
    for _ in range(hops):
        ids = sorted({entity for frontier in frontiers for entity in frontier} - related.keys())
        if ids:
            limits = {"min_strength": min_strength, "rel_types": []}
            for record in batch.read(counters, cypher.RELATED_ENTITIES, ids=ids, **limits):
                counters.edges_touched += len(record["target"])
                related[record["id"]] = list(zip(record["target"], record["weight"], strict=True))
        frontiers = [one.grow(frontier, related) for one, frontier in zip(expanded, frontiers, strict=True)]


def add_synonyms(
    batch: Batch,
    counters: Counters,
    reader: Linker,
    expanded: Sequence[Expanded],
    sparse: Sequence[int],
    limit: int,
    needed: float,
) -> None:
    """Stage 3: for the `sparse` questions at most `limit` synonyms for each of the first 2 seeds.

    A synonym enters with a cosine of at least `needed` to its seed's name, if the graph knows it and it is new.
    """
    wanted = [(q, seed) for q in sparse for seed in expanded[q].seeds[:SYNONYM_SEEDS]]
    if not wanted:
        return
    proposed = synonyms(batch, counters, reader, wanted, limit)
    pairs = [(q, seed, name) for (q, seed), names in zip(wanted, proposed, strict=True) for name in names[:limit]]
    if not pairs:
        return
    vectors = batch.index.embed([text for _, seed, name in pairs for text in (reader.name_of[seed], name)])
    cosines = exact_cosines(vectors, np.arange(0, len(vectors), 2), np.arange(1, len(vectors), 2))
    for (q, seed, name), cosine in zip(pairs, cosines.tolist(), strict=True):
        entity = reader.resolve(name)
        if cosine >= needed and entity is not None and entity not in expanded[q]:
            expanded[q].origins[entity] = SYNONYM, seed, cosine


def nearest_to_question(
    batch: Batch, counters: Counters, reader: Linker, expanded: Sequence[Expanded], limit: int, keep_seeds: bool
) -> list[list[str]]:
    """Stage 4: each question's `limit` entities whose names are nearest to it, ties to the smaller id."""
    known = name_vectors(batch.index, reader, counters)
    nearest = []
    for q, entities in enumerate(expanded):
        rows = np.array([known.row_of[entity] for entity in entities.entities], dtype=np.int64)
        cosines = known.cosines(batch.vectors[q], rows)
        if keep_seeds:
            cosines[: len(entities.seeds)] += 2.0
        nearest.append([known.entities[rows[place]] for place in np.lexsort((rows, -cosines))[:limit]])
    return nearest
