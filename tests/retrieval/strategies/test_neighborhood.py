"""Document 5's neighbourhood search: golden values, recognition, the merge, and what it never does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support.entity_graphs import index_of, with_counts, with_names
from tests.support.graphs import graph_tables

from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.strategies.baselines import Hybrid
from hopbench.retrieval.strategies.neighborhood import Neighborhood
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.traversal.entity_expansion import (
    ShortestPath,
    mention_boosts,
    neighbors,
    proximity,
)
from hopbench.retrieval.types import Counters, Question, Ranking, Step

NAMES = {"e:auth": "Auth Service", "e:oauth": "OAuth Provider", "e:user": "User Model", "e:login": "Login Flow"}
CHUNKS = {f"c{n:02}": f"passage number {n}" for n in range(16)}


def services(folder: Path, strength: float = 0.8, **cosines: float) -> Index:
    """Auth –.8– OAuth –.5– User; OAuth is mentioned thrice in c12 and once in c13, User 31 times in c14."""
    tables = graph_tables(
        CHUNKS,
        entities=NAMES,
        mentions=[("e:auth", "c11"), ("e:oauth", "c12"), ("e:oauth", "c13"), ("e:user", "c14"), ("e:login", "c15")],
        related=[("e:auth", "e:oauth", strength), ("e:oauth", "e:user", 0.5)],
    )
    counts = {("e:oauth", "c12"): 3, ("e:user", "c14"): 31}
    pairs = zip(tables.edges[MENTIONED_IN]["source"], tables.edges[MENTIONED_IN]["target"], strict=True)
    counted = with_counts(tables, {pair: counts.get(pair, 1) for pair in pairs})
    given = {chunk: 0.9 - 0.05 * n for n, chunk in enumerate(CHUNKS)} | dict.fromkeys(NAMES.values(), 0.0)
    return index_of(with_names(counted, NAMES, {"e:auth": "Issues tokens."}), folder, given | cosines)


def rank(index: Index, text: str, **parameters: object) -> Ranking:
    (ranking,) = Neighborhood(**{"fill": False, **parameters}).rank(Batch(index, [Question("q", text)]), Counters())  # type: ignore[arg-type]
    return ranking


def test_the_formula_gives_the_golden_values() -> None:
    boost = mention_boosts(np.array([3, 31, 1000])).tolist()
    assert boost[0] == pytest.approx(0.82)  # .7 + .3 · log2(4)/5 = .7 + .3 · .4
    assert boost[1:] == [1.0, 1.0]  # log2(32)/5 = 1, the cap
    assert proximity(8, 1) * boost[0] == pytest.approx(0.656)  # .8 · 1 · .82
    assert proximity(8, 2) * boost[0] == pytest.approx(0.328)  # .8 · ½ · .82
    assert proximity(8, 3) * boost[0] == pytest.approx(0.164)  # .8 · ¼ · .82


def test_a_chunk_of_a_neighbour_gets_the_golden_score_and_its_path(tmp_path: Path) -> None:
    hits = {hit.chunk_id: hit for hit in rank(services(tmp_path), "what of the auth service?").hits}
    assert hits["c12"].components == {"hybrid": 0.0, "graph": 0.656, "weight": 8.0, "hop": 1, "mentions": 3}
    assert hits["c12"].score == pytest.approx(0.3 * 0.656)
    assert hits["c12"].path == (
        Step(RELATED_TO, "e:auth", "e:oauth", 0.8, 0.8),
        Step(MENTIONED_IN, "e:oauth", "c12", 3, 0.656),
    )
    assert hits["c13"].components["graph"] == pytest.approx(0.608)  # .8 · (.7 + .3 · log2(2)/5) = .8 · .76
    assert "c11" not in hits  # hop 0: a passage of the recognised entity itself
    assert "c14" not in hits  # two hops away


def test_the_second_hop_halves_and_takes_the_weakest_relation(tmp_path: Path) -> None:
    hits = {hit.chunk_id: hit for hit in rank(services(tmp_path), "auth service", max_hops=2).hits}
    assert hits["c14"].components["graph"] == pytest.approx(0.25)  # min(8, 5)/10 · ½ · 1
    assert [step.target for step in hits["c14"].path] == ["e:oauth", "e:user", "c14"]
    assert hits["c12"].components["graph"] == 0.656


def test_the_weakest_relation_of_a_path_counts_wherever_it_stands() -> None:
    related = {"a": {"b": 0.4}, "b": {"c": 0.9}, "c": {"d": 0.7}}
    assert [neighbors("a", related, 3)[entity].weight for entity in "bcd"] == [4.0, 4.0, 4.0]


def test_equal_bottlenecks_go_over_the_smaller_id() -> None:
    related = {"a": {"z": 0.5, "b": 0.5}, "z": {"t": 0.9}, "b": {"t": 0.9}}
    assert neighbors("a", related, 2)["t"] == ShortestPath(5.0, 2, "b")


def test_a_shorter_way_wins_over_a_stronger_one_and_the_best_bottleneck_among_equals() -> None:
    related = {"a": {"b": 0.9, "c": 0.3, "d": 0.8}, "b": {"c": 0.9, "e": 0.4}, "d": {"e": 0.5}}
    ways = neighbors("a", related, 2)
    assert ways["c"] == ShortestPath(3.0, 1, "a")
    assert ways["e"] == ShortestPath(5.0, 2, "d")  # min(8, 5) over d beats min(9, 4) over b
    assert "a" not in ways


def test_a_recognised_entity_can_be_the_others_neighbour(tmp_path: Path) -> None:
    hits = {hit.chunk_id: hit for hit in rank(services(tmp_path), "Auth Service or OAuth Provider").hits}
    assert hits["c11"].path[0] == Step(RELATED_TO, "e:oauth", "e:auth", 0.8, 0.8)
    assert hits["c12"].path[0] == Step(RELATED_TO, "e:auth", "e:oauth", 0.8, 0.8)


def test_a_hybrid_result_that_the_graph_reaches_is_scored_again(tmp_path: Path) -> None:
    index = services(tmp_path, c12=0.95)
    hybrid = Hybrid().rank(Batch(index, [Question("q", "auth service")]), Counters())[0]
    hit = next(hit for hit in rank(index, "auth service").hits if hit.chunk_id == "c12")
    before = next(hit.score for hit in hybrid.hits if hit.chunk_id == "c12")
    assert (hit.origin, hit.score) == ("seed", pytest.approx(0.7 * before + 0.3 * 0.656))


def test_the_longest_names_come_first_then_the_rarest_up_to_the_limit(tmp_path: Path) -> None:
    names = {"e:a": "North Sea Route", "e:b": "North Sea", "e:c": "Sea", "e:d": "Route", "e:e": "Whale", "e:f": "The"}
    mentions = [("e:a", "c00"), ("e:b", "c01"), ("e:c", "c02"), *[("e:d", f"c0{n}") for n in range(3)], ("e:e", "c03")]
    tables = with_names(graph_tables(CHUNKS, entities=names, mentions=[*mentions, ("e:e", "c04")]), names)
    index = index_of(tables, tmp_path)
    question = "the whale on the north sea route"
    # 3 words; 2 words; then single words by document frequency: Sea 1, Whale 2, Route 3. "the" is a stop word.
    assert rank(index, question).notes["entities"] == ["e:a", "e:b", "e:c", "e:e", "e:d"]
    assert rank(index, question, max_entities=3).notes["entities"] == ["e:a", "e:b", "e:c"]
    assert rank(index, "Whale on the North Sea Route", recognition="names").notes["entities"] == ["e:a", "e:e"]


def test_without_a_name_the_three_nearest_entities_stand_in(tmp_path: Path) -> None:
    index = services(tmp_path, **{"Auth Service": 0.76, "OAuth Provider": 0.9, "User Model": 0.74, "Login Flow": 0.75})
    ranking = rank(index, "sign in?")
    assert ranking.notes["entities"] == ["e:oauth", "e:auth", "e:login"]  # best first, .74 < .75 is out
    assert ranking.notes["recognised_by"] == "embedding"
    assert rank(index, "sign in?", fallback_entities=1).notes["entities"] == ["e:oauth"]
    assert rank(index, "sign in?", fallback_cosine=0.95).notes["recognised_by"] == "nothing"


def test_nothing_recognised_leaves_the_hybrid_order(tmp_path: Path) -> None:
    index = services(tmp_path)
    hybrid = Hybrid().rank(Batch(index, [Question("q", "sign in")]), Counters())[0]
    ranking = rank(index, "sign in")
    assert [hit.chunk_id for hit in ranking.hits] == [hit.chunk_id for hit in hybrid.hits[:10]]
    assert ranking.graph_context == ""


def test_the_escape_is_the_hybrid_ranking(tmp_path: Path) -> None:
    index, question = services(tmp_path), [Question("q", "auth service passage 12")]
    counters = Counters()
    (bare,) = Neighborhood(use_graph=False).rank(Batch(index, question), counters)
    (hybrid,) = Hybrid().rank(Batch(index, question), Counters())
    assert [hit.chunk_id for hit in bare.hits] == [hit.chunk_id for hit in hybrid.hits[:20]]
    assert counters.round_trips == 0


def test_a_reached_hybrid_result_takes_no_place_of_the_added_ones(tmp_path: Path) -> None:
    ranking = rank(services(tmp_path, c12=0.95), "auth service", max_graph_chunks=1)
    assert [hit.chunk_id for hit in ranking.hits if hit.origin == "graph"] == ["c13"]


def test_at_most_max_graph_chunks_are_added(tmp_path: Path) -> None:
    index = services(tmp_path)
    for limit in (0, 1, 2):
        ranking = rank(index, "auth service", max_graph_chunks=limit)
        assert len([hit for hit in ranking.hits if hit.origin == "graph"]) == limit
        assert len(ranking.hits) == 10 + limit
    assert [h.chunk_id for h in rank(index, "auth service", max_graph_chunks=1).hits if h.origin == "graph"] == ["c12"]


def test_relations_are_followed_by_type_and_strength(tmp_path: Path) -> None:
    index = services(tmp_path)
    assert rank(index, "auth service", rel_types="uses|related").notes["graph_chunks"] == 2
    assert rank(index, "auth service", rel_types="uses").notes["graph_chunks"] == 0
    assert rank(index, "auth service", min_strength=0.81).notes["graph_chunks"] == 0


def test_a_rare_neighbour_is_worth_more_when_rarity_counts(tmp_path: Path) -> None:
    hits = {hit.chunk_id: hit for hit in rank(services(tmp_path), "auth service", rarity=1.0).hits}
    # OAuth is mentioned in 2 of 16 chunks: 1 − ln 2/ln 17 = .7554
    assert hits["c12"].components["graph"] == pytest.approx(0.656 * 0.75535, abs=1e-5)


def test_the_block_tells_what_the_graph_knows(tmp_path: Path) -> None:
    assert rank(services(tmp_path), "auth service").graph_context == (
        "## Knowledge Graph Context\n"
        "Query entities: [Auth Service]\n\n"
        "### Auth Service (entity)\n"
        "Related: OAuth Provider (related, weight: 8)\n"
        "Description: Issues tokens.\n\n"
        "### Relevant Relationships\n"
        '- Auth Service -> OAuth Provider: "related" (strength: 8)'
    )


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_hop_of_a_batch_is_one_round_trip(tmp_path: Path, hops: int) -> None:
    index = services(tmp_path)
    questions = [Question("q1", "auth service"), Question("q2", "login flow"), Question("q3", "user model")]
    counters = Counters()
    Neighborhood(max_hops=hops).rank(Batch(index, questions), counters)
    assert counters.round_trips == len(index.store.queries)  # type: ignore[attr-defined]
    assert counters.round_trips == 3 + min(hops, 2)  # names, cards, hops until nothing new is found, block
    assert set(counters.stage_seconds) == {"hybrid", "entities", "graph", "merge", "context"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_hops", 0),
        ("max_hops", 4),
        ("alpha", 1.1),
        ("max_graph_chunks", -1),
        ("recognition", "llm"),
        ("rarity", -0.1),
    ],
)
def test_values_outside_the_bounds_are_refused(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=rf"neighborhood\.{field} = .* it takes"):
        Neighborhood(**{field: value})  # type: ignore[arg-type]


def test_the_block_and_the_n_grams_are_as_long_as_their_parameters_say(tmp_path: Path) -> None:
    index = services(tmp_path)
    whole = rank(index, "auth service")

    shorter = rank(index, "auth service", block_tokens=30)
    assert 0 < count_tokens(shorter.graph_context) <= 30 < count_tokens(whole.graph_context)
    assert "" == rank(index, "auth service", block_tokens=0).graph_context
    assert "Related:" in whole.graph_context
    assert "Related:" not in rank(index, "auth service", shown_relations=0).graph_context
    assert [hit.chunk_id for hit in whole.hits] == [hit.chunk_id for hit in shorter.hits]
    # "Auth Service" has two words: n-grams of one do not find it.
    assert whole.notes["entities"] != rank(index, "auth service", max_ngram=1).notes["entities"]
