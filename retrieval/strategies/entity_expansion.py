"""Document 4: the question's entities, expanded in the graph, and the full chunks that mention most of them.

Decisions where the source is silent (docs/strategies.md gives the reasons): relations are followed in both directions
and any strength; synonyms are taken before they are checked, so that at most 2 · max_synonyms ever enter; without
semantic reranking no entity is left out; a seed has no privilege in the reranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from retrieval.fusion import DECIMALS, Scored, min_max
from retrieval.graph import cypher
from retrieval.graph.entity_chunks import Floats, Ints, Matches, Standing, matches, read_standing
from retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from retrieval.index import Batch
from retrieval.linking import Linker, linker
from retrieval.question_entities import name_vectors, question_entities, synonyms
from retrieval.search import FLOAT32_DECIMALS
from retrieval.strategies.base import KEEP, Strategy, param
from retrieval.strategies.baselines import hybrid_rankings
from retrieval.strategies.timing import stage
from retrieval.types import Counters, Hit, Ranking, Step

SYNONYM_SEEDS = 2
SYNONYM = "SYNONYM"  # the step from a seed to its synonym, which is no edge of the graph


@dataclass(slots=True)
class Expanded:
    """A question's entities: the seeds in their order, and how each other one was found: (edge, from, weight)."""

    seeds: list[str]
    ways: dict[str, tuple[str, str, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seeds) + len(self.ways)

    def __contains__(self, entity: str) -> bool:
        return entity in self.ways or entity in self.seeds

    @property
    def entities(self) -> list[str]:
        """All entities: seeds, then the others as they were found."""
        return [*self.seeds, *self.ways]

    @property
    def synonyms(self) -> list[str]:
        """The entities that stage 3 added."""
        return [entity for entity, (edge, _, _) in self.ways.items() if edge == SYNONYM]

    def path(self, entity: str) -> tuple[Step, ...]:
        """The steps from a seed to an entity; none for a seed."""
        if entity not in self.ways:
            return ()
        edge, source, weight = self.ways[entity]
        return (*self.path(source), Step(edge, source, entity, weight, weight))

    def grow(self, frontier: Sequence[str], related: Mapping[str, Sequence[tuple[str, float]]]) -> list[str]:
        """Add the relations of the frontier, each new entity by its strongest; returns the new ones, sorted."""
        found: dict[str, tuple[str, str, float]] = {}
        for source in sorted(frontier):  # equal strengths go to the smaller id
            for target, strength in related[source]:
                if target not in self and (target not in found or strength > found[target][2]):
                    found[target] = RELATED_TO, source, strength
        self.ways |= {target: found[target] for target in sorted(found)}
        return sorted(found)


@dataclass(frozen=True, kw_only=True)
class EntityExpansion(Strategy):
    """Document 4's entity expansion and entity→chunk search."""

    name: ClassVar[str] = "entity_expansion"
    summary: ClassVar[str] = "document 4: expand the question's entities, then chunks by how many they mention"
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN)

    hops: int = param(1, "stage 2: steps over RELATED_TO", 1, 3)
    min_entities: int = param(10, "stage 3 runs only below so many entities", 5, 20)
    max_synonyms: int = param(3, "stage 3: synonyms for each of the first 2 seeds", 1, 5)
    synonym_threshold: float = param(0.0, "cosine a synonym needs to its seed; 0: the embedder's own", 0.0, 1.0)
    semantic_reranking: bool = param(True, "stage 4: keep the entities nearest to the question")
    max_ranked: int = param(20, "stage 4: entities kept", 1, 200)
    use_related: bool = param(True, "stage 2 at all")
    use_synonyms: bool = param(True, "stage 3 at all")
    min_strength: float = param(0.0, "relations weaker than this are not followed", 0.0, 1.0)
    keep_seeds: bool = param(False, "stage 4 never drops the question's own entities")
    count: str = param("entities", "what a matched entity adds: 1, or its idf", choices=("entities", "idf"))
    initial_ranking: str = param("vector", "the hop-free ranking beside it", choices=("vector", "hybrid"))
    initial_weight: float = param(0.0, "share of the hop-free score in the final one", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        """The vector ranking (or the hybrid one)."""
        return hybrid_rankings(batch) if self.initial_ranking == "hybrid" else batch.vector_rankings

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        """The four stages for the whole batch, then chunks by matched entities."""
        with stage(counters, "entities"):
            reader = linker(batch, counters)
            expanded = [Expanded(list(seeds)) for seeds in question_entities(batch)(batch, counters, reader)]
        with stage(counters, "graph"):
            self._expand(batch, counters, expanded)
        with stage(counters, "synonyms"):
            self._add_synonyms(batch, counters, reader, expanded)
        with stage(counters, "reranking"):
            kept = self._ranked(batch, reader, expanded)
        with stage(counters, "chunks"):
            standing = read_standing(batch, counters, sorted({entity for entities in kept for entity in entities}))
            initial = self.initial(batch)
            return [self._ranking(batch, q, one, kept[q], standing, initial[q]) for q, one in enumerate(expanded)]

    def _expand(self, batch: Batch, counters: Counters, expanded: Sequence[Expanded]) -> None:
        """Stage 2: a hop of the whole batch is one round trip."""
        frontiers = [list(one.seeds) for one in expanded]
        related: dict[str, list[tuple[str, float]]] = {}
        for _ in range(self.hops if self.use_related else 0):
            ids = sorted({entity for frontier in frontiers for entity in frontier} - related.keys())
            if ids:
                limits = {"min_strength": self.min_strength, "rel_types": []}
                for record in batch.read(counters, cypher.RELATED_ENTITIES, ids=ids, **limits):
                    counters.edges_touched += len(record["target"])
                    related[record["id"]] = list(zip(record["target"], record["weight"], strict=True))
            frontiers = [one.grow(frontier, related) for one, frontier in zip(expanded, frontiers, strict=True)]

    def _add_synonyms(self, batch: Batch, counters: Counters, reader: Linker, expanded: Sequence[Expanded]) -> None:
        """Stage 3: other names for the first seeds of questions with few entities, each checked against its seed."""
        if not self.use_synonyms:
            return
        sparse = [q for q, one in enumerate(expanded) if one.seeds and len(one) < self.min_entities]
        wanted = [(q, seed) for q in sparse for seed in expanded[q].seeds[:SYNONYM_SEEDS]]
        if not wanted:
            return
        proposed = synonyms(batch)(batch, counters, reader, wanted, self.max_synonyms)
        pairs = [
            (q, seed, name)
            for (q, seed), names in zip(wanted, proposed, strict=True)
            for name in names[: self.max_synonyms]
        ]
        vectors = batch.index.embedder.embed([text for _, seed, name in pairs for text in (reader.name_of[seed], name)])
        cosines = np.round(np.einsum("ij,ij->i", vectors[::2], vectors[1::2]).astype(np.float64), FLOAT32_DECIMALS)
        needed = self.synonym_threshold or batch.index.embedder.synonym_threshold
        for (q, seed, name), cosine in zip(pairs, cosines.tolist(), strict=True):
            entity = reader.resolve(name)
            if cosine >= needed and entity is not None and entity not in expanded[q]:
                expanded[q].ways[entity] = SYNONYM, seed, cosine

    def _ranked(self, batch: Batch, reader: Linker, expanded: Sequence[Expanded]) -> list[list[str]]:
        """Stage 4: the entities whose names are nearest to the question, ties to the smaller id."""
        if not self.semantic_reranking:
            return [one.entities for one in expanded]
        known = name_vectors(batch.index, reader)
        kept = []
        for q, one in enumerate(expanded):
            rows = np.array([known.row_of[entity] for entity in one.entities], dtype=np.int64)
            cosines = known.cosines(batch.vectors[q], rows)
            if self.keep_seeds:
                cosines[: len(one.seeds)] += 2.0
            best = np.lexsort((rows, -cosines))[: self.max_ranked]
            kept.append([known.entities[rows[place]] for place in best])
        return kept

    def _ranking(
        self,
        batch: Batch,
        q: int,
        expanded: Expanded,
        kept: Sequence[str],
        standing: Mapping[str, Standing],
        initial: Scored,
    ) -> Ranking:
        """Chunks by matched entities, then by cosine, then by id; the initial ranking where no entity was found."""
        question = batch.questions[q].id
        if not expanded.seeds:
            hits = [Hit(chunk, score, "seed", {self.initial_ranking: score}) for chunk, score in initial]
            flag = f"the question names no entity: the {self.initial_ranking} ranking"
            return Ranking(question, hits, [hit.chunk_id for hit in hits[:10]], {"entities": [], "fallback": flag})
        found = matches(batch, q, kept, standing, self.count == "idf")
        rows, scores = self._blended(batch, found, initial)
        hits = []
        for place in np.lexsort((rows, -scores))[:KEEP]:
            row = int(rows[place])
            parts, path = _evidence(found, row, batch.index.chunks[row].id, expanded, kept)
            hits.append(Hit(batch.index.chunks[row].id, float(scores[place]), "graph" if path else "seed", parts, path))
        notes = {
            "entities": expanded.seeds,
            "related": len(expanded.ways) - len(expanded.synonyms),
            "synonyms": expanded.synonyms,
            "matched_on": list(kept),
        }
        return Ranking(question, hits, _mentioning(hits, expanded.seeds), notes)

    def _blended(self, batch: Batch, found: Matches, initial: Scored) -> tuple[Ints, Floats]:
        """Rows with final scores: the matches' own, or their share of the best blended with the initial ranking's."""
        if not self.initial_weight:
            return found.rows, np.round(found.scores, DECIMALS)
        stretched = {batch.index.row_of[chunk]: score for chunk, score in min_max(initial).items()}
        rows = np.union1d(found.rows, np.array(list(stretched), dtype=np.int64))
        scores = self.initial_weight * np.array([stretched.get(row, 0.0) for row in rows.tolist()])
        share = found.scores / found.scores.max(initial=1.0)
        scores[np.searchsorted(rows, found.rows)] += (1.0 - self.initial_weight) * share
        return rows, np.round(scores, DECIMALS)


def _mentioning(hits: Sequence[Hit], entities: Sequence[str]) -> list[str]:
    """The chunks that mention the question's own entities: where the search begins."""
    own = set(entities)
    return [hit.chunk_id for hit in hits if any(s.edge == MENTIONED_IN and s.source in own for s in hit.path)]


def _evidence(
    found: Matches, row: int, chunk: str, expanded: Expanded, kept: Sequence[str]
) -> tuple[dict[str, float], tuple[Step, ...]]:
    """The parts of a chunk's score, and per matched entity the way from its seed to the chunk.

    The score of a step to the chunk is the number of entities matched so far.
    """
    place = int(np.searchsorted(found.rows, row))
    if place == len(found.rows) or found.rows[place] != row:
        return {"entity_count": 0.0}, ()
    matched = found.matched(place)
    path: list[Step] = []
    for count, (number, weight) in enumerate(matched, 1):
        path += (*expanded.path(kept[number]), Step(MENTIONED_IN, kept[number], chunk, weight, float(count)))
    parts = {"entity_count": float(len(matched)), "cosine": float(found.cosines[place])}
    return parts | {"matched": round(float(found.values[place]), DECIMALS)}, tuple(path)
