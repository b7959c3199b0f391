"""The activation strategy on graphs by hand and on random ones, against document 3 read anew on dictionaries."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.activation_graphs import WORDS, TaggedGraph, activations, energy, spread, tagged_graphs
from tests.support.entity_graphs import cosines_of, index_of
from tests.support.graphs import CountingStore, PlainGraph, hand_index

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import MENTIONED_IN, RELATED_TO, SIMILAR_TO
from hopbench.retrieval.index import INDEX_VALUES, Batch, Index, Memo
from hopbench.retrieval.strategies.activation import Activation
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Chunk, Counters, Question, Ranking, Step

ASK = [
    Question("q1", "Which river flows by the guild?"),
    Question("q2", "Old music, stone music"),
    Question("q3", "of"),
]


def indexed(one: TaggedGraph, shuffle: int | None = None) -> Index:
    with tempfile.TemporaryDirectory() as folder:
        return index_of(one.tables(), Path(folder), cosines_of(one.graph.chunks), shuffle)


def asked(index: Index, strategy: Activation, questions: list[Question] = ASK) -> tuple[list[Ranking], Counters]:
    counters = Counters()
    return strategy.rank(Batch(index, questions), counters), counters


@given(one=tagged_graphs(), strategy=activations())
def test_paths_energies_and_ends_are_those_of_the_source_read_anew(one: TaggedGraph, strategy: Activation) -> None:
    index = indexed(one)
    batch, neighbours = Batch(index, ASK), one.neighbours(strategy)

    rankings, counters = asked(index, strategy)

    ends: Counter[str] = Counter()
    for ranking, initial in zip(rankings, strategy.initial(batch), strict=True):
        tags = index.tagger.tags(next(q.text for q in ASK if q.id == ranking.question_id), strategy.max_tags)
        expected = {}
        for seed, activation in initial[: strategy.seeds]:
            if activation > 0:
                paths = spread(neighbours, seed, activation, tags, strategy)
                expected |= paths
                ends.update([*paths.values(), *([] if "max_depth" in paths.values() else ["empty_frontier"])])
        found = {
            tuple(zip(path["nodes"], path["energies"], strict=True)): path["ended"] for path in ranking.notes["paths"]
        }
        assert {path: why for path, why in expected.items() if len(path) > 1} == found
        lengths = Counter(str(len(path) - 1) for path in expected)
        assert lengths == ranking.notes["path_lengths"]
        received: dict[str, float] = {}
        for path in expected:
            for node, value in path[1:]:
                if node in one.graph.chunks:
                    received[node] = max(received.get(node, 0.0), value)
        assert received == {h.chunk_id: h.components["energy"] for h in ranking.hits if "energy" in h.components}
    assert ends == counters.terminations


@given(one=tagged_graphs(), strategy=activations())
def test_seeds_rank_by_their_hybrid_score_and_nothing_of_the_initial_search_is_lost(
    one: TaggedGraph, strategy: Activation
) -> None:
    index = indexed(one)

    rankings, _ = asked(index, strategy)

    for ranking, initial in zip(rankings, strategy.initial(Batch(index, ASK)), strict=True):
        scores = {hit.chunk_id: hit.score for hit in ranking.hits}
        kept = initial if strategy.ranking == "blend" else initial[: strategy.seeds]
        assert {chunk for chunk, _ in kept} <= set(scores)
        assert [chunk for chunk, score in initial[: strategy.seeds] if score > 0] == ranking.seeds
        if strategy.ranking == "energy":
            assert {c: score for c, score in initial if c in ranking.seeds} == {c: scores[c] for c in ranking.seeds}
            for hit in ranking.hits:
                assert hit.score == (hit.path[-1].score if hit.path else hit.components["hybrid"])


@given(one=tagged_graphs(), trials=st.lists(activations(), min_size=2, max_size=4))
def test_trials_that_share_what_they_read_are_those_that_ran_alone(one: TaggedGraph, trials: list[Activation]) -> None:
    alone = indexed(one)
    floors = {("activation", "min_similarity"): 0.3, ("activation", "min_strength"): 0.0}
    together = replace(alone, floors=floors, memo=Memo(INDEX_VALUES))

    for trial in trials:
        (expected, cost), (found, shared_cost) = (asked(index, trial) for index in (alone, together))

        assert expected == found
        assert replace(cost, stage_seconds=Counter()) == replace(shared_cost, stage_seconds=Counter())
    assert [key for key in together.memo if isinstance(key, tuple) and key[0] == "activation edges"]  # they did share


@given(one=tagged_graphs(), strategy=activations(), seed=st.integers(0, 9))
def test_the_order_in_which_an_engine_gives_its_rows_changes_nothing(
    one: TaggedGraph, strategy: Activation, seed: int
) -> None:
    plain, shuffled = asked(indexed(one), strategy), asked(indexed(one, shuffle=seed), strategy)

    assert [(r.hits, r.seeds, r.notes) for r in plain[0]] == [(r.hits, r.seeds, r.notes) for r in shuffled[0]]
    assert plain[1] == shuffled[1]


@given(one=tagged_graphs(), strategy=activations(), tags=st.sets(st.sampled_from(WORDS)))
def test_the_query_to_paste_computes_the_same_energies(one: TaggedGraph, strategy: Activation, tags: set[str]) -> None:
    neighbours = one.neighbours(strategy)
    frontier = [{"node_id": node, "activation": 0.9 / (1 + place)} for place, node in enumerate(sorted(neighbours))]
    visited = sorted(neighbours)[::3]

    records = indexed(one).store.read(
        cypher.ACTIVATION_PASTE,
        frontier=frontier,
        visited_ids=visited,
        query_tags=sorted(tags),
        query_tags_count=len(tags),
        tag_sim_floor=strategy.tag_floor,
        min_threshold=0.005,
        min_weight=strategy.min_weight,
        min_similarity=strategy.min_similarity if strategy.use_similar else 2.0,
        min_strength=strategy.min_strength if strategy.use_related else 2.0,
        min_mention=0.0 if strategy.use_mentioned else 2.0,
    )

    expected = {
        (row["node_id"], target): energy(neighbours[row["node_id"]], row["activation"], target, sorted(tags), strategy)
        for row in frontier
        for target in neighbours[row["node_id"]]
        if target not in visited
    }
    found = {(record["parent_id"], record["neighbor_id"]): record["transfer_energy"] for record in records}
    assert len(records) == len(found)
    either = {pair for pair, value in expected.items() if abs(value - 0.005) <= 1e-9}  # the query rounds nothing
    assert {pair for pair, value in expected.items() if value > 0.005} - either == found.keys() - either
    assert all(abs(expected[pair] - value) <= 1e-9 for pair, value in found.items())


def hand_made(folder: Path) -> Index:
    """One seed, c0 (R = 1: best by vector, nothing by BM25), whose paths end in each way.

    c0 –1.0– c1 –1.0– c2 –1.0– c3: c1's neighbours beside it are far weaker. c0 –.9– c4: only the way back.
    """
    graph = PlainGraph(
        tuple(f"c{number}" for number in range(7)),
        {"e:0": frozenset({"c0"}), "e:1": frozenset({"c6"})},
        {("e:0", "e:1"): 0.6},
        {("c0", "c1"): 1.0, ("c1", "c2"): 1.0, ("c2", "c3"): 1.0, ("c0", "c4"): 0.9, ("c3", "c5"): 0.71},
    )
    cosines = {"c0": 0.9, **{f"c{number}": 0.1 for number in range(1, 7)}}
    return hand_index(graph.tables(), folder, cosines)


def test_the_terminations_of_a_graph_by_hand(tmp_path: Path) -> None:
    # R = .7 for c0 (vector alone), tags floor .15 for every edge: degree of c0 is 3, so c1 gets .7/√3 · .15 = .0606,
    # e:0 as much (weight 1), c4 .9 of it = .0546. c4 has only the way back: dead end. c1 (degree 2) passes
    # .0606/√2 · .15 = .0064 to c2, which is at depth 2 of 2: maximum depth. e:0 (degree 2) passes .6 of .0064 = .0039
    # on: below the threshold.
    (ranking,), counters = asked(hand_made(tmp_path), Activation(seeds=1, max_depth=2, fill=False), ASK[:1])

    assert {"max_depth": 1, "dead_end": 1, "below_threshold": 1} == counters.terminations
    assert {"1": 2, "2": 1} == ranking.notes["path_lengths"]
    assert [
        ("c0", "seed", 0.7, ()),
        ("c1", "graph", 0.060621778, (Step(SIMILAR_TO, "c0", "c1", 1.0, 0.060621778),)),
        ("c4", "graph", 0.0545596, (Step(SIMILAR_TO, "c0", "c4", 0.9, 0.0545596),)),
        (
            "c2",
            "graph",
            0.006429911,
            (Step(SIMILAR_TO, "c0", "c1", 1.0, 0.060621778), Step(SIMILAR_TO, "c1", "c2", 1.0, 0.006429911)),
        ),
    ] == [(hit.chunk_id, hit.origin, hit.score, hit.path) for hit in ranking.hits]
    assert 2 == counters.round_trips
    # Arrivals are c1, c4, e:0 and c2; three of them are chunks.
    assert {"found": 4, "unique": 4, "kept": 3} == {name: ranking.notes[name] for name in ("found", "unique", "kept")}
    by_end = {path["nodes"][-1]: path for path in ranking.notes["paths"]}  # type: ignore[attr-defined]
    assert (["c0", "c4"], [0.9], [[]]) == tuple(by_end["c4"][name] for name in ("nodes", "weights", "tags"))


def test_paths_that_all_end_early_leave_an_empty_frontier(tmp_path: Path) -> None:
    # One level more: c2 (degree 2) would pass .0064/√2 · .15 = .0007 to c3.
    (_,), counters = asked(hand_made(tmp_path), Activation(seeds=1, max_depth=3, fill=False), ASK[:1])

    assert {"dead_end": 1, "below_threshold": 2, "empty_frontier": 1} == counters.terminations
    assert 3 == counters.round_trips


def test_a_seed_that_the_graph_does_not_have_is_counted_and_kept(tmp_path: Path) -> None:
    index = hand_made(tmp_path)
    missing = Chunk("c9", "c9", 0, "", "which river flows by the guild")
    wider = Index.build([*index.chunks, missing], index.store, index.embedder)

    (ranking,), counters = asked(wider, Activation(seeds=1, fill=False), ASK[:1])

    assert {"seed_not_found": 1} == counters.terminations
    assert ["c9"] == [hit.chunk_id for hit in ranking.hits]
    assert {"0": 1} == ranking.notes["path_lengths"]


def small(
    folder: Path,
    similar: dict[tuple[str, str], float],
    mentions: dict[str, frozenset[str]] | None = None,
    weights: dict[tuple[str, str], float] | None = None,
    cosines: tuple[float, ...] = (0.9, 0.1, 0.1, 0.1),
) -> Index:
    """c0..c3, of which c0 has R = .7 (best by vector, nothing by BM25)."""
    chunks = tuple(f"c{number}" for number in range(len(cosines)))
    one = TaggedGraph(PlainGraph(chunks, mentions or {}, {}, similar), {}, weights or {})
    return hand_index(one.tables(), folder, dict(zip(chunks, cosines, strict=True)))


# No question tags: every similarity is 1, so that energies are R·w/√d.
PLAIN = Activation(seeds=1, max_tags=0, fill=False)


def test_an_edge_weaker_than_the_least_weight_passes_as_if_it_had_it(tmp_path: Path) -> None:
    index = small(tmp_path, {}, {"e:0": frozenset({"c0"})}, {("c0", "e:0"): 0.1})

    (ranking,), _ = asked(index, replace(PLAIN, min_activation=0.1), ASK[:1])

    assert [[0.7, 0.175]] == [path["energies"] for path in ranking.notes["paths"]]  # .7 · .25; .7 · .1 is under .1


def test_an_energy_just_above_the_threshold_passes(tmp_path: Path) -> None:
    index = small(tmp_path, {("c0", "c1"): 0.8})

    (above,), _ = asked(index, replace(PLAIN, min_activation=0.5599), ASK[:1])  # T = .7 · .8 = .56
    (at,), _ = asked(index, replace(PLAIN, min_activation=0.56), ASK[:1])

    assert [[0.7, 0.56]] == [path["energies"] for path in above.notes["paths"]]
    assert [] == at.notes["paths"]


def test_a_node_that_two_seeds_reach_is_read_for_the_stronger(tmp_path: Path) -> None:
    # R = .7 for c0 and .7·(.5−.1)/.8 = .35 for c1; both give all to e:0, whose degree is 3: .7/√3 = .404 goes on to
    # c2, .35/√3 = .202 would not.
    index = small(tmp_path, {}, {"e:0": frozenset({"c0", "c1", "c2"})}, cosines=(0.9, 0.5, 0.1, 0.1))

    (ranking,), _ = asked(index, replace(PLAIN, seeds=2, min_activation=0.3), ASK[:1])

    paths = {tuple(path["nodes"]): path["ended"] for path in ranking.notes["paths"]}
    assert {("c0", "e:0", "c1"): "dead_end", ("c0", "e:0", "c2"): "dead_end", ("c1", "e:0"): "below_threshold"} == paths


def test_a_node_too_weak_for_any_edge_is_a_dead_end_when_all_its_neighbours_are_visited(tmp_path: Path) -> None:
    # A triangle: c0 gives .7/√2 = .495 to c1 and c2; each would pass .495/√2 = .35 on, but only to the other two.
    index = small(tmp_path, {("c0", "c1"): 1.0, ("c0", "c2"): 1.0, ("c1", "c2"): 1.0})

    _, counters = asked(index, replace(PLAIN, min_activation=0.4), ASK[:1])

    assert {"dead_end": 2, "empty_frontier": 1} == counters.terminations


@pytest.mark.parametrize(
    ("change", "kind"), [("use_similar", SIMILAR_TO), ("use_related", RELATED_TO), ("use_mentioned", MENTIONED_IN)]
)
def test_an_edge_type_that_is_off_is_not_followed(tmp_path: Path, change: str, kind: str) -> None:
    index = hand_made(tmp_path)
    wide = Activation(seeds=1, min_activation=0.0, fill=False)

    def kinds(strategy: Activation) -> set[str]:
        (ranking,), _ = asked(index, strategy, ASK[:1])
        return {edge for path in ranking.notes["paths"] for edge in path["edges"]}

    assert kind in kinds(wide)
    assert kind not in kinds(replace(wide, **{change: False}))


def test_edges_below_the_threshold_do_not_count_in_the_degree(tmp_path: Path) -> None:
    chunks = ("c0", "c1", "c2", "c3")
    cosines = {"c0": 0.9, "c1": 0.1, "c2": 0.1, "c3": 0.1}

    def energy_of_c1(weak: dict[tuple[str, str], float], folder: str, **parameters: float) -> float:
        graph = PlainGraph(chunks, {}, {}, {("c0", "c1"): 0.8, **weak})
        index = hand_index(graph.tables(), tmp_path / folder, cosines)
        (ranking,), _ = asked(index, Activation(seeds=1, fill=False, **parameters), ASK[:1])
        return next(hit.score for hit in ranking.hits if hit.chunk_id == "c1")

    floor = {("c0", "c2"): 0.4, ("c0", "c3"): 0.6}
    assert 0.084 == energy_of_c1({}, "bare")  # .7 · .8/√1 · .15
    assert 0.084 == energy_of_c1(floor, "floor")
    assert round(0.084 / 3**0.5, 9) == energy_of_c1(floor, "all", min_similarity=0.3)


def test_a_level_is_one_round_trip_for_all_questions(tmp_path: Path) -> None:
    index = hand_made(tmp_path)
    many = [Question(f"q{number}", f"river {number}?") for number in range(20)]

    _, counters = asked(index, Activation(), many)

    assert isinstance(index.store, CountingStore)
    assert [cypher.ACTIVATION_HOP] * counters.round_trips == index.store.queries
    assert 3 == counters.round_trips


def test_rrf_is_refused_with_the_reason() -> None:
    with pytest.raises(ParameterError, match=r"activation\.fusion = 'rrf' is refused.*use 'weighted'"):
        Activation(fusion="rrf")


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("max_depth", 6, "1..5"),
        ("min_activation", -0.1, "0..1"),
        ("seeds", 0, "1..20"),
        ("ranking", "x", "energy, blend"),
    ],
)
def test_a_value_outside_its_bounds_is_refused(name: str, value: object, bounds: str) -> None:
    with pytest.raises(ParameterError, match=rf"activation\.{name} = {value!r} .*{bounds}"):
        Activation(**{name: value})  # type: ignore[arg-type]
