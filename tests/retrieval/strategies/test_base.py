"""The base class: its example works, and what strategies say of themselves is true of their parameters."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.graphs import WORLD, built_index, plan_of

from hopbench.retrieval.graph.schema import SIMILAR_TO
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies import base
from hopbench.retrieval.strategies.base import KEEP, Strategy
from hopbench.retrieval.strategies.registry import make, registry
from hopbench.retrieval.types import DETAILED, Counters, Hit, LazyHits, Question, Ranking, scored


def test_the_example_of_a_subclass_works(tmp_path: Path) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(
        Strategy, "Strategy", base, extraglobs={"index": built_index(plan_of(WORLD), tmp_path)}
    )
    output: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(example, out=output.append)

    assert outcome.attempted > 5
    assert 0 == outcome.failed, "".join(output)


@pytest.mark.parametrize("kind", [tuple, iter])
def test_hits_of_any_iterable_are_a_list_afterwards(kind: Callable[[list[Hit]], Any], tmp_path: Path) -> None:
    batch = Batch(built_index(plan_of(WORLD), tmp_path), [Question("q1", "Where was Tim Burton born?")])
    plain = make("vector")
    expected = plain.rank(batch, Counters())[0].hits

    with pytest.MonkeyPatch.context() as patch:
        search = type(plain).search
        patch.setattr(
            type(plain),
            "search",
            lambda *args: [replace(ranking, hits=kind(list(ranking.hits))) for ranking in search(*args)],
        )
        (ranking,) = plain.rank(batch, Counters())

    assert isinstance(ranking.hits, list)
    assert expected == ranking.hits


@pytest.mark.parametrize("lazy", [False, True])
def test_the_best_hits_and_all_seeds_are_kept_and_none_is_made_for_that(lazy: bool, tmp_path: Path) -> None:
    batch = Batch(built_index(plan_of(WORLD), tmp_path), [Question("q1", "Where was Tim Burton born?")])
    best, made = [(f"c{place}", 1.0 - place / 1000) for place in range(KEEP + 30)], list[int]()

    def hit(place: int) -> Hit:
        made.append(place)
        return Hit(*best[place], components={"place": place})

    hits = LazyHits.one_by_one(best, hit) if lazy else [*map(hit, range(len(best)))]
    seeds = ["c3", f"c{KEEP + 7}", "not found"]
    plain = replace(make("vector"), fill=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(plain), "search", lambda *_: [Ranking("q1", hits, seeds)])
        (ranking,) = plain.rank(batch, Counters())

    assert made == [*range(DETAILED if lazy else len(best))]
    kept = [*range(KEEP), KEEP + 7]
    assert [best[place] for place in kept] == list(scored(ranking.hits))
    assert kept == [found.components["place"] for found in ranking.hits]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("graph_expansion[min_similarity=.4]", {SIMILAR_TO: 0.4}),
        ("activation[min_similarity=.8]", {SIMILAR_TO: 0.8}),
        ("activation[min_similarity=.8,use_similar=false]", {}),
        ("bm25", {}),
    ],
)
def test_a_strategy_tells_the_lowest_weight_that_it_follows(label: str, expected: dict[str, float]) -> None:
    assert expected == make(label).lowest_weights()


@pytest.mark.parametrize("name", registry().names())
def test_what_a_class_names_are_parameters_and_edge_types_of_its_own(name: str) -> None:
    strategy = registry().get(name)
    named = {*strategy.traversal_parameters, *strategy.thresholds, *strategy.fitted_fields}

    assert named <= set(strategy.parameters())
    assert set(strategy.ablations) <= set(strategy.edges)
    assert make(name).lowest_weights().keys() <= set(strategy.edges)
