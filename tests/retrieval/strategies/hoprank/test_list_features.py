"""What trees see of candidates side by side, by hand and on the tiny world."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.hoprank import HopRank
from hopbench.retrieval.strategies.hoprank import list_features as features
from hopbench.retrieval.strategies.hoprank import list_features as standing
from hopbench.retrieval.strategies.hoprank.corpus import corpus_index
from hopbench.retrieval.strategies.hoprank.list_facts import ListFacts
from hopbench.retrieval.strategies.hoprank.pair_features import tree_features, tree_names
from hopbench.retrieval.strategies.hoprank.scoring import LISTED, READ, list_facts, of_each, passes, shipped
from hopbench.retrieval.types import Counters, Question


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return built_index(plan_of(WORLD), tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def facts(index: Index) -> ListFacts:
    """Of the first question: the three best, with scores, edges and words by hand."""
    candidates = next(HopRank().candidates(Batch(index, ASKED), Counters()))
    found = list_facts(candidates, [list(passes(candidates, shipped(), 8))])[0].one(0)
    words = np.zeros((3, found.covers.shape[1]), bool)
    words[0, 0] = words[1, 0] = words[1, 1] = True
    return replace(
        found,
        chunks=found.chunks[:3],
        score=np.array([5.0, 3.0, 2.5]),
        first_score=np.array([1.0, 4.0, 4.0]),
        pool_score=np.array([0.0, 1.0, 2.0]),
        base=found.base[:3],
        paths=found.paths[:3],
        covers=words,
        edge=np.array([[0.0, 0.5, 0.05], [0.0, 0.0, 0.2], [0.9, 0.0, 0.0]]),
    )


def test_leads_and_ranks(facts: ListFacts) -> None:
    assert [0.0, -2.0, -2.5] == standing.lead_1(facts).tolist()
    assert [2.5, 0.5, 0.0] == standing.lead_5(facts).tolist()  # of three the third is the last
    assert [0.0, 2.0, 0.5] == standing.gap_above(facts).tolist()
    assert [2.0, 0.5, 0.0] == standing.gap_below(facts).tolist()
    assert [2.0, 0.0, 1.0] == standing.first_rank(facts).tolist()  # equal ones in their order
    assert [2.0, 1.0, 0.0] == standing.pool_rank(facts).tolist()
    assert [-3.0, 0.0, 0.0] == standing.first_lead(facts).tolist()


def test_edges_between_candidates(facts: ListFacts) -> None:
    assert [1.0, 1.0, 2.0] == features.edges_in(facts).tolist()
    assert [0.0, 0.5, 0.2] == features.edge_from_above(facts).tolist()  # .9 comes from below
    assert [0.0, 1.0, 1.0] == features.linked_above(facts).tolist()  # .05 tells nothing
    assert [0.0, 0.5, 0.2] == features.edge_from_best(facts).tolist()
    assert [0.5, 0.2, 0.9] == features.leads_to_best(facts).tolist()
    # The third is the "fifth best", so σ(0) for it and σ(2.5) for the first.
    assert features.leads_on(facts)[2] == pytest.approx(0.9 / (1 + np.exp(-2.5)))


def test_words_that_those_above_lack(facts: ListFacts) -> None:
    idf = facts.reading.questions[0].idf
    added = [idf[0] / idf.sum(), idf[1] / idf.sum(), 0.0]

    assert added == pytest.approx(features.adds(facts).tolist(), abs=1e-5)


def test_a_list_has_every_feature_of_its_best_candidates(index: Index) -> None:
    for candidates in HopRank().candidates(Batch(index, ASKED), Counters()):
        passed = list(passes(candidates, shipped(), 8))
        facts = list_facts(candidates, [passed])[0].one(0)
        values = tree_features(facts)
        last, paths = passed[-1]
        assert (min(len(last.chunks), READ), len(tree_names())) == values.shape
        assert np.isfinite(values).all()
        assert sorted(last.scores, reverse=True)[:LISTED] == facts.score.tolist()
        assert paths is not None
        kinds = paths.best[last.chunks.searchsorted(facts.chunks)]
        assert [not reached for reached in (kinds >= 0).tolist()] == (facts.best_edge == 0).tolist()
    assert len(tree_names()) == len(set(tree_names()))


def test_lists_side_by_side_have_the_features_that_each_has_alone(index: Index) -> None:
    """Questions with more words and fewer, some without any; and a part of the lists, in one reading and in several."""
    asked = [*ASKED, Question("none", ""), Question("stop", "who was it"), *ASKED[:2]]
    batch = Batch(index, asked)
    reads = partial(HopRank()._pools, batch, *corpus_index(batch, Counters()))
    several = reads(range(len(asked)))
    found = list_facts(several, of_each(several, list(passes(several, shipped(), 8))))
    assert max(facts.of.size for facts in found) > 2
    seen = {}
    for facts in found:
        features = tree_features(facts)
        for place, number in enumerate(facts.of.tolist()):
            alone = reads([number])
            (one,) = list_facts(alone, [list(passes(alone, shipped(), 8))])
            assert tree_features(one)[0].tolist() == features[place].tolist()
            assert tree_features(facts.one(place)).tolist() == features[place].tolist()
            seen[number] = features[place]
    assert sorted(seen) == list(range(len(asked)))


def test_the_pool_alone_is_no_list(index: Index) -> None:
    candidates = next(HopRank().candidates(Batch(index, ASKED), Counters()))
    (pool,) = passes(candidates, shipped(), 0)

    with pytest.raises(ValueError, match="followed none"):
        list_facts(candidates, [[pool, pool]])
