"""Which corpora are searched by the graph of near chunks, and that a trial says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.graphs import ASKED
from tests.support.sweeps import write_benchmark

from hopbench.flows.graph.build import built_graph, open_index
from hopbench.flows.orchestration.steps import plain_steps
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.retrieval.graph.construction import plan as settings
from hopbench.retrieval.index import APPROXIMATE, EXACT, Batch, Index
from hopbench.retrieval.index import index as near_rows
from hopbench.retrieval.search.approximate import GRAPH
from hopbench.retrieval.search.cells import CellSearch
from hopbench.retrieval.strategies.registry import make
from hopbench.retrieval.support.errors import InputError, UnknownNameError
from hopbench.retrieval.types import Counters, Question

QUESTIONS = [Question("q1", "Who directed the film?")]


def opened(tmp_path: Path, **flags: str) -> tuple[GraphOptions, Index]:
    place = tmp_path / "tiny"
    if not place.exists():
        write_benchmark(place)
    options = GraphOptions(dataset=str(place), **flags)  # type: ignore[arg-type]
    home = Home(tmp_path / "home").prepare()
    return options, open_index(options, options.graph_plan(options.benchmark(), home), home, search=False)


def test_small_corpora_are_searched_exactly(tmp_path: Path) -> None:
    options, index = opened(tmp_path)
    assert (index.search, index.native) == (EXACT, None)
    assert "dense" not in options.graph_settings()  # what runs recorded before there was this setting


def test_large_corpora_are_searched_approximately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "EXACT_PASSAGES", 1)
    _, index = opened(tmp_path, store="arrays", similar="exact")
    assert index.search == APPROXIMATE
    (top,) = Batch(index, QUESTIONS).dense
    assert sorted(top.rows.tolist()) == list(range(len(index.chunks)))
    (kept,) = (tmp_path / "home/cache/search").glob(f"*/near-chunks/{GRAPH}")
    assert kept.stat().st_size


@pytest.mark.parametrize(
    ("label", "cells"),
    [
        ("dual_level", "described-entities"),
        ("dual_level[entity_text=name]", "name-entities"),
        ("entity_expansion", "entity-names"),
        ("expansion_queries", "chunks-for-pairs-of-names"),
    ],
)
def test_many_names_are_searched_by_cells_that_are_kept_with_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, cells: str
) -> None:
    def ranked(least: int) -> list[tuple[str, float]]:
        monkeypatch.setattr(near_rows, "MIN_ROWS", least)
        options, index = opened(tmp_path, store="arrays", dense="approximate", similar="exact")
        home = Home(tmp_path / "home")
        built_graph(options.graph_plan(options.benchmark(), home), index, home, plain_steps)
        (ranking,) = make(label).rank(Batch(index, ASKED[:1]), Counters())
        return [(hit.chunk_id, hit.score) for hit in ranking.hits]

    exact = ranked(1_000_000)
    assert [] == list((tmp_path / "home/cache/search").glob("*/cells-*"))
    assert exact == ranked(1)  # of a few names all that are near are found
    made = [place.name for place in (tmp_path / "home/cache/search").glob("*/cells-*")]
    assert made == [f"cells-{cells}"]
    monkeypatch.setattr(CellSearch, "fit", None)  # it is not made again
    assert exact == ranked(1)


@pytest.mark.parametrize(("method", "search"), [("exact", EXACT), ("approximate", APPROXIMATE)])
def test_either_way_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, search: str) -> None:
    monkeypatch.setattr(settings, "EXACT_PASSAGES", 1 if method == "exact" else 1000)
    options, index = opened(tmp_path, dense=method, similar="exact")
    assert index.search == search
    assert GraphOptions.from_settings(options.graph_settings(), options.dataset) == options
    assert "dense" not in options.build_command()  # the graph is the same


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"--dense.*fast"):
        GraphOptions(dataset="x", dense="fast").open_embedder(Home(tmp_path))
    with pytest.raises(InputError, match=r"--dense exact and --neo4j-vector-index are two ways"):
        GraphOptions(dataset="x", store="neo4j", dense="exact", neo4j_vector_index=True)._check_neo4j_flags()
