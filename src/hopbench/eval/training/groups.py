"""Names for parts of hoprank that training leaves out together, to see what each of them gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from hopbench.retrieval.strategies.hoprank.list_features import LIST_FEATURES
from hopbench.retrieval.strategies.hoprank.pair_features import PAIR_FEATURES
from hopbench.retrieval.strategies.hoprank.standing import STANDING
from hopbench.retrieval.strategies.hoprank.weights import feature_names
from hopbench.retrieval.strategies.hoprank.word_link_features import WORD_LINK_FEATURES
from hopbench.retrieval.support.errors import UnknownNameError

EDGE = "edge"
SECOND_TREES = "second_trees"


@cache
def groups() -> Mapping[str, frozenset[str]]:
    """The features that only trees see, each in one group."""
    standing, listed, two_by_two, by_words = (
        frozenset(feature.__name__ for feature in features)
        for features in (STANDING, LIST_FEATURES, PAIR_FEATURES, WORD_LINK_FEATURES)
    )
    closeness = frozenset(name for name in two_by_two if name.startswith(("close_", "sentence_dense")))
    chains = frozenset(name for name in by_words if name.startswith("chain"))
    return {
        "standing": standing,
        "list": listed - standing,
        "closeness": closeness,
        "pairs": two_by_two - closeness,
        "word_links": by_words - chains,
        "chains": chains,
    }


def spelled_out(without: Iterable[str]) -> frozenset[str]:
    """Features, kinds of edges, `edge` and `second_trees`: the features of a group in its place.

    UnknownNameError for what is none of them.
    """
    known = {EDGE, SECOND_TREES, *groups(), *(name for group in feature_names().values() for name in group)}
    found: set[str] = set()
    for name in sorted(without):
        if name not in known:
            raise UnknownNameError("feature, group of features or kind of edge of hoprank", name, known)
        found |= groups().get(name, {name})
    return frozenset(found)
