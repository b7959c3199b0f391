"""What trees see of candidates side by side, by hand and on the tiny world."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank.corpus import corpus_index
from hopbench.retrieval.strategies.hoprank.links import ListFacts
from hopbench.retrieval.strategies.hoprank.paths import of_each
from hopbench.retrieval.strategies.hoprank.tree_features import (
    LIST,
    LISTED,
    READ,
    STANDING,
    TREE_FEATURES,
    list_facts,
    tree_features,
)
from hopbench.retrieval.strategies.hoprank.weights import passes, shipped
from hopbench.retrieval.types import Counters, Question


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def facts(index: Index) -> ListFacts:
    """Of the first question: the three best, with scores, edges and words by hand."""
    candidates = next(HopRank().candidates(Batch(index, ASKED), Counters()))
    (found,) = list_facts(candidates, [list(passes(candidates, shipped(), 8))])
    words = np.zeros((1, 3, found.covers.shape[2]), bool)
    words[0, 0, 0] = words[0, 1, 0] = words[0, 1, 1] = True
    return replace(
        found,
        chunks=found.chunks[:, :3],
        score=np.array([[5.0, 3.0, 2.5]]),
        first_score=np.array([[1.0, 4.0, 4.0]]),
        pool_score=np.array([[0.0, 1.0, 2.0]]),
        base=found.base[:, :3],
        paths=found.paths[:, :3],
        cosine=found.cosine[:, :3],
        closeness=replace(found.closeness, read=replace(found.closeness.read, of=np.zeros(3, np.int64))),
        covers=words,
        edge=np.array([[[0.0, 0.5, 0.05], [0.0, 0.0, 0.2], [0.9, 0.0, 0.0]]]),
    )


def test_leads_and_ranks(facts: ListFacts) -> None:
    assert [0.0, -2.0, -2.5] == STANDING["lead_1"](facts)[0].tolist()
    assert [2.5, 0.5, 0.0] == STANDING["lead_5"](facts)[0].tolist()  # of three the third is the last
    assert [0.0, 2.0, 0.5] == STANDING["gap_above"](facts)[0].tolist()
    assert [2.0, 0.5, 0.0] == STANDING["gap_below"](facts)[0].tolist()
    assert [2.0, 0.0, 1.0] == STANDING["first_rank"](facts)[0].tolist()  # equal ones in their order
    assert [2.0, 1.0, 0.0] == STANDING["pool_rank"](facts)[0].tolist()
    assert [-3.0, 0.0, 0.0] == STANDING["first_lead"](facts)[0].tolist()


def test_edges_between_candidates(facts: ListFacts) -> None:
    assert [1.0, 1.0, 2.0] == LIST["edges_in"](facts)[0].tolist()
    assert [0.0, 0.5, 0.2] == LIST["edge_from_above"](facts)[0].tolist()  # .9 comes from below
    assert [0.0, 1.0, 1.0] == LIST["linked_above"](facts)[0].tolist()  # .05 tells nothing
    assert [0.0, 0.5, 0.2] == LIST["edge_from_best"](facts)[0].tolist()
    assert [0.5, 0.2, 0.9] == LIST["leads_to_best"](facts)[0].tolist()
    # The third is the "fifth best", so σ(0) for it and σ(2.5) for the first.
    assert LIST["leads_on"](facts)[0, 2] == pytest.approx(0.9 / (1 + np.exp(-2.5)))


def test_words_that_those_above_lack(facts: ListFacts) -> None:
    idf = facts.candidates.questions[0].idf
    added = [idf[0] / idf.sum(), idf[1] / idf.sum(), 0.0]

    assert added == pytest.approx(LIST["adds"](facts)[0].tolist(), abs=1e-5)


def test_a_list_has_every_feature_of_its_best_candidates(index: Index) -> None:
    for candidates in HopRank().candidates(Batch(index, ASKED), Counters()):
        passed = list(passes(candidates, shipped(), 8))
        (facts,) = list_facts(candidates, [passed])
        (values,) = tree_features(facts)
        last, paths = passed[-1]
        assert (min(len(last.chunks), READ), len(TREE_FEATURES)) == values.shape
        assert np.isfinite(values).all()
        assert sorted(last.scores, reverse=True)[:LISTED] == facts.score[0].tolist()
        assert paths is not None
        kinds = paths.best[last.chunks.searchsorted(facts.chunks[0])]
        assert [not reached for reached in (kinds >= 0).tolist()] == (facts.best_edge[0] == 0).tolist()
    assert len(TREE_FEATURES) == len(set(TREE_FEATURES))


def test_lists_side_by_side_have_the_features_that_each_has_alone(index: Index) -> None:
    """Questions with more words and fewer, some without any; and a part of the lists, in one reading and in several."""
    asked = [*ASKED, Question("none", ""), Question("stop", "who was it"), *ASKED[:2]]
    batch = Batch(index, asked)
    reads = partial(HopRank().pools, batch, *corpus_index(batch, Counters()))
    several = reads(range(len(asked)))
    found = list(list_facts(several, of_each(several, list(passes(several, shipped(), 8)))))
    assert max(facts.of.size for facts in found) > 2
    seen = {}
    for facts in found:
        features = tree_features(facts)
        for place, number in enumerate(facts.of.tolist()):
            alone = reads([number])
            (one,) = list_facts(alone, [list(passes(alone, shipped(), 8))])
            assert tree_features(one)[0].tolist() == features[place].tolist()
            seen[number] = features[place]
    assert sorted(seen) == list(range(len(asked)))


def test_the_pool_alone_is_no_list(index: Index) -> None:
    candidates = next(HopRank().candidates(Batch(index, ASKED), Counters()))
    (pool,) = passes(candidates, shipped(), 0)

    with pytest.raises(ValueError, match="followed none"):
        list(list_facts(candidates, [[pool, pool]]))
