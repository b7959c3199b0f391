"""Which entities a question names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.index import Linker

NAMES = [
    ("e:ed wood", "Ed Wood", "film", []),
    ("e:tim burton", "Tim Burton", "title", ["Timothy Walter Burton"]),
    ("e:burbank california", "Burbank, California", "title", ["Burbank"]),
    ("e:bjork", "Björk", "title", []),
    ("e:the wood", "The Wood", "title", []),
    ("e:wood", "Wood", "phrase", []),
    ("e:it", "It", "title", []),
    ("e:the who", "The Who", "title", []),
    ("e:1984", "1984", "title", []),
    ("e:battle of the sea", "Battle of the Sea", "title", []),
]
TITLES = [("c1", "Ed Wood (film)"), ("c2", "Tim Burton"), ("c3", "Ed Wood (film)"), ("c4", "Björk")]


@pytest.fixture(scope="module")
def linker() -> Linker:
    return Linker(NAMES, TITLES)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where was the director of Ed Wood born?", ["e:ed wood"]),
        ("Did Tim Burton's wife live in Burbank?", ["e:tim burton", "e:burbank california"]),
        ("Is Burbank, California large?", ["e:burbank california"]),  # longest first
        ("Who sang with BJORK?", ["e:bjork"]),
        ("is wood hard in California?", []),  # a single word needs its capital
        ("Is Wood hard?", ["e:wood"]),
        ("where did ed wood meet tim burton?", ["e:ed wood", "e:tim burton"]),  # no capital at all: several words do
        ("Was it ed wood or Bob?", []),  # capitals are there: they must be on the name
        ("Was It good?", []),  # a stop word alone is no name
        ("When did the who split?", []),
        ("When did The Who split?", ["e:the who"]),
        ("What happened in 1984?", []),  # a number alone is no name
        ("Who won the Battle of the Sea?", ["e:battle of the sea"]),
        ("", []),
    ],
)
def test_names_in_a_question(linker: Linker, question: str, expected: list[str]) -> None:
    assert expected == [link.entity for link in linker.links(question)]


def test_a_full_title_with_its_qualifier_names_its_chunks(linker: Linker) -> None:
    (link,) = linker.links("Who directed Ed Wood (film)?")

    assert ("e:ed wood", 1.0, 2, 5, ("c1", "c3")) == (link.entity, link.weight, link.start, link.end, link.chunks)


def test_weights_are_those_of_titles_aliases_and_phrases(linker: Linker) -> None:
    links = linker.links("Did Tim Burton, Timothy Walter Burton and Wood meet?")

    assert [1.0, 0.7, 0.7] == [link.weight for link in links]


def test_a_name_resolves_by_case_accents_and_alias(linker: Linker) -> None:
    assert "e:bjork" == linker.resolve("BJÖRK")
    assert "e:tim burton" == linker.resolve("timothy walter burton")
    assert linker.resolve("nobody") is None
    assert linker.resolve("") is None


def test_a_title_beats_an_alias_and_the_order_of_names_does_not_matter() -> None:
    names = [("e:a", "Paris", "title", []), ("e:b", "Paris Texas", "title", ["Paris"])]

    for order in (names, names[::-1]):
        assert ["e:a"] == [link.entity for link in Linker(order, []).links("Is Paris big?")]


@given(st.text())
def test_links_do_not_overlap_and_stand_in_order(question: str) -> None:
    links = Linker(NAMES, TITLES).links(question + " Ed Wood " + question)

    for first, second in pairwise(links):
        assert first.start < first.end <= second.start
