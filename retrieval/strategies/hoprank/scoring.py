"""From a question to scored candidates: the pool first, then passes over paths, each from the best of the last.

Trees then put the best of the last pass in order: what they say is added to the linear score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hopbench.retrieval.strategies.hoprank.candidates import Candidates
from hopbench.retrieval.strategies.hoprank.list_facts import READ, list_facts
from hopbench.retrieval.strategies.hoprank.list_features import tree_features
from hopbench.retrieval.strategies.hoprank.paths import EdgeTable, Paths, Ranked, follow
from hopbench.retrieval.strategies.hoprank.trees import Trees
from hopbench.retrieval.strategies.hoprank.weights import Weights
from hopbench.retrieval.strategies.hoprank.words import Floats, Numbers


def pool_ranking(candidates: Candidates, weights: Floats) -> Ranked:
    """The pool by its base features alone."""
    chunks = candidates.pool.chunks
    return Ranked(chunks, candidates.features(chunks), weights)


def with_paths(candidates: Candidates, paths: Paths) -> Floats:
    """Base and path features of the chunks that paths list, (c, 24), (c, 26) with triples."""
    return np.concatenate([candidates.features(paths.chunks), paths.features], axis=1)


def passes(
    candidates: Candidates, weights: Weights, anchors: int, reached: EdgeTable | None = None
) -> Iterator[tuple[Ranked, Paths | None]]:
    """The pool's ranking, then the ranking after each pass with its paths; none is made without anchors."""
    reached = reached or EdgeTable(candidates)
    ranked = pool_ranking(candidates, weights.first)
    yield ranked, None
    for learned in weights.passes if anchors else ():
        paths = follow(candidates, reached, ranked, weights.edges, anchors)
        features = with_paths(candidates, paths)
        ranked = Ranked(paths.chunks, features, learned[: features.shape[1]])
        yield ranked, paths


@dataclass(frozen=True, eq=False)
class Reordered:
    """The best chunks (k,) of the last pass, best first by the linear score, with their `features` (k, f) for trees."""

    chunks: Numbers
    features: Floats
    trees: Trees


def reordered(candidates: Candidates, passed: Sequence[tuple[Ranked, Paths | None]], trees: Trees) -> Reordered | None:
    """What trees are asked about; None without trees, and where no path was followed."""
    if not trees.trees or passed[-1][1] is None:
        return None
    facts = list_facts(candidates, passed)
    return Reordered(facts.chunks[:READ], tree_features(facts), trees)
