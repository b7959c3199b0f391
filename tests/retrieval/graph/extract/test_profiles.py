"""Types and descriptions of entities: stated types and descriptions first, then what passages suggest."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.extract.rules import rule_tables
from hopbench.retrieval.graph.extract.triples import (
    MAX_DESCRIPTION,
    profiles,
    triple_tables,
    triples_by_passage,
    with_triples,
)
from hopbench.retrieval.graph.schema import ENTITY
from hopbench.retrieval.text import Spellings, Tagger, shortened
from hopbench.retrieval.types import Passage, Triple

PASSAGES = (
    Passage("a", "Ed Wood (film)", "Ed Wood is a film by Tim Burton. It was shot in 1993."),
    Passage("b", "Tim Burton", "Tim Burton is a director. He met Johnny Depp in Burbank."),
)


def told(*triples: Triple, passages: Sequence[Passage] = PASSAGES) -> dict[str, tuple[str, str]]:
    """Type and description by name."""
    chunks = chunk_passages(passages)
    known = profiles(chunks, triples_by_passage(triples), Spellings())
    return {one.name: (one.type, one.description) for one in known.values()}


def says(
    passage: str, thing: str, kind: str = "", said: str = "", *, subject: str = "Tim Burton", relation: str = "made"
) -> Triple:
    return Triple(passage, subject, relation, thing, object_type=kind, object_description=said)


def test_a_stated_type_comes_before_the_title_s_qualifier() -> None:
    assert ("film", "title") == (told()["Ed Wood"][0], told()["Tim Burton"][0])
    assert "biopic" == told(says("b", "Ed Wood", "biopic"))["Ed Wood"][0]
    assert "film" == told(says("b", "Ed Wood"))["Ed Wood"][0]
    assert "entity" == told(says("b", "Vampira"))["Vampira"][0]


def test_the_type_that_most_triples_state_is_taken_the_alphabetically_first_of_equals() -> None:
    two = (says("a", "Ed Wood", "work"), says("b", "Ed Wood", "biopic"))

    assert "biopic" == told(*two)["Ed Wood"][0]
    assert "work" == told(*two, says("b", "Ed Wood", "work", relation="shot"))["Ed Wood"][0]


def test_a_stated_description_comes_before_the_passage_s_and_that_of_the_own_passage_first() -> None:
    elsewhere, own = says("b", "Ed Wood", said="A film of 1994."), says("a", "Ed Wood", said="A film on Ed Wood.")

    assert "A film of 1994." == told(elsewhere)["Ed Wood"][1]
    assert "A film on Ed Wood. A film of 1994." == told(elsewhere, own, own)["Ed Wood"][1]
    long = says("b", "Ed Wood", said="word " * 57 + "end.", relation="shot")  # 289 characters: no room beside another
    assert "A film on Ed Wood." == told(own, long)["Ed Wood"][1]


def test_without_one_the_own_passage_s_first_sentence_then_the_one_that_names_it_then_the_fact() -> None:
    known = told(says("b", "Burbank"), says("b", "nobody's name"), says("a", "Tim Burton", subject="Ed Wood"))

    assert "Ed Wood is a film by Tim Burton." == known["Ed Wood"][1]
    assert "Tim Burton is a director." == known["Tim Burton"][1]
    assert "He met Johnny Depp in Burbank." == known["Burbank"][1]
    assert "Tim Burton made nobody's name" == known["nobody's name"][1]


@pytest.mark.parametrize(("text", "expected"), [("one two", "one two"), ("one twos", "one..."), ("x" * 9, "xxxx...")])
def test_a_long_text_is_cut_between_words(text: str, expected: str) -> None:
    assert expected == shortened(text, 7)


def test_a_description_is_bounded() -> None:
    (known,) = told(passages=[Passage("a", "Long", "word " * 200)]).values()

    assert known[1].endswith("word...")
    assert MAX_DESCRIPTION - 5 <= len(known[1]) <= MAX_DESCRIPTION


@given(
    st.permutations(
        [
            says("a", "Ed Wood", "film", "One."),
            says("b", "ed wood", "work", "Two.", relation="saw"),
            says("b", "ED WOOD", "film", "Three.", relation="liked"),
            says("b", "Ed Wood", "work", "Four."),
        ]
    )
)
def test_the_order_of_the_triples_changes_nothing(triples: list[Triple]) -> None:
    assert ("film", "One. Three. Four. Two.") == told(*triples)["Ed Wood"]


def test_beside_rules_a_stated_type_and_description_are_kept_too() -> None:
    chunks = chunk_passages(PASSAGES)
    tagger = Tagger(chunk.content for chunk in chunks)
    stated = [says("b", "Ed Wood", "biopic", "About a director."), says("b", "Burbank")]
    entities = with_triples(rule_tables(chunks, tagger), chunks, stated, tagger)[ENTITY]

    assert {
        "Ed Wood": ("biopic", "About a director."),
        "Tim Burton": ("title", "Tim Burton is a director."),
        "Burbank": ("entity", "He met Johnny Depp in Burbank."),
    } == dict(zip(entities["name"], zip(entities["type"], entities["description"], strict=True), strict=True))


def test_types_and_descriptions_reach_the_entity_nodes() -> None:
    chunks = chunk_passages(PASSAGES)
    triples = [says("b", "Ed Wood", "biopic", "About a director.")]
    entities: pd.DataFrame = triple_tables(chunks, triples, Tagger(chunk.content for chunk in chunks))[ENTITY]

    assert [("Ed Wood", "biopic", "About a director."), ("Tim Burton", "title", "Tim Burton is a director.")] == list(
        zip(entities["name"], entities["type"], entities["description"], strict=True)
    )
