"""Communities of hand-made and random graphs: how they are found, told, embedded and kept."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.support.entity_graphs import index_of, with_names
from tests.support.graphs import PlainGraph, graph_tables, plain_graphs

from hopbench.retrieval.graph import cypher
from hopbench.retrieval.graph.schema import RELATED_TO, GraphTables
from hopbench.retrieval.index import Batch, Index, Services
from hopbench.retrieval.index.cache import IndexCache
from hopbench.retrieval.question.linking import linker
from hopbench.retrieval.strategies._dual_level_communities import (
    Communities,
    at_least,
    communities,
    descriptions,
    partition,
)
from hopbench.retrieval.traversal.adjacency import adjacency
from hopbench.retrieval.types import Counters, Question

ASKED = [Question("q", "anything")]


def matrix(size: int, edges: dict[tuple[int, int], float]) -> sparse.csr_array:
    """Symmetric strengths; `edges` holds each pair once."""
    rows, columns = [a for a, _ in edges] + [b for _, b in edges], [b for _, b in edges] + [a for a, _ in edges]
    return sparse.csr_array((list(edges.values()) * 2, (rows, columns)), shape=(size, size))


def found(related: sparse.csr_array, resolution: float = 1.0, max_size: int = 10) -> list[list[int]]:
    return [rows.tolist() for rows in partition(related, resolution, max_size)]


def clique(rows: Sequence[int], strength: float = 1.0) -> dict[tuple[int, int], float]:
    return {(a, b): strength for a in rows for b in rows if a < b}


def test_dense_parts_are_communities_and_the_lonely_belong_to_none() -> None:
    """Two triangles, a weak bridge: modularity 2·(3/6.1 − (6.1/12.2)²) = .48 apart and 0 together; 3 is alone."""
    related = matrix(7, {**clique([0, 1, 2]), **clique([4, 5, 6]), (2, 4): 0.1})

    assert [[0, 1, 2], [4, 5, 6]] == found(related)


def test_strength_counts() -> None:
    """A square whose opposite sides are strong: each strong pair is a community."""
    related = matrix(4, {(0, 3): 1.0, (1, 2): 1.0, (0, 1): 0.05, (2, 3): 0.05})

    assert [[0, 3], [1, 2]] == found(related)


def test_what_is_too_large_is_divided_again() -> None:
    """Eight triangles in a ring: few parts at resolution .1, the triangles when at most three may stay together."""
    triangles = [[3 * n, 3 * n + 1, 3 * n + 2] for n in range(8)]
    edges = {pair: 1.0 for rows in triangles for pair in clique(rows)}
    edges |= {tuple(sorted((3 * n + 2, (3 * n + 3) % 24))): 0.3 for n in range(8)}  # type: ignore[misc]
    related = matrix(24, edges)

    whole = found(related, resolution=0.01, max_size=100)
    assert [list(range(24))] == whole
    assert triangles == found(related, resolution=1.0, max_size=3)


def test_what_leiden_cannot_divide_stays_whole() -> None:
    assert [[0, 1, 2, 3, 4, 5]] == found(matrix(6, clique(range(6))), max_size=2)


def test_a_graph_without_relations_has_no_community() -> None:
    assert [] == found(sparse.csr_array((3, 3)))
    assert [] == found(sparse.csr_array((0, 0)))


def test_only_relations_of_enough_strength_connect() -> None:
    related = matrix(4, {(0, 1): 0.9, (1, 2): 0.5, (2, 3): 0.9})

    assert {(0, 1): 0.9, (2, 3): 0.9} == dict(sparse.triu(at_least(related, 0.6)).todok().items())
    assert [[0, 1], [2, 3]] == found(at_least(related, 0.6))


@settings(deadline=None, max_examples=40)
@given(plain_graphs(), st.floats(0.1, 5.0), st.integers(2, 6))
def test_communities_divide_the_related_entities(graph: PlainGraph, resolution: float, max_size: int) -> None:
    entities = sorted(graph.mentions)
    row = {entity: place for place, entity in enumerate(entities)}
    related = matrix(len(entities), {(row[a], row[b]): strength for (a, b), strength in graph.related.items()})
    parts = found(related, resolution, max_size)

    connected = {row[end] for pair in graph.related for end in pair}
    assert sorted(connected) == sorted(place for part in parts for place in part)
    assert parts == sorted(parts)
    assert all(part == sorted(part) for part in parts)
    assert parts == found(related, resolution, max_size)


def world() -> GraphTables:
    """Entities a, b, c related in one community, d and e in another; each chunk names what stands beside it."""
    mentions = {"c1": "abc", "c2": "ad", "c3": "de", "c4": ""}
    tables = graph_tables(
        {chunk: f"text of {chunk}" for chunk in mentions},
        entities=[f"e:{name}" for name in "abcde"],
        mentions=[(f"e:{name}", chunk) for chunk, names in mentions.items() for name in names],
        related=[("e:a", "e:b", 0.9), ("e:a", "e:c", 0.5), ("e:b", "e:c", 0.3), ("e:d", "e:e", 0.8)],
    )
    tables = with_names(tables, {f"e:{name}": name.upper() for name in "abcde"})
    tables.edges[RELATED_TO]["description"] = ["A met B.", "A met C.", "", "D met E."]
    return tables


def names(known: Communities) -> list[list[str]]:
    return [known.names_of(number) for number in range(len(known))]


def read(index: Index, counters: Counters | None = None, **settings: float) -> Communities:
    batch, spent = Batch(index, ASKED), counters or Counters()
    worded = descriptions(batch, spent)
    return communities(batch, spent, adjacency(batch, spent), linker(batch, spent), worded, **settings)  # type: ignore[arg-type]


class Recorder:
    """An embedder that notes the texts it is given."""

    def __init__(self, index: Index) -> None:
        self.inner, self.texts = index.embedder, []  # type: ignore[var-annotated]

    def embed(self, texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
        self.texts.append(list(texts))
        return self.inner.embed(texts)


def test_a_community_is_told_by_its_strongest_names_and_relations(tmp_path: Path) -> None:
    """Strengths inside: A .9 + .5, B .9 + .3, C .5 + .3. Relations by strength; one has no wording."""
    index = index_of(world(), tmp_path)
    index.embedder = recorder = Recorder(index)  # type: ignore[assignment]
    known = read(index)

    assert [["A. B. C. A met B.. A met C.. B related C", "D. E. D met E."]] == recorder.texts
    assert [["A", "B", "C"], ["D", "E"]] == names(known)
    assert [[0, 1, 2], [3, 4]] == [rows.tolist() for rows in known.members]
    # c1 mentions three of the first, c2 one of each, c3 two of the second, c4 nobody.
    assert [[3, 1, 0, 0], [0, 1, 2, 0]] == known.chunks.toarray().tolist()
    assert 2 == len(known) == len(known.vectors)


def test_a_summary_takes_the_place_of_the_text(tmp_path: Path) -> None:
    index = index_of(world(), tmp_path)
    index.embedder = recorder = Recorder(index)  # type: ignore[assignment]

    def summarise(counters: Counters, texts: Sequence[str]) -> list[str]:
        counters.llm_calls += len(texts)
        return [text[:1] for text in texts]

    index.services = Services(community_summaries=summarise)
    counters = Counters()
    read(index, counters)

    assert [["A", "D"]] == recorder.texts
    assert 2 == counters.llm_calls


def test_they_are_found_once_and_their_reading_is_charged_each_time(tmp_path: Path) -> None:
    index = index_of(world(), tmp_path)
    first, second = Counters(), Counters()

    assert read(index, first) is read(index, second)
    assert read(index) is not read(index, resolution=2.0)
    assert 1 == index.store.queries.count(cypher.DESCRIPTIONS)  # type: ignore[attr-defined]
    # The adjacency's 7 mentions and 4 relations, 5 + 4 names of entities and titles, 5 + 4 descriptions.
    assert (3, 11 + 9 + 9) == (first.round_trips, first.rows) == (second.round_trips, second.rows)


@pytest.mark.parametrize("kind", ["nothing", "entities alone"])
def test_poor_graphs_have_none(tmp_path: Path, kind: str) -> None:
    entities = ["e:a"] if kind == "entities alone" else []
    tables = graph_tables({"c1": "text"}, entities=entities, mentions=[(entity, "c1") for entity in entities])

    assert 0 == len(read(index_of(tables, tmp_path)))


@settings(deadline=None, max_examples=20)
@given(plain_graphs(), st.integers(0, 2**16))
def test_the_order_of_an_engine_s_rows_changes_nothing(graph: PlainGraph, shuffle: int) -> None:
    told = []
    for order in (None, shuffle):
        with tempfile.TemporaryDirectory() as folder:
            known = read(index_of(graph.tables(), Path(folder), shuffle=order))
            told.append(([rows.tolist() for rows in known.members], names(known), known.chunks.toarray().tolist()))

    assert told[0] == told[1]


def test_communities_come_back_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found once for a graph and a setting; without communities too."""
    tables = {"some": world(), "none": graph_tables({"c1": "text"}, entities=[], mentions=[])}
    for name, made in tables.items():
        kept = IndexCache(tmp_path / f"kept-{name}"), "stamp"
        monkeypatch.setattr(Index, "kept_of_graph", lambda _, kept=kept: kept)
        first = read(index_of(made, tmp_path / "first" / name))
        with monkeypatch.context() as patch:
            patch.setattr("hopbench.retrieval.strategies._dual_level_communities.partition", None)  # must not be asked
            again = read(index_of(made, tmp_path / "again" / name))

        for known in (first, again):
            assert [rows.tolist() for rows in first.members] == [rows.tolist() for rows in known.members]
            assert names(first) == names(known)
            assert first.chunks.toarray().tolist() == known.chunks.toarray().tolist()
            assert first.vectors.tolist() == known.vectors.tolist()
            assert first.of_entity.tolist() == known.of_entity.tolist()


def test_summaries_are_made_anew_for_each_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They depend on a model, and their cost is counted."""
    monkeypatch.setattr(Index, "kept_of_graph", lambda _: (IndexCache(tmp_path / "kept"), "stamp"))
    asked: list[int] = []

    def summarise(_: Counters, texts: Sequence[str]) -> Sequence[str]:
        asked.append(len(texts))
        return texts

    for part in ("first", "again"):
        index = index_of(world(), tmp_path / part)
        index.services = Services(community_summaries=summarise)
        read(index)
    assert [2, 2] == asked
