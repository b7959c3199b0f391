"""Pages and files that a corpus names travel with its passages: through chunks to hits, tables and what is printed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.graphs import ASKED, WORLD, built_index, plan_of

from hopbench.eval.benchmarks.fields import Place
from hopbench.eval.benchmarks.passages import read_passage, read_source
from hopbench.eval.explain import RankedPassage
from hopbench.flows.explain.words import place_words
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.index import Batch
from hopbench.retrieval.strategies.baselines import BM25
from hopbench.retrieval.strategies.registry import make, registry
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import UNKNOWN_SOURCE, Counters, Passage, Source

PLACE = Place("corpus.jsonl", "line", 3)
MANUAL = Source(12, "d7", "manual.pdf")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({}, UNKNOWN_SOURCE),
        ({"page_number": 12}, Source(12)),
        ({"page_number": "12"}, Source(12)),  # as CSV has it
        ({"page_number": 12.0}, Source(12)),  # as a table with gaps has it
        ({"page_number": "xii"}, Source("xii")),
        ({"page_number": 0}, Source(0)),
        ({"page_number": None, "document_name": ""}, UNKNOWN_SOURCE),
        ({"metadata": {"page_number": 12, "document_id": "d7", "document_name": "manual.pdf"}}, MANUAL),
        ({"page_number": 1, "metadata": {"page_number": 12}}, Source(12)),
        ({"metadata": {"is_gold": True, "url": ["x"]}}, UNKNOWN_SOURCE),  # nothing else is read
        ({"metadata": "text"}, UNKNOWN_SOURCE),
        ({"document_id": 7}, Source(None, "7")),
    ],
)
def test_the_source_of_a_row(record: dict[str, object], expected: Source) -> None:
    assert expected == read_source(record, PLACE)
    assert expected == read_passage({"_id": "p", "text": "words", **record}, PLACE).source


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], r"corpus\.jsonl, line 3: field 'page_number' must be text or a whole number, not a list: correct or"),
        (1.5, "not the number 1.5"),
        (True, "not true"),
        ("9" * 201, "has 201 characters, the limit is 200"),
    ],
)
def test_a_page_that_is_none(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_source({"page_number": value}, PLACE)


def test_all_chunks_of_a_passage_have_its_source() -> None:
    passage = Passage("p", "T", "One two three. Four five six. Seven eight nine.", MANUAL)

    assert [("p#0", MANUAL), ("p#1", MANUAL)] == [(c.id, c.source) for c in chunk_passages([passage], max_tokens=8)]


def test_a_graph_does_not_know_it() -> None:
    """Page numbers come from the corpus when it is read: build keys, graphs and finished trials stay the same."""
    unpaged = [replace(passage, source=replace(MANUAL, page_number=None)) for passage in WORLD]
    paged = [replace(passage, source=MANUAL) for passage in WORLD]

    assert plan_of(unpaged).build_key == plan_of(paged).build_key


@pytest.mark.parametrize("name", registry().names())
def test_every_strategys_hits_have_it(name: str, tmp_path: Path) -> None:
    marked = [replace(p, source=replace(MANUAL, page_number=i)) for i, p in enumerate(WORLD) if i != 3]
    index = built_index(plan_of([*marked, WORLD[3]]), tmp_path)
    expected = {passage.id: passage.source for passage in [*marked, WORLD[3]]}

    for ranking in make(name).rank(Batch(index, ASKED), Counters()):
        assert [expected[hit.chunk_id] for hit in ranking.hits] == [hit.source for hit in ranking.hits]


def test_it_is_printed_and_told_by_name(tmp_path: Path) -> None:
    index = built_index(plan_of([replace(WORLD[0], source=MANUAL), WORLD[1]]), tmp_path)

    (ranking,) = BM25().rank(Batch(index, ASKED[:1]), Counters())

    words = [place_words(RankedPassage(hit.chunk_id, rank, hit)) for rank, hit in enumerate(ranking.hits, 1)]
    assert [True, False] == ["[manual.pdf, page 12]" in line for line in words]
    assert '{"page_number": 12, "document_id": "d7", "document_name": "manual.pdf"}' == json.dumps(MANUAL.facts())
    assert ["d7, page 12", "page 12", "d7", ""] == [
        str(one) for one in (Source(12, "d7"), Source(12), Source(None, "d7"), UNKNOWN_SOURCE)
    ]
