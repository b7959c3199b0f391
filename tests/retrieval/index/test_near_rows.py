"""Which rows are searched by cells, and that they are put into cells once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.retrieval.search.test_approximate import QUESTIONS, VECTORS, clustered, same
from tests.support.graphs import graph_tables, hand_index

from hopbench.retrieval.index import APPROXIMATE, EXACT, Index, Queries, nearest_rows, spread
from hopbench.retrieval.index import index as near_rows
from hopbench.retrieval.search.exact import dense_top


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return hand_index(graph_tables({"c1": "one", "c2": "two"}), tmp_path, {"c1": 0.5, "c2": 0.4})


def never() -> Queries:
    raise AssertionError("nothing is put into cells here")


@pytest.mark.parametrize(("search", "least"), [(EXACT, 1), (APPROXIMATE, len(VECTORS) + 1), ("neo4j", 1)])
def test_few_rows_and_those_of_an_exact_index_are_all_looked_at(
    index: Index, monkeypatch: pytest.MonkeyPatch, search: str, least: int
) -> None:
    monkeypatch.setattr(near_rows, "MIN_ROWS", least)
    index.search = search
    assert same(nearest_rows(index, "names", VECTORS, never, Queries(QUESTIONS), 20), dense_top(QUESTIONS, VECTORS, 20))


def test_many_rows_are_put_into_cells_once(
    index: Index, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(near_rows, "MIN_ROWS", 1)
    index.search, made = APPROXIMATE, []

    def asking() -> Queries:
        made.append(1)
        return Queries(clustered(400, seed=2))

    first = nearest_rows(index, "names", VECTORS, asking, Queries(QUESTIONS), 20)
    assert same(nearest_rows(index, "names", VECTORS, asking, Queries(QUESTIONS[:5]), 20), first[:5])
    assert [1] == made
    assert "search of names is approximate (cells): recall" in capsys.readouterr().err
    exact = dense_top(QUESTIONS, VECTORS, 20)
    assert 0.95 < np.mean([np.isin(b.rows, a.rows).mean() for a, b in zip(first, exact, strict=True)])


def test_a_sample_is_spread_over_the_rows() -> None:
    assert spread(VECTORS, 3).tolist() == VECTORS[[0, 1000, 2000]].tolist()
    assert spread(VECTORS[:2], 3).tolist() == VECTORS[:2].tolist()
