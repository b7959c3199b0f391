"""Reading text: sentences, words, names and tags."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hopbench.retrieval.text import STOP_WORDS, Tagger, fold, name_key, normalised, sentences, split_qualifier, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left. She stayed! Why? Nobody knows.", ["He left.", "She stayed!", "Why?", "Nobody knows."]),
        ("J. R. Smith wrote it. He won.", ["J. R. Smith wrote it.", "He won."]),
        ("Dr. Who met Mr. Wood in St. Louis. It rained.", ["Dr. Who met Mr. Wood in St. Louis.", "It rained."]),
        ("Born in the U.S. Army camp. He died.", ["Born in the U.S. Army camp.", "He died."]),
        ("Harry Connick Jr. sings. He plays.", ["Harry Connick Jr. sings.", "He plays."]),
        ('"Go." He went.', ['"Go."', "He went."]),
        ("(It ended.) 1990 was late.", ["(It ended.)", "1990 was late."]),
        ("It cost 3.5 dollars.", ["It cost 3.5 dollars."]),
        ("He arrived. Élise left.", ["He arrived.", "Élise left."]),
        ("no capital. follows here.", ["no capital. follows here."]),
        ("  spaces around.  Next.  ", ["spaces around.", "Next."]),
        ("", []),
        ("   \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert expected == sentences(text)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ed Wood's film", ["Ed", "Wood", "film"]),
        ("Ed Wood’s film", ["Ed", "Wood", "film"]),
        ("the Smiths' house", ["the", "Smiths", "house"]),
        ("Shaquille O'Neal scored", ["Shaquille", "O'Neal", "scored"]),
        ("snake_case and A-B", ["snake", "case", "and", "A", "B"]),
        ("in 1990s, 2.5%", ["in", "1990s", "2", "5"]),
        ("", []),
    ],
)
def test_a_possessive_is_no_word_and_an_apostrophe_in_a_name_stays(sentence: str, expected: list[str]) -> None:
    assert expected == [token.text for token in tokens(sentence)]


def test_only_punctuation_that_ends_a_name_breaks() -> None:
    words = tokens("Tulsa, Oklahoma (city) and J. R. Smith – Jean-Luc")

    assert ["Oklahoma", "city", "and", "Jean"] == [word.text for word in words if word.breaks]


def test_capital_is_an_upper_case_letter_or_a_digit() -> None:
    assert [True, True, False, True] == [word.capital for word in tokens("Élan 7th wood Ω")]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Björk", "bjork"),
        ("Łódź", "lodz"),
        ("Ærø", "aero"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("O’Neal", "o'neal"),
        ("İstanbul", "istanbul"),
        ("𝐁old", "bold"),
        ("東京", "東京"),
    ],
)
def test_fold_makes_spellings_of_one_word_equal(word: str, expected: str) -> None:
    assert expected == fold(word)


def test_composed_and_decomposed_accents_are_the_same_word() -> None:
    # "ö" may be one code point or "o" with a combining mark; both stand in the wild.
    assert ("bjork", "gu\u00f0mundsdottir") == name_key("Björk Guðmundsdóttir")
    assert name_key("Björk Guðmundsdóttir") == name_key(unicodedata.normalize("NFD", "Björk Guðmundsdóttir"))


@given(st.text())
def test_words_are_pieces_of_the_text_in_order(text: str) -> None:
    composed = normalised(text)
    position = 0
    for token in tokens(text):
        position = composed.index(token.text, position) + len(token.text)


@given(st.text())
@example("\u037a \ufdfa \u1d2c \u0130")  # forms whose decomposition has spaces, capitals or marks
def test_folded_words_are_one_comparable_word(text: str) -> None:
    for token in tokens(text):
        assert token.folded
        assert token.folded == "".join(token.folded.split())
        assert token.folded == fold(token.folded)


@given(st.text(alphabet=st.sampled_from("aZ .!?\"'’)1é\n"), max_size=60))
def test_sentences_lose_nothing_but_white_space(text: str) -> None:
    parts = sentences(text)

    assert "".join(text.split()) == "".join("".join(parts).split())
    assert all(part and part == part.strip() for part in parts)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Ed Wood (film)", ("Ed Wood", "film")),
        ("Ed Wood", ("Ed Wood", "")),
        ("Ed (the) Wood", ("Ed (the) Wood", "")),
        ("(What's the Story) Morning Glory?", ("(What's the Story) Morning Glory?", "")),
        ("(1990)", ("(1990)", "")),
        ("", ("", "")),
    ],
)
def test_only_a_closing_parenthesis_is_a_qualifier(title: str, expected: tuple[str, str]) -> None:
    assert expected == split_qualifier(title)


# Three texts: "river" stands in 3, "film" in 2, "director" in 1 (its stem is "director").
FITTED = ("The river film", "A river and the director of a film", "rivers")


def test_idf_is_ln_of_one_plus_texts_by_frequency() -> None:
    tagger = Tagger(FITTED)

    assert math.log(1 + 3 / 3) == tagger.idf("river")
    assert math.log(1 + 3 / 2) == tagger.idf("film")
    assert math.log(1 + 3 / 1) == tagger.idf("director")
    assert math.log(1 + 3 / 1) == tagger.idf("never seen")
    assert 0.0 == Tagger().idf("river")


def test_tags_are_the_rarest_stems_and_ties_go_to_the_alphabet() -> None:
    tagger = Tagger(FITTED)

    assert ["director", "film"] == tagger.tags("the river, the film and the director", limit=2)
    assert ["alpha", "beta"] == tagger.tags("gamma beta alpha", limit=2)  # none was seen: equal salience


def test_tags_are_stems_without_stop_words_and_single_letters() -> None:
    assert ["direct", "film"] == Tagger().tags("Who directed the films of x?")


@given(st.text())
def test_tags_are_at_most_eight_distinct_and_sorted(text: str) -> None:
    tags = Tagger(["some river"]).tags(text)

    assert tags == sorted(set(tags))
    assert len(tags) <= 8
    assert STOP_WORDS.isdisjoint(word for word in tags if word == text)
