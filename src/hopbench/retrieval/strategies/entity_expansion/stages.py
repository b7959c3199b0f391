"""Document 4's stages between a question's own entities and the chunks: the graph, synonyms, semantic reranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.index import Batch, Linker
from hopbench.retrieval.question.entities import name_vectors, synonyms
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.search.topk import exact_cosines
from hopbench.retrieval.types import Counters, Step

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
