"""The best paths into the hits of a question, across passes back to a seed.

They are found as rows of the graph, which are quick to send from process to process; steps are made of them later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.search.fusion import DECIMALS
from hopbench.retrieval.strategies.hoprank.corpus import CorpusIndex
from hopbench.retrieval.strategies.hoprank.edges import TRIPLE
from hopbench.retrieval.strategies.hoprank.mentions import NOWHERE
from hopbench.retrieval.strategies.hoprank.paths import Paths
from hopbench.retrieval.strategies.hoprank.triple_edges import near_entities
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers, columns
from hopbench.retrieval.support.distinct import distinct
from hopbench.retrieval.types import Step

UNSTATED = -1.0  # the strength of a triple where there is none


@dataclass(frozen=True, eq=False)
class Hops:
    """h hops, each over the best edge into a chunk, and which of them lead to each hit, first to last.

    `ends` (h, 4) are the anchor's row, those of the entity or of a triple's near and far end, and the chunk's; `values`
    (h, 5) are the weights of the mentions in anchor and chunk, the triple's strength or `UNSTATED`, P(anchor) and the
    path's value.
    """

    ends: Numbers
    values: Floats
    ways: Sequence[Sequence[int]]

    @classmethod
    def to(cls, hits: Numbers, passes: Sequence[Paths], corpus: CorpusIndex, seeds: Numbers) -> Hops:
        """The hops to hits, by the paths of each pass: from a seed, or as far back as there is an edge."""
        found = list(_back_from(hits, passes, corpus, seeds))
        ends = np.concatenate([np.zeros((0, 4), np.int64), *(part for part, _ in found)])
        values = np.concatenate([np.zeros((0, 5)), *(part for _, part in found)])
        anchors = ends[:, 0].tolist()
        ways: dict[int, tuple[int, ...]] = {}
        behind = len(ends)
        for part, _ in reversed(found):
            behind, earlier, ways = behind - len(part), ways, {}
            for number, (anchor, _, _, chunk) in enumerate(part.tolist(), behind):
                before = earlier.get(anchor, ())
                if chunk in [anchors[one] for one in before]:
                    before = ()  # a way back and forth explains nothing
                ways[chunk] = *before, number
        return cls(ends, values, [ways.get(chunk, ()) for chunk in hits.tolist()])

    def steps(self, ids: Mapping[int, str], names: Sequence[str]) -> list[tuple[Step, ...]]:
        """The steps to each hit, with the `ids` of chunks and the `names` of entities by their rows."""
        known = {row: names[row] for row in set(self.ends[:, 1:3].ravel().tolist())}
        rows = zip(self.ends.tolist(), self.values.tolist(), strict=True)
        hops = [list(_steps(ids, known, *row)) for row in rows]
        return [tuple(step for number in way for step in hops[number]) for way in self.ways]


def _back_from(
    hits: Numbers, passes: Sequence[Paths], corpus: CorpusIndex, seeds: Numbers
) -> Iterator[tuple[Numbers, Floats]]:
    """`ends` and `values` of each pass, the last one first: into hits, then into the anchors that are no seeds."""
    wanted = hits
    for paths in reversed(passes):
        ends, values = _into(wanted, paths, corpus)
        yield ends, values
        anchors = distinct(ends[:, 0])
        wanted = anchors[(anchors[:, None] != seeds).all(axis=1)]


def _into(chunks: Numbers, paths: Paths, corpus: CorpusIndex) -> tuple[Numbers, Floats]:
    """`ends` and `values` of the best edges of a pass into some chunks; nothing where no edge leads."""
    place = np.minimum(paths.chunks.searchsorted(chunks), len(paths.chunks) - 1)
    best = np.where(paths.chunks[place] == chunks, paths.best[place], NOWHERE)
    best = best[best != NOWHERE]
    edges, mentions = paths.edges.where(best), corpus.mentions
    strength = np.full(len(best), UNSTATED)
    if corpus.relations is not None:
        stated = edges.kind == TRIPLE
        strength[stated] = corpus.relations.strength[edges.relation[stated]]
    weights = (mentions.weight_of(*ends) for ends in edges.mentioned)
    values = columns([*weights, strength, paths.anchor_probability[best], paths.value[best]])
    ends = np.stack([edges.anchor, near_entities(edges, mentions), edges.entity, edges.target], axis=1)
    return ends, values.round(DECIMALS)


def _steps(
    ids: Mapping[int, str], names: Mapping[int, str], ends: Sequence[int], values: Sequence[float]
) -> Iterator[Step]:
    """Anchor to entity to chunk; over a triple, from its near end to the far one between."""
    anchor, near, far, chunk = ends
    near_weight, far_weight, strength, probability, value = values
    yield Step(MENTIONED_IN, ids[anchor], names[near], near_weight, probability)
    if strength != UNSTATED:
        yield Step(RELATED_TO, names[near], names[far], strength, probability)
    yield Step(MENTIONED_IN, names[far], ids[chunk], far_weight, value)
