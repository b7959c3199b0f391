"""Document 2's expansion queries on graphs by hand and on random ones, against a plain reading of the document."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.entity_graphs import asked, index_of, neighbours_of, with_names
from tests.support.graphs import (
    ASKED,
    WORLD,
    CountingStore,
    PlainGraph,
    WordEmbedder,
    built_index,
    graph_tables,
    plain_graphs,
    plan_of,
)

from hopbench.retrieval.embedding.base import Vectors
from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO
from hopbench.retrieval.index import Batch, Index
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies.expansion_queries import ExpansionQueries, proximity
from hopbench.retrieval.support.errors import ParameterError
from hopbench.retrieval.types import Counters, Question, Ranking, Step

DIALOGUE = "How do I handle FastAPI database connections?"


@dataclass(frozen=True)
class NotedEmbedder(WordEmbedder):
    """A bag of words that notes what it is asked to embed."""

    calls: list[list[str]] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Note and embed."""
        self.calls.append(list(texts))
        return super().embed(texts)


def ranked(index: Index, questions: Sequence[Question], **parameters: object) -> tuple[list[Ranking], Counters]:
    counters = Counters()
    strategy = ExpansionQueries(**{"fill": False, **parameters})  # type: ignore[arg-type]
    return strategy.rank(Batch(index, questions), counters), counters


def frameworks(folder: Path) -> Index:
    """The source's example: FastAPI – Pydantic, FastAPI – SQLAlchemy; uvicorn one hop behind Pydantic."""
    chunks = {
        "c1": "FastAPI handles database connections",
        "c2": "Pydantic validates for FastAPI",
        "c3": "SQLAlchemy opens database sessions",
        "c4": "uvicorn serves",
        "c5": "nothing of all that",
    }
    names = {"e:fastapi": "FastAPI", "e:pydantic": "Pydantic", "e:sqlalchemy": "SQLAlchemy", "e:uvicorn": "uvicorn"}
    related = [
        ("e:fastapi", "e:pydantic", 0.6),
        ("e:fastapi", "e:sqlalchemy", 0.8),
        ("e:pydantic", "e:uvicorn", 0.5),
        ("e:sqlalchemy", "e:pydantic", 0.9),
    ]
    index = index_of(with_names(graph_tables(chunks, entities=sorted(names), related=related), names), folder)
    return Index.build(index.chunks, index.store, NotedEmbedder())


@pytest.mark.parametrize(("hops", "expected"), [(1, 0.5), (2, 1 / 3), (3, 0.25)])
def test_proximity_is_one_over_one_plus_the_hops(hops: int, expected: float) -> None:
    assert expected == pytest.approx(proximity(hops))


def test_the_source_s_example_gives_its_queries_nearest_first(tmp_path: Path) -> None:
    # One hop: SQLAlchemy (.8) before Pydantic (.6), both at 1/2; uvicorn two hops away at 1/3; then the name alone.
    (ranking,), _ = ranked(frameworks(tmp_path), [Question("q", DIALOGUE)])

    assert ["e:fastapi"] == ranking.notes["entities"]
    assert ["FastAPI SQLAlchemy", "FastAPI Pydantic", "FastAPI uvicorn", "FastAPI"] == ranking.notes["queries"]


def test_a_hit_tells_its_query_and_the_edges_that_made_it(tmp_path: Path) -> None:
    (ranking,), _ = ranked(frameworks(tmp_path), [Question("q", DIALOGUE)], per_query=1)

    hits = {hit.chunk_id: hit for hit in ranking.hits}
    assert {"c1", "c2", "c3", "c4", "c5"} == set(hits)
    assert "FastAPI uvicorn" == ranking.notes["query_of"]["c4"]
    one = hits["c4"]
    assert "graph" == one.origin
    assert (
        Step(RELATED_TO, "e:fastapi", "e:pydantic", 0.6, 0.5),
        Step(RELATED_TO, "e:pydantic", "e:uvicorn", 0.5, round(1 / 3, 9)),
        Step("QUERY", "e:uvicorn", "c4", one.components["cosine"], one.components["cosine"]),
    ) == one.path
    assert "seed" == hits["c5"].origin
    assert () == hits["c5"].path


def test_scores_are_the_reciprocal_rank_fusion_of_both_rankings(tmp_path: Path) -> None:
    index = frameworks(tmp_path)
    (ranking,), _ = ranked(index, [Question("q", DIALOGUE)], per_query=1)

    vector = [chunk for chunk, _ in Batch(index, [Question("q", DIALOGUE)]).vector_rankings[0]]
    graph = list(ranking.notes["query_of"])
    assert "c3" == graph[0]  # found by the first query
    for hit in ranking.hits:
        parts = [1 / (60 + 1 + each.index(hit.chunk_id)) for each in (vector, graph) if hit.chunk_id in each]
        assert pytest.approx(sum(parts), abs=1e-9) == hit.score


def test_two_recognised_neighbours_are_one_pair(tmp_path: Path) -> None:
    # "Pydantic SQLAlchemy" and "SQLAlchemy Pydantic" (.9) are one pair: the alphabetically first text stands.
    (ranking,), _ = ranked(frameworks(tmp_path), [Question("q", "Does Pydantic know SQLAlchemy?")], depth=1)

    assert [
        "Pydantic SQLAlchemy",  # .9
        "SQLAlchemy FastAPI",  # .8
        "Pydantic FastAPI",  # .6
        "Pydantic uvicorn",  # .5
        "Pydantic",
        "SQLAlchemy",
    ] == ranking.notes["queries"]


def test_the_first_pairs_are_kept_and_farther_ones_not_even_read(tmp_path: Path) -> None:
    index = frameworks(tmp_path)
    (ranking,), counters = ranked(index, [Question("q", DIALOGUE)], max_queries=2, seed_queries=False)

    assert ["FastAPI SQLAlchemy", "FastAPI Pydantic"] == ranking.notes["queries"]
    assert 2 == counters.round_trips  # the names and one hop


def test_weak_edges_are_not_followed(tmp_path: Path) -> None:
    index = frameworks(tmp_path)

    (strong,), _ = ranked(index, [Question("q", DIALOGUE)], min_strength=0.7)
    (alone,), _ = ranked(index, [Question("q", DIALOGUE)], use_related=False)

    # Pydantic is now reached over SQLAlchemy: .8 · .9 at two hops.
    assert ["FastAPI SQLAlchemy", "FastAPI Pydantic", "FastAPI"] == strong.notes["queries"]
    assert ["FastAPI"] == alone.notes["queries"]


def test_all_queries_of_a_batch_are_embedded_in_one_call_each_once(tmp_path: Path) -> None:
    index = frameworks(tmp_path)
    embedder = index.embedder
    assert isinstance(embedder, NotedEmbedder)
    questions = [Question("q1", DIALOGUE), Question("q2", "Is FastAPI fast?"), Question("q3", "Why Pydantic?")]
    embedder.calls.clear()

    ranked(index, questions)

    of_questions, of_queries = sorted(embedder.calls, key=lambda call: call[0].endswith("?"), reverse=True)
    assert [question.text for question in questions] == of_questions
    assert len(of_queries) == len(set(of_queries))
    assert {"FastAPI SQLAlchemy", "FastAPI", "Pydantic SQLAlchemy", "Pydantic"} <= set(of_queries)


def test_a_hop_is_one_round_trip_for_all_questions(tmp_path: Path) -> None:
    index = frameworks(tmp_path)

    _, counters = ranked(
        index, [Question(f"q{n}", f"Is {name} fast?") for n, name in enumerate(["FastAPI", "Pydantic"])]
    )

    assert isinstance(index.store, CountingStore)
    assert [cypher.NAMES, cypher.ENTITY_NEIGHBOURS, cypher.ENTITY_NEIGHBOURS] == index.store.queries
    assert 3 == counters.round_trips


@pytest.mark.parametrize("text", ["what flows where?", "Zyzzyva?"])
def test_without_a_recognised_entity_the_vector_ranking_stands_and_the_notes_say_so(tmp_path: Path, text: str) -> None:
    index = built_index(plan_of(WORLD), tmp_path)

    (ranking,), _ = ranked(index, [Question("q", text)])

    expected = Batch(index, [Question("q", text)]).vector_rankings[0]
    assert list(expected) == [(hit.chunk_id, hit.score) for hit in ranking.hits]
    assert "no entity" in str(ranking.notes["fallback"])
    assert {"seed"} == {hit.origin for hit in ranking.hits}


def test_an_empty_graph_gives_the_vector_ranking(tmp_path: Path) -> None:
    index = index_of(graph_tables({"c1": "Ed Wood", "c2": "Tim Burton"}), tmp_path)

    (ranking,), _ = ranked(index, ASKED[:1])

    assert ["c1", "c2"] == [hit.chunk_id for hit in ranking.hits]
    assert "fallback" in ranking.notes


def pairs_of(graph: PlainGraph, seeds: Sequence[str], depth: int, least: float, limit: int) -> list[str]:
    """The "seed neighbour" texts of the document, by walks over dictionaries; an entity's name is its id."""
    around = neighbours_of(graph)
    found: list[tuple[int, float, str, frozenset[str]]] = []
    for seed in seeds:
        best = {seed: 1.0}
        layer = {seed: 1.0}
        for hops in range(1, depth + 1):
            routes: dict[str, float] = {}
            for node, carried in layer.items():
                for target, strength in around[node].items():
                    if target not in best and strength >= least:
                        routes[target] = max(routes.get(target, 0.0), round(carried * strength, 9))
            found += [(hops, -value, f"{seed} {target}", frozenset((seed, target))) for target, value in routes.items()]
            best |= routes
            layer = routes
    texts: dict[frozenset[str], str] = {}
    for _, _, text, pair in sorted(found, key=lambda one: one[:3]):
        texts.setdefault(pair, text)
    return list(texts.values())[:limit]


PARAMETERS = st.fixed_dictionaries(
    {
        "depth": st.integers(1, 3),
        "min_strength": st.sampled_from([0.0, 0.5, 0.75]),
        "max_queries": st.sampled_from([0, 1, 3, 32]),
        "per_query": st.integers(1, 3),
        "order": st.sampled_from(["proximity", "cosine"]),
        "initial_ranking": st.sampled_from(["vector", "rrf"]),
    }
)


def words_index(graph: PlainGraph, shuffle: int | None = None) -> Index:
    with tempfile.TemporaryDirectory() as folder:
        index = index_of(graph.tables(), Path(folder), shuffle=shuffle)
        return Index.build(index.chunks, index.store, WordEmbedder())


@settings(max_examples=30)
@given(graph=plain_graphs(), data=st.data(), parameters=PARAMETERS)
def test_queries_are_those_of_the_document_read_anew(
    graph: PlainGraph, data: st.DataObject, parameters: dict[str, object]
) -> None:
    index, questions = words_index(graph), data.draw(asked(graph))
    reader = linker(Batch(index, questions), Counters())

    rankings, counters = ranked(index, questions, **parameters)

    depth, least, limit = parameters["depth"], parameters["min_strength"], parameters["max_queries"]
    for question, ranking in zip(questions, rankings, strict=True):
        seeds = list(dict.fromkeys(link.entity for link in reader.links(question.text)))
        assert seeds == ranking.notes["entities"]
        expected = [*pairs_of(graph, seeds, depth, least, limit), *seeds]  # type: ignore[arg-type]
        assert expected == ranking.notes.get("queries", [])
    assert counters.round_trips <= 1 + depth  # type: ignore[operator]


@settings(max_examples=30)
@given(graph=plain_graphs(), data=st.data(), parameters=PARAMETERS)
def test_nothing_of_the_initial_ranking_is_lost_and_every_path_is_real(
    graph: PlainGraph, data: st.DataObject, parameters: dict[str, object]
) -> None:
    index, questions = words_index(graph), data.draw(asked(graph))
    strategy = ExpansionQueries(fill=False, **parameters)  # type: ignore[arg-type]
    batch, around = Batch(index, questions), neighbours_of(graph)

    for ranking, initial in zip(strategy.rank(batch, Counters()), strategy.initial(batch), strict=True):
        assert {chunk for chunk, _ in initial} <= {hit.chunk_id for hit in ranking.hits}
        for hit in ranking.hits:
            assert (hit.origin == "graph") == bool(hit.path) == (hit.chunk_id in ranking.notes.get("query_of", {}))
            for step in hit.path[:-1]:
                assert around[step.source][step.target] == step.weight


@settings(max_examples=30)
@given(graph=plain_graphs(), data=st.data(), parameters=PARAMETERS, seed=st.integers(0, 9))
def test_the_order_in_which_an_engine_gives_its_rows_changes_nothing(
    graph: PlainGraph, data: st.DataObject, parameters: dict[str, object], seed: int
) -> None:
    questions = data.draw(asked(graph))

    plain, _ = ranked(words_index(graph), questions, **parameters)
    shuffled, _ = ranked(words_index(graph, shuffle=seed), questions, **parameters)

    assert [(r.hits, r.seeds, r.notes) for r in plain] == [(r.hits, r.seeds, r.notes) for r in shuffled]


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("depth", 4, "1..3"),
        ("per_query", 0, "1..20"),
        ("max_queries", 201, "0..200"),
        ("order", "x", "proximity, cosine"),
    ],
)
def test_a_value_outside_its_bounds_is_refused(name: str, value: object, bounds: str) -> None:
    with pytest.raises(ParameterError, match=rf"expansion_queries\.{name} = {value!r} .*{bounds}"):
        ExpansionQueries(**{name: value})  # type: ignore[arg-type]
