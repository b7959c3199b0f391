"""A corpus of documents has its links, order and sections as edges; of any other the graph is as it was."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.retrieval.graph.construction.test_build import WORLD, plan_of
from tests.support.graphs import WordEmbedder, plain

from hopbench.eval.benchmarks.documents import read_documents
from hopbench.retrieval.graph.construction.builder import build_graph
from hopbench.retrieval.graph.construction.plan import BuildSettings, GraphPlan
from hopbench.retrieval.graph.schema import DOCUMENT_EDGES, LINKS_TO, NEXT, PART_OF, GraphTables
from hopbench.retrieval.graph.stores.arrays.store import ArrayStore
from hopbench.retrieval.graph.stores.contents import content, copy_graph, export
from hopbench.retrieval.graph.stores.kglite_store import KgliteStore
from hopbench.retrieval.types import Link, Passage, Source

GUIDE = """# Guide (short)

See [how pools grow](pools.md#size) and [pools](pools.md).

## Setup

Text.

### On Linux

Text, [see pools](pools.md).

### On Windows

Text.

## Use

Text.
"""
POOLS = "# Pools\n\nA pool holds workers.\n\n## Size\n\nTen. [Out](https://example.org), [gone](gone.md)."


def corpus(folder: Path) -> list[Passage]:
    """The passages of a guide with sections and links to another page."""
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    (folder / "pools.md").write_text(POOLS, encoding="utf-8")
    return list(read_documents(folder).passages)


def built(folder: Path, passages: list[Passage], max_tokens: int = 1200) -> KgliteStore:
    """Their graph."""
    plan = GraphPlan("docs", passages, BuildSettings(max_tokens=max_tokens), WordEmbedder())
    store = KgliteStore(folder, "docs")
    build_graph(plan, store, folder / "staging", plain)
    return store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def store(folder: Path) -> KgliteStore:
    return built(folder, corpus(folder / "docs"))


@pytest.fixture(scope="module")
def graph(store: KgliteStore) -> GraphTables:
    return export(store)


def pairs(graph: GraphTables, kind: str) -> set[tuple[str, str]]:
    return set(zip(graph.edges[kind]["source"], graph.edges[kind]["target"], strict=True))


def test_links_are_edges_with_their_words(graph: GraphTables) -> None:
    edges = graph.edges[LINKS_TO].set_index(["source", "target"])
    # A link to a page weighs 1 for its first passage and 0.5 for the rest; one to a section 1.
    assert {
        ("guide.md", "pools.md"): ("pools", 1.0),
        ("guide.md", "pools.md#size"): ("how pools grow; pools", 1.0),
        ("guide.md#on-linux", "pools.md"): ("see pools", 1.0),
        ("guide.md#on-linux", "pools.md#size"): ("see pools", 0.5),
    } == {ends: (row["text"], row["weight"]) for ends, row in edges.to_dict("index").items()}
    assert ["pool"] == edges.loc[("guide.md", "pools.md"), "tags"]


def test_passages_follow_each_other_and_sections_are_in_sections(graph: GraphTables) -> None:
    ids = ["guide.md", "guide.md#setup", "guide.md#on-linux", "guide.md#on-windows", "guide.md#use"]
    assert {*pairwise(ids), ("pools.md", "pools.md#size")} == pairs(graph, NEXT)
    assert {
        ("guide.md#setup", "guide.md"),
        ("guide.md#on-linux", "guide.md#setup"),
        ("guide.md#on-windows", "guide.md#setup"),
        ("guide.md#use", "guide.md"),
        ("pools.md#size", "pools.md"),
    } == pairs(graph, PART_OF)


def test_the_record_counts_links_by_where_they_lead(store: KgliteStore) -> None:
    record = store.record()
    assert record is not None
    assert {"internal": 3, "external": 1, "unresolved": 1} == record["links"]
    assert [4, 5, 5] == [record["edges"][kind] for kind in DOCUMENT_EDGES]


def test_other_stores_hold_the_same_edges(store: KgliteStore, folder: Path) -> None:
    copied, done = copy_graph(store, ArrayStore(folder, "docs"), WordEmbedder())
    assert (content(export(store)), True) == (copied, done)


def test_what_documents_say_changes_the_build_key(tmp_path: Path) -> None:
    passages = corpus(tmp_path / "docs")
    other = [replace(one, links=one.links[:1]) for one in passages]
    turned = passages[::-1]
    keys = {GraphPlan("d", each, BuildSettings(), WordEmbedder()).build_key for each in (passages, other, turned)}
    assert 3 == len(keys)


def test_without_links_and_documents_the_graph_is_as_it_was(tmp_path: Path) -> None:
    sourced = [replace(one, source=Source(3, f"{one.id}.pdf", "a.pdf")) for one in WORLD]
    assert plan_of(WORLD).build_key == plan_of(sourced).build_key
    # Taken before there were edges of documents.
    assert "82e371eeb5008d0ab833321edb7f78a31bcb27d4876f90d1b0689c3681fb9828" == plan_of(WORLD).build_key
    found = content(export(built(tmp_path, list(WORLD))))
    assert (
        "1bf5d9edc4a805cc8f80e19569da1b2c1f2d74a2ec83aff52c9dfb3391c27adc",
        ["CONTAINS", "MENTIONED_IN", "SIMILAR_TO", "RELATED_TO"],
    ) == (
        found["fingerprint"],
        list(found["edges"]),
    )


def test_a_link_of_a_long_passage_is_its_part_that_has_the_words(tmp_path: Path) -> None:
    long = Passage("a", "A", f"{'Words of the first part. ' * 9}See the pool.", links=(Link("the pool", "b"),))
    store = built(tmp_path, [long, Passage("b", "B", "A pool.")], max_tokens=50)
    assert {("a#1", "b")} == pairs(export(store), LINKS_TO)
    assert {("a#0", "a#1")} == pairs(export(store), NEXT)
