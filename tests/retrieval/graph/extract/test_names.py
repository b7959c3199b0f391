"""Entities without a language model: titles, aliases and phrases that return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from tests.support.graphs import corpora

from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.graph.extract.names import (
    AliasTable,
    ReadChunk,
    alias_table,
    first_phrases,
    keep_phrases,
    phrases_of,
    read_chunk,
    titled_entities,
)
from hopbench.retrieval.graph.extract.rules import entity_parts
from hopbench.retrieval.text import title_key, tokens
from hopbench.retrieval.types import Chunk, Passage


def chunk(title: str, text: str = "", number: int = 0) -> Chunk:
    return Chunk(f"c{number}", f"c{number}", 0, title, text)


def read(*passages: tuple[str, str]) -> tuple[list[ReadChunk], dict[tuple[str, ...], Any]]:
    chunks = [chunk(title, text, number) for number, (title, text) in enumerate(passages)]
    table = alias_table(chunks)
    pieces = [read_chunk(one, table) for one in chunks]
    return pieces, entities_of(pieces, table)


def entities_of(pieces: list[ReadChunk], table: AliasTable) -> dict[tuple[str, ...], Any]:
    phrases = recurring(pieces)
    keep_phrases(pieces, phrases)
    rows = [row for _, part in entity_parts(titled_entities(pieces, table), phrases) for row in part.itertuples()]
    return {tuple(row.id.removeprefix("e:").split(" ")): row for row in rows}


def mention_counts(piece: ReadChunk) -> Counter[tuple[str, ...]]:
    return Counter(mention.key for mention in piece.mentions)


def recurring(pieces: Sequence[ReadChunk]) -> dict[tuple[str, ...], str]:
    return {key: spelling for key, _, spelling, recurs in first_phrases(phrases_of(pieces)) if recurs}


def named(piece: ReadChunk) -> set[str]:
    return {" ".join(mention.key) for mention in piece.mentions}


def aliases(*passages: tuple[str, str]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    return alias_table([chunk(title, text, n) for n, (title, text) in enumerate(passages)]).aliases()


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Ed Wood (film)", ("ed", "wood")),
        ("Björk", ("bjork",)),
        ("(1990)", ("1990",)),  # nothing but a qualifier: it is the name
        ("", ()),
        ("!!!", ("!!!",)),
        ("!!! (album)", ("!!!",)),
    ],
)
def test_the_key_of_a_title_has_no_qualifier(title: str, expected: tuple[str, ...]) -> None:
    assert expected == title_key(title)


def test_a_title_is_an_entity_whose_type_is_its_qualifier() -> None:
    _, entities = read(("Ed Wood (film)", "It is a film. Second sentence."), ("Tim Burton", "He directs."))

    assert ("Ed Wood", "film") == (entities["ed", "wood"].name, entities["ed", "wood"].type)
    assert "It is a film." == entities["ed", "wood"].description
    assert ("Tim Burton", "title") == (entities["tim", "burton"].name, entities["tim", "burton"].type)


def test_two_titles_that_differ_in_their_qualifier_share_an_entity() -> None:
    pieces, entities = read(("Ed Wood (film)", "A film."), ("Ed Wood (director)", "A man."))

    assert {("ed", "wood")} == set(entities)
    assert [{("ed", "wood"): 1}, {("ed", "wood"): 1}] == [mention_counts(piece) for piece in pieces]


def test_the_title_counts_once_whoever_else_has_it() -> None:
    # The title itself, and once in the text: 2.
    pieces, _ = read(("Ed Wood (film)", "Here Ed Wood is told."), ("Ed Wood (director)", "A man."))

    assert 2 == mention_counts(pieces[0])["ed", "wood"]


def test_a_place_is_called_by_its_part_before_the_comma() -> None:
    assert {("tulsa", "oklahoma"): [("tulsa",)]} == aliases(("Tulsa, Oklahoma", ""))


def test_john_king_of_england_is_not_every_john() -> None:
    assert {} == aliases(("John, King of England", ""))


def test_the_full_name_at_the_beginning_of_the_text_is_an_alias() -> None:
    text = 'Edward Davis Wood Jr. (1924-1978) was a director. He made "Glen or Glenda".'

    assert {("ed", "wood"): [("edward", "davis", "wood", "jr")]} == aliases(("Ed Wood", text))


@pytest.mark.parametrize(
    "text",
    [
        "The director (born 1924) made films.",  # shares no word with the title
        "Wood, who made films.",  # a single word
        "Wood made films in Oslo. He was ill.",  # the name would run over a sentence's end
    ],
)
def test_what_only_begins_the_text_is_no_alias(text: str) -> None:
    assert {} == aliases(("Ed Wood", text))


def test_a_leading_article_may_be_left_out_of_long_titles() -> None:
    assert {("the", "ohio", "river"): [("ohio", "river")]} == aliases(("The Ohio River", ""))
    assert {} == aliases(("The Doors", ""))  # "Doors" alone could be any


def test_an_alias_of_three_entities_names_none_and_of_two_the_first() -> None:
    two = [("Paris, Texas", ""), ("Paris, Ontario", "")]

    assert {("paris", "ontario"): [("paris",)]} == aliases(*two)  # "paris ontario" < "paris texas"
    assert {} == aliases(*two, ("Paris, Kentucky", ""))


def test_a_title_beats_an_alias_of_the_same_words() -> None:
    pieces, _ = read(("Paris, Texas", ""), ("Paris", ""), ("Map", "They saw Paris."))

    assert {"map", "paris"} == named(pieces[2])


def test_the_longest_name_wins() -> None:
    table = AliasTable()
    for name in ("Ed", "Ed Wood", "Ed Wood Jr Museum"):
        key = title_key(name)
        table.add(key, key, 1.0)

    found = [key for _, key, _ in table.candidates(tokens("Ed Wood Jr spoke"), 0)]

    assert [("ed", "wood"), ("ed",)] == found


def test_a_name_needs_a_capital_and_a_single_word_more_than_two_letters() -> None:
    pieces, _ = read(("Rain", ""), ("Ed", ""), ("Blue Rain", ""), ("Song", "The rain and blue rain. So Rain and Ed."))

    assert {"song", "rain"} == named(pieces[3])


def test_a_known_name_is_found_at_a_sentence_start_and_with_a_possessive() -> None:
    pieces, _ = read(("Tim Burton", ""), ("Song", "Tim Burton's dog barked. A dog of Tim Burton."))

    assert 2 == mention_counts(pieces[1])["tim", "burton"]


def test_a_comma_name_names_its_second_part_too() -> None:
    # "Tulsa, Oklahoma" is one title; reading it elsewhere also names the title "Oklahoma", at .7 of its trust.
    pieces, _ = read(("Tulsa, Oklahoma", ""), ("Oklahoma", ""), ("Song", "He left Tulsa, Oklahoma at dawn."))

    weights = {" ".join(mention.key): mention.weight for mention in pieces[2].mentions}
    assert {"song": 1.0, "tulsa oklahoma": 1.0, "oklahoma": 0.7} == weights


def test_a_phrase_is_an_entity_when_two_passages_have_it() -> None:
    pieces, entities = read(
        ("One", "he met Orson Welles, and Vampira too"),
        ("Two", "they saw Orson Welles once, and Criswell"),
    )

    assert ("Orson Welles", "phrase") == (entities["orson", "welles"].name, entities["orson", "welles"].type)
    assert [{"one", "orson welles"}, {"two", "orson welles"}] == [named(piece) for piece in pieces]


def test_a_phrase_twice_in_one_passage_is_no_entity() -> None:
    _, entities = read(("One", "he met Orson Welles and Orson Welles left"), ("Two", ""))

    assert {("one",), ("two",)} == set(entities)


@pytest.mark.parametrize(
    "text",
    [
        "it was in May 1990 that it began",
        "it was on Sunday that it began",
        "on 12 March 2003 it began",
        "in 1990 it began",
        "Yesterday it began",  # a single capital word at a sentence's start
        "it was in the USA then",  # three letters alone are no name
        "it was The that",  # a stop word
    ],
)
def test_dates_sentence_starts_and_short_words_are_no_names(text: str) -> None:
    _, entities = read(("One", text), ("Two", text))

    assert {("one",), ("two",)} == set(entities)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in the Bank of England today", ("bank", "of", "england")),
        ("by Ludwig van Beethoven today", ("ludwig", "van", "beethoven")),
        ("the Bank of course", ("bank",)),  # a connector needs a capital behind it
        ("the film Apollo 13 today", ("apollo", "13")),
        ("by Orson Welles, Vampira", ("orson", "welles")),  # a comma ends a name
    ],
)
def test_a_phrase_is_a_run_of_capitals_with_connectors_inside(text: str, expected: tuple[str, ...]) -> None:
    _, entities = read(("One", text), ("Two", text))

    assert expected in entities


def test_parts_of_one_passage_are_one_passage_for_phrases() -> None:
    parts = [Chunk(f"p#{n}", "p", n, "", "he met Orson Welles there") for n in (0, 1)]
    pieces = [read_chunk(one, alias_table(parts)) for one in parts]

    assert {} == recurring(pieces)


@given(corpora())
def test_every_mention_names_an_entity_and_stands_where_its_span_says(passages: Sequence[Passage]) -> None:
    chunks = chunk_passages(passages)
    table = alias_table(chunks)
    pieces = [read_chunk(one, table) for one in chunks]
    entities = entities_of(pieces, table)

    for piece in pieces:
        for mention in piece.mentions:
            sentence, start, length, *_ = mention
            assert mention.key in entities
            assert 0 < mention.weight <= 1
            assert 0 <= start <= start + length <= len(piece.words[sentence])
            if mention.weight == 1.0 and sentence:
                assert mention.key == tuple(word.folded for word in piece.words[sentence][start : start + length])
