"""dual_level on hand-made graphs: every expected value is derived beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.entity_graphs import index_of, with_names
from tests.support.graphs import graph_tables

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import GraphTables
from hopbench.retrieval.index import Batch, Index, Keywords, Linker, Services
from hopbench.retrieval.strategies.dual_level import DualLevel
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Counters, Question, Ranking, Step

ASKED = [Question("q", "anything")]
NAMES = {"e:a": "Ada", "e:b": "Bo", "e:c": "Cy", "e:d": "Dee", "e:z": "Zoe"}
SAID = {"e:a": "Ada sings."}
# What stands where: c5 is mentioned by nobody.
MENTIONS = {"c1": "a", "c2": "ab", "c3": "bc", "c4": "d", "c5": ""}
TEXTS = {"Ada. Ada sings.": 0.9, "Ada": 0.1, "Bo": 0.5, "Cy": 0.3, "Dee": 0.15, "Zoe": 0.0}
COMMUNITIES = {"Ada. Bo. Ada related Bo": 0.4, "Cy. Dee. Cy related Dee": 0.6}
COSINES = {"c1": 0.2, "c2": 0.4, "c3": 0.8, "c4": 0.1, "c5": 0.7} | TEXTS | COMMUNITIES


def world() -> GraphTables:
    tables = graph_tables(
        {chunk: f"text of {chunk}" for chunk in MENTIONS},
        entities=list(NAMES),
        mentions=[(f"e:{name}", chunk) for chunk, names in MENTIONS.items() for name in names],
        related=[("e:a", "e:b", 0.8), ("e:c", "e:d", 0.6)],
    )
    return with_names(tables, NAMES, SAID)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return index_of(world(), tmp_path, {**COSINES, **{f"text of {c}": COSINES[c] for c in MENTIONS}})


def rank(index: Index, text: str = "anything", counters: Counters | None = None, **parameters: Any) -> Ranking:
    batch = Batch(index, [Question("q", text)])
    (ranking,) = DualLevel(**{"fill": False, **parameters}).rank(batch, counters or Counters())
    return ranking


def ids(ranking: Ranking) -> list[str]:
    return [hit.chunk_id for hit in ranking.hits]


def test_local_takes_the_chunks_of_the_nearest_entities(index: Index) -> None:
    """Ada .9 has c2 (.4) and c1 (.2); Bo .5 adds c3; Cy .3 nothing new; Dee .15 is below .2, so c4 is not found."""
    ranking = rank(index, mode="local")

    assert ["c2", "c1", "c3"] == ids(ranking)
    assert [round(1 / 61, 9), round(1 / 62, 9), round(1 / 63, 9)] == [hit.score for hit in ranking.hits]
    assert (Step("MENTIONED_IN", "e:a", "c2", 1.0, 0.9),) == ranking.hits[0].path
    assert (Step("MENTIONED_IN", "e:b", "c3", 1.0, 0.5),) == ranking.hits[2].path
    assert {"graph"} == {hit.origin for hit in ranking.hits}
    assert [("e:a", 0.9), ("e:b", 0.5), ("e:c", 0.3)] == ranking.notes["entities"]
    assert [] == ranking.notes["communities"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        # Entities mentioned: c2 two (Ada, Bo), c3 two (Bo, Cy), c1 one; c3 is nearer than c2.
        ("count", ["c3", "c2", "c1"]),
        # Their cosines: c2 .9 + .5, c1 .9, c3 .5 + .3.
        ("cosine", ["c2", "c1", "c3"]),
        ("nearest", ["c2", "c1", "c3"]),
    ],
)
def test_the_local_orders(index: Index, order: str, expected: list[str]) -> None:
    assert expected == ids(rank(index, mode="local", local_order=order))


def test_entities_may_be_compared_by_name_alone(index: Index) -> None:
    """Ada's name has only .1: Bo .5 leads with c3 (.8) and c2 (.4); without a minimum Dee .15 and Ada follow."""
    assert ["c3", "c2"] == ids(rank(index, mode="local", entity_text="name"))
    assert ["c3", "c2", "c4", "c1"] == ids(rank(index, mode="local", entity_text="name", min_cosine=0.0))


def test_only_so_many_entities_are_read(index: Index) -> None:
    assert ["c2", "c1"] == ids(rank(index, mode="local", entities=1))


def test_entities_that_the_question_names_come_first(index: Index) -> None:
    """Dee has cosine 1 as a keyword; without keywords it is too far away."""
    named = rank(index, "Who is Dee?", mode="local")
    assert ["c4", "c2", "c1", "c3"] == ids(named)
    assert (Step("MENTIONED_IN", "e:d", "c4", 1.0, 1.0),) == named.hits[0].path
    assert ["c2", "c1", "c3"] == ids(rank(index, "Who is Dee?", mode="local", use_keywords=False))


def test_global_takes_the_chunks_of_the_nearest_communities(index: Index) -> None:
    """Cy and Dee .6 come before Ada and Bo .4: c3 (.8), c4 (.1); then c2 by two members, c1 by one."""
    ranking = rank(index, mode="global")

    assert ["c3", "c4", "c2", "c1"] == ids(ranking)
    path = (Step("IN_COMMUNITY", "community:1", "e:c", 0.6, 0.6), Step("MENTIONED_IN", "e:c", "c3", 1.0, 0.6))
    assert path == ranking.hits[0].path
    assert [("community:1", "Cy, Dee", 0.6), ("community:0", "Ada, Bo", 0.4)] == ranking.notes["communities"]
    assert ["c3", "c4"] == ids(rank(index, mode="global", communities=1))
    assert ["c3", "c4"] == ids(rank(index, mode="global", min_cosine=0.5))


def test_weak_relations_make_no_community(index: Index) -> None:
    """Without Cy and Dee's .6 there is Ada and Bo's: c2 mentions both, c3 (.8) and c1 (.2) one of them."""
    assert ["c2", "c3", "c1"] == ids(rank(index, mode="global", min_strength=0.7))


def test_hybrid_is_the_reciprocal_rank_fusion_of_both(index: Index) -> None:
    """Local c2 c1 c3, global c3 c4 c2 c1: c3 1/63 + 1/61, c2 1/61 + 1/63 (the same), c1 1/62 + 1/64, c4 1/62."""
    ranking = rank(index)

    assert ["c2", "c3", "c1", "c4"] == ids(ranking)
    expected = [1 / 61 + 1 / 63, 1 / 61 + 1 / 63, 1 / 62 + 1 / 64, 1 / 62]
    assert [round(score, 9) for score in expected] == [hit.score for hit in ranking.hits]
    # The path is that of the level which ranks the chunk higher.
    assert ["e:a", "community:1", "e:a", "community:1"] == [hit.path[0].source for hit in ranking.hits]


def test_mix_adds_the_vector_ranking(index: Index) -> None:
    """Vector: c3 c5 c2 c1 c4. c3 gains 1/61, c5 has 1/62 alone."""
    ranking = rank(index, mode="mix")

    assert ["c3", "c2", "c1", "c4", "c5"] == ids(ranking)
    assert round(1 / 63 + 1 / 61 + 1 / 61, 9) == ranking.hits[0].score
    assert {"local": 0.0, "global": 0.0, "initial": round(1 / 62, 9)} == ranking.hits[4].components
    assert ("seed", ()) == (ranking.hits[4].origin, ranking.hits[4].path)


def test_the_lists_can_be_weighted(index: Index) -> None:
    """Local alone counts: c2 c1 c3, then what has score 0, by id."""
    assert ["c2", "c1", "c3", "c4"] == ids(rank(index, global_weight=0.0))
    assert round(2 / 61, 9) == rank(index, mode="local", local_weight=2.0).hits[0].score


def test_a_question_that_nothing_is_near_to_gets_the_vector_ranking(index: Index) -> None:
    ranking = rank(index, min_cosine=1.0)

    assert ["c3", "c5", "c2", "c1", "c4"] == ids(ranking)
    assert {"seed"} == {hit.origin for hit in ranking.hits}
    assert "fallback" in ranking.notes


def test_an_empty_graph_leaves_the_vector_ranking(tmp_path: Path) -> None:
    tables = graph_tables({"c1": "text of c1", "c2": "text of c2"})
    ranking = rank(index_of(tables, tmp_path, {"text of c1": 0.1, "text of c2": 0.4}))

    assert ["c2", "c1"] == ids(ranking)
    assert "fallback" in ranking.notes


def test_keywords_may_come_from_elsewhere(index: Index) -> None:
    """Keyword texts are embedded in the question's place: the one for communities is like `Ada. Bo. Ada related Bo`."""

    def find(questions: Sequence[Question], counters: Counters, linker: Linker) -> list[Keywords]:
        counters.llm_calls += len(questions)
        zoe, dee = linker.resolve("Zoe"), linker.resolve("Dee")
        return [Keywords([one for one in (zoe, dee) if one], "Bo", "Ada. Bo. Ada related Bo") for _ in questions]

    index.services = Services(keywords=find)
    counters = Counters()
    local = rank(index, mode="local", entities=2, counters=counters)

    # Dee is named, Bo is itself: both have cosine 1, b before d.
    assert ["c3", "c2", "c4"] == ids(local)
    assert 1 == counters.llm_calls
    assert ["c2", "c3", "c1"] == ids(rank(index, mode="global", communities=1))


def test_each_read_is_charged_and_sent_once(index: Index) -> None:
    first, second = Counters(), Counters()
    rank(index, counters=first)
    rank(index, counters=second)

    reads = index.store.queries  # type: ignore[attr-defined]
    assert sorted([cypher.ADJACENCY, cypher.NAMES, cypher.DESCRIPTIONS]) == sorted(reads)
    for counters in (first, second):
        # The adjacency, the names, the descriptions.
        assert 3 == counters.round_trips
        # 6 mentions and 2 relations; 5 entities and 5 titles; 5 entities and 2 relations.
        assert 8 + 10 + 7 == counters.rows
        # Mentions of Ada 2, Bo 2, Cy 1; of both communities' members 3 + 4 - 1 (Bo and Cy both in c3).
        assert 5 + 6 == counters.edges_touched
        assert {"keywords", "local", "global", "communities", "fusion"} == set(counters.stage_seconds) - {
            "entity embedding"
        }


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("mode", "naive"),
        ("entities", 0),
        ("communities", 1001),
        ("min_cosine", 1.1),
        ("local_order", "best"),
        ("resolution", 0.0),
        ("max_community", 1),
        ("local_weight", -1.0),
    ],
)
def test_values_outside_the_bounds_are_refused(parameter: str, value: object) -> None:
    with pytest.raises(ParameterError, match=rf"dual_level\.{parameter} = "):
        DualLevel(**{parameter: value})  # type: ignore[arg-type]
