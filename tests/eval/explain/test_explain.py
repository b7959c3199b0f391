"""Fates of gold passages on a graph made by hand, where each fate and its cause are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.graphs import CountingStore, graph_tables, hand_index

from hopbench.eval.explain import (
    Change,
    Examiner,
    Fate,
    Names,
    Query,
    Routes,
    answer,
    browser_text,
    changes_of,
    linked_entities,
    literal,
    outcomes_of,
    pasteable,
    queries_of,
    side_by_side,
)
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.graph.stores.graph_mapping import GraphMapping
from hopbench.retrieval.index import INDEX_VALUES, Batch, Index, Memo
from hopbench.retrieval.search.fusion import Scored
from hopbench.retrieval.strategies.base import Strategy, param
from hopbench.retrieval.strategies.baselines import Vector
from hopbench.retrieval.strategies.entity_expansion import EntityExpansion
from hopbench.retrieval.strategies.graph_expansion import GraphExpansion
from hopbench.retrieval.strategies.pagerank import PageRank
from hopbench.retrieval.types import Chunk, Counters, Hit, Question, Ranking, Step

OTHERS = [f"z{number:03}" for number in range(110)]  # push what is far from the question out of the vector top 100
ASKED = Question("q", "Where is Ada?")
STRATEGY = GraphExpansion(initial_k=1)  # max_depth 1, similarity ≥ .7, strength ≥ .5
TOP = 2


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The seed `start` and around it: one chunk for each fate."""
    near = {"start": 1.0, "rival": 0.1, "beaten": 0.5, "weak": -0.1, "strong": -0.2, "deep": -0.3, "lost": -0.4}
    near |= {"alone": -0.5, "named": -0.6} | {other: 0.4 - row / 1000 for row, other in enumerate(OTHERS)}
    tables = graph_tables(
        {chunk: f"text of {chunk}" for chunk in near},
        entities=["e:ada", "e:bo", "e:cy"],
        mentions=[("e:ada", "start"), ("e:bo", "strong"), ("e:cy", "named")],
        related=[("e:ada", "e:bo", 0.4)],
        similar=[
            ("start", "rival", 0.9),
            ("start", "beaten", 0.8),
            ("start", "weak", 0.5),  # below .7
            ("rival", "deep", 0.9),  # the second step
            ("weak", "lost", 0.5),  # the second step, and below .7
        ],
    )
    return hand_index(tables, tmp_path_factory.mktemp("hand"), near)


@pytest.fixture(scope="module")
def batch(index: Index) -> Batch:
    return Batch(index, [ASKED])


@pytest.fixture(scope="module")
def examiner(batch: Batch) -> Examiner:
    return Examiner(batch, answer("graph_expansion", STRATEGY, batch), TOP)


def named(fate: Fate) -> list[str]:
    return [str(helped.change) for helped in fate.changes]


def test_a_seed_is_found_by_the_initial_ranking(examiner: Examiner) -> None:
    fate = examiner.fate("start")
    assert (fate.kind, fate.place and fate.place.rank, fate.initial_rank) == ("seed", 1, 1)


def test_a_reached_passage_names_its_path(examiner: Examiner) -> None:
    fate = examiner.fate("rival")  # .3 · .9 = .27
    assert fate.kind == "reached"
    assert fate.place is not None
    assert fate.place.hit.path == (Step(SIMILAR_TO, "start", "rival", 0.9, 0.9),)
    assert fate.place.hit.score == 0.27


def test_an_out_ranked_passage_names_what_stands_above_and_the_component_that_decides(examiner: Examiner) -> None:
    fate = examiner.fate("beaten")  # .3 · .8 = .24, rank 3 of a top 2
    assert (fate.kind, fate.place and fate.place.rank) == ("out-ranked", 3)
    decided = [(rival.place.passage, rival.component, rival.theirs, rival.ours) for rival in fate.rivals]
    # against the seed the vector score (1 to 0, all of its range), against `rival` the edge's similarity (.9 to .8)
    assert decided == [("start", "vector", 1.0, 0.0), ("rival", "graph", 0.9, 0.8)]
    assert [(str(helped.change), helped.place.rank, helped.lost) for helped in fate.changes] == [
        ("initial_k 1 → 100", 2, 0),  # as a seed: .7 · .5 = .35 beats .27
        ("chunk_weight 0.7 → 0", 2, 0),  # the edge alone: .9, .8, and 0 for the seed
        ("vector_scores initial → all", 2, 0),  # .7·.5 + .3·.8 = .59 beats .7·.1 + .3·.9 = .34
        ("initial_weight 0 → 1", 2, 0),  # its place in the initial ranking alone: second by cosine
    ]


@pytest.mark.parametrize(
    ("passage", "first", "edges"),
    [
        ("weak", "min_similarity 0.7 → 0", [SIMILAR_TO]),
        ("strong", "min_strength 0.5 → 0", [MENTIONED_IN, RELATED_TO, MENTIONED_IN]),
        ("deep", "max_depth 1 → 3", [SIMILAR_TO, SIMILAR_TO]),
    ],
)
def test_a_pruned_passage_names_the_one_limit_that_lost_it(
    examiner: Examiner, passage: str, first: str, edges: list[str]
) -> None:
    fate = examiner.fate(passage)
    assert fate.kind == "pruned"
    assert named(fate) == [first]  # and no other: each of them is behind exactly one limit
    (helped,) = fate.changes
    assert helped.lost == 0  # a limit only keeps candidates out
    assert [step.edge for step in helped.place.hit.path] == edges


def test_a_passage_behind_two_limits_is_reachable_but_not_followed(examiner: Examiner) -> None:
    fate = examiner.fate("lost")
    assert (fate.kind, fate.changes) == ("not followed", ())
    assert fate.route is not None
    assert fate.route.hops == 2
    assert [(step.source, step.target, step.weight) for step in fate.route.steps] == [
        ("start", "weak", 0.5),
        ("weak", "lost", 0.5),
    ]


@pytest.mark.parametrize("passage", ["alone", "named"])
def test_a_passage_without_a_way_was_never_linked(examiner: Examiner, passage: str) -> None:
    fate = examiner.fate(passage)
    assert (fate.kind, fate.route, fate.initial_rank) == ("never linked", None, None)


def test_a_fill_counts_as_found_but_is_called_so(batch: Batch) -> None:
    # the third best of the vector ranking; not ranked by the strategy itself
    fate = Examiner(batch, answer("x", replace(STRATEGY, use_similar=False), batch), 3).fate("z000")
    assert (fate.kind, fate.place and fate.place.rank, fate.initial_rank) == ("filled", 3, 3)


def test_a_hop_free_ranking_ends_before_what_is_far(batch: Batch) -> None:
    assert Examiner(batch, answer("vector", Vector(), batch), TOP).fate("lost") == Fate("lost", "not ranked")


@dataclass(frozen=True, kw_only=True)
class Toy(Strategy):
    """Ranks `count` chunks after the seed, in mode b from the fifth on; fails when `broken` is at a bound."""

    name: ClassVar[str] = "toy"
    summary: ClassVar[str] = "a toy"
    edges: ClassVar[tuple[str, ...]] = (RELATED_TO, MENTIONED_IN)

    count: int = param(1, "chunks", 0, 90)
    mode: str = param("a", "where it begins", choices=("a", "b", "c"))
    text: str = param("", "free text")
    broken: float = param(0.5, "fails at 1", 0.0, 1.0)

    def initial(self, batch: Batch) -> list[Scored]:
        return [batch.all_with_ids([candidates])[0] for candidates in batch.dense]

    def search(self, batch: Batch, counters: Counters) -> list[Ranking]:
        if self.broken == 1.0:
            raise ZeroDivisionError("at the bound")
        if self.broken == 0.0:
            return [Ranking(question.id, failure="no question fits") for question in batch.questions]
        begin = 4 if self.mode == "b" else 0
        ids = ["start", *OTHERS[begin : begin + self.count]]
        hits = [Hit(chunk, 1.0 - rank / 1000, "graph") for rank, chunk in enumerate(ids)]
        return [Ranking(question.id, hits, ["start"], {"entities": ["e:cy"]}) for question in batch.questions]


def test_every_bounded_parameter_is_changed_and_nothing_else() -> None:
    assert list(changes_of(Toy())) == [
        Change("count", 1, 0),
        Change("count", 1, 90),
        Change("mode", "a", "b"),
        Change("mode", "a", "c"),
        Change("broken", 0.5, 0.0),
        Change("broken", 0.5, 1.0),
    ]
    assert next(changes_of(Toy(count=90))) == Change("count", 90, 0)
    assert Change("use_similar", True, False) in changes_of(STRATEGY)


def test_a_change_that_fails_is_kept_with_its_reason(batch: Batch) -> None:
    failed = {str(o.change): o.failure for o in outcomes_of(Toy(), batch) if o.failure}
    assert failed == {
        "broken 0.5 → 0": "ValueError: no question fits",
        "broken 0.5 → 1": "ZeroDivisionError: at the bound",
    }


def test_a_change_that_costs_candidates_comes_after_a_limit(batch: Batch) -> None:
    fate = Examiner(batch, answer("toy", Toy(), batch), TOP).fate("z004")
    assert (fate.kind, [(str(h.change), h.place.rank, h.lost) for h in fate.changes]) == (
        "pruned",
        [("count 1 → 90", 6, 0), ("mode a → b", 2, 1)],  # the latter takes the place of z000
    )


def test_edges_that_a_strategy_does_not_follow_are_told_apart(batch: Batch) -> None:
    toy = Examiner(batch, answer("toy", Toy(count=0, fill=False), batch), TOP)
    other, recognised = toy.fate("weak"), toy.fate("named")
    assert (other.kind, other.route and other.route.hops) == ("other edges", 1)
    # e:cy stands in the notes: the strategy starts there too
    assert (recognised.kind, recognised.route and recognised.route.steps) == (
        "not followed",
        (Step(MENTIONED_IN, "e:cy", "named", 1.0, 1.0),),
    )


def test_a_failure_is_a_fate(batch: Batch) -> None:
    for broken, reason in ((0.0, "no question fits"), (1.0, "ZeroDivisionError: at the bound")):
        failed = answer("toy", Toy(broken=broken), batch)
        assert (failed.failure, Examiner(batch, failed, TOP).fate("start").kind) == (reason, "failed")


def test_a_full_ranking_out_ranks_what_is_not_in_it(index: Index) -> None:
    batch = Batch(index, [ASKED])
    walk = PageRank(seed_chunks=1, similar_weight=1.0, initial_weight=0.5)
    found = answer("pagerank", walk, batch)
    assert len(found.places) == 100
    missing = next(other for other in reversed(OTHERS) if found.rank(other) is None)
    assert Examiner(batch, found, TOP).fate(missing).kind == "out-ranked"


def test_routes_count_steps_as_reach_does_and_take_the_strongest_way(index: Index) -> None:
    routes = Routes(index, ["start"])
    hops = {passage: found.hops for passage in ("start", "rival", "strong", "deep") if (found := routes.to(passage))}
    assert hops == {"start": 0, "rival": 1, "strong": 1, "deep": 2}
    through = routes.to("strong")
    assert through is not None
    assert [(step.edge, step.source, step.target, step.weight) for step in through.steps] == [
        (MENTIONED_IN, "start", "e:ada", 1.0),
        (RELATED_TO, "e:ada", "e:bo", 0.4),
        (MENTIONED_IN, "e:bo", "strong", 1.0),
    ]
    assert Routes(index, ["start"], kinds=(SIMILAR_TO,)).to("strong") is None
    assert Routes(index, [], ["e:unknown"]).to("start") is None


def test_entities_and_nodes_have_readable_names(index: Index) -> None:
    linked = linked_entities(Batch(index, [Question("q", "did e ada meet E Cy?")]))
    assert [(one.words, one.entity, one.chunks) for one in linked] == [("e ada", "e:ada", 1), ("E Cy", "e:cy", 1)]
    names = Names.read(index)
    assert (names("e:ada"), names("e:none"), names("start")) == ("e:ada", "e:none", "[start]")
    split = Chunk("p#1", "p", 1, "The Long Passage", "…")
    assert (
        Names(Index([split], index.vectors[:1], index.store, index.embedder), {})("p#1") == "[The Long Passage, part 2]"
    )


def test_two_strategies_side_by_side(batch: Batch, examiner: Examiner) -> None:
    vector = Examiner(batch, answer("vector", Vector(), batch), TOP)
    both = side_by_side(examiner, vector, ["rival", "alone"])
    assert [(ours.kind, theirs.kind) for ours, theirs in both.gold] == [
        ("reached", "not ranked"),
        ("never linked", "not ranked"),
    ]
    assert [place.passage for place, _ in both.only_first] == ["rival"]
    assert [(place.passage, fate.kind) for place, fate in both.only_second] == [("beaten", "out-ranked")]


def test_the_queries_of_a_mapped_graph_have_its_names(index: Index) -> None:
    """What is printed is to be pasted into that graph's own browser."""

    class Mapped(CountingStore):
        def rewrite(self, query: str) -> str:
            return GraphMapping(labels={"Entity": "base"}).rewrite(query)

    mapped = replace(index, store=Mapped(index.store), memo=Memo(INDEX_VALUES))
    strategy = EntityExpansion()
    asked = Question("q", "Where is E Ada?")  # the hand-made entities are named by their ids

    (own,) = pasteable(strategy, mapped, asked)

    assert "MATCH (e:`base` {`id`: id})" in own.text
    assert "AS chunk_text" in own.text
    assert all(":Entity" not in query.text for query in queries_of(strategy, mapped, asked))


def test_the_queries_of_one_question_are_written_down(index: Index) -> None:
    (query,) = queries_of(STRATEGY, index, ASKED)
    assert query.text == cypher.EXPANSION_HOP
    assert query.parameters == {
        "namespace": "hand",
        "ids": ["start"],
        "min_similarity": 0.7,
        "min_strength": 0.5,
    }
    walk = PageRank()
    for _ in range(2):  # what the index remembers of the first time is read again
        assert [one.text for one in queries_of(walk, index, ASKED)] == [cypher.NAMES, cypher.ADJACENCY]


def test_a_pasted_query_finds_what_the_strategy_found(index: Index) -> None:
    (query,) = queries_of(STRATEGY, index, ASKED)
    pasted = query.text
    for name, value in query.parameters.items():
        pasted = pasted.replace(f"${name}", literal(value))
    rest = {name: value for name, value in query.parameters.items() if name != "namespace"}
    assert index.store.read(pasted) == index.store.read(query.text, **rest)


def test_the_text_to_paste() -> None:
    text = browser_text([Query("\nRETURN $x AS x\n", {"namespace": "n", "x": ["it's", 'a "b"\n'], "most": None})])
    assert text == (
        "// round trip 1 of 1\n"
        ':param namespace => "n";\n'
        ':param x => ["it\'s", "a \\"b\\"\\n"];\n'
        ":param most => null;\n"
        "RETURN $x AS x;"
    )


_PLAIN = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
_NAMES = st.text("abcXYZ09_ -`é", min_size=1, max_size=6)


@given(
    st.recursive(_PLAIN | _TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3))
)
def test_a_literal_is_one_line_that_cypher_reads_back(value: object) -> None:
    import kglite

    written = literal(value)
    assert len(written.splitlines()) == 1
    (row,) = kglite.KnowledgeGraph().cypher(f"RETURN {written} AS v").to_list()
    assert row["v"] == value


def test_sequences_of_any_kind_are_lists() -> None:
    values: Sequence[Sequence[int]] = ((1, 2), [3])
    assert literal(values) == "[[1, 2], [3]]"
    assert literal({"a b": 1, "c`d": 2, "e": 3}) == "{`a b`: 1, `c``d`: 2, e: 3}"
    assert literal(Path("x").name) == '"x"'
