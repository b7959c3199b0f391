"""Tokens are those of a language model's vocabulary, in every script; cuts leave words and characters whole."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.graph.construction.plan import BuildSettings
from hopbench.retrieval.text.model_tokens import TOKENIZER, count_tokens, first_tokens, pieces

# Counted by tiktoken 0.14.0 with OpenAI's file of o200k_base, and not by the library that counts here.
TIKTOKEN = {
    "The yard of Norhaven built two hundred ferries.": 11,
    "Die Werft in Norhaven baute zweihundert Fähren.": 14,
    "诺港的造船厂共建造了两百多艘渡轮。": 18,
    "港町ノルヘイブンの造船所は二百隻以上のフェリーを建造した。": 25,
    "नॉरहेवन के जहाज़ कारखाने ने दो सौ नौकाएँ बनाईं।": 20,
    "อู่ต่อเรือของนอร์เฮเวนสร้างเรือข้ามฟากมากกว่าสองร้อยลำ": 28,
    "بنى حوض نورهافن أكثر من مئتي عبّارة.": 16,
    "노르헤이븐 조선소는 여객선 이백 척을 지었다.": 21,
    "def add(left: int, right: int) -> int:\n    return left + right\n": 19,
    "Ed Wood's film.": 5,
    "": 0,
}
scripts = st.text(alphabet="ab é,.\n海燕号。ハバघगि้กา👩\u200d👧", max_size=60) | st.text(max_size=60)


@pytest.mark.parametrize("text", TIKTOKEN)
def test_a_text_has_the_tokens_that_its_vocabulary_gives_it(text: str) -> None:
    assert TIKTOKEN[text] == count_tokens(text)


def test_what_no_tokenizer_accepts_is_counted_too() -> None:
    assert count_tokens("a?b") == count_tokens("a\ud800b")  # JSON can carry half of a pair
    assert count_tokens("<|endoftext|>") > 1  # in a text it ends nothing


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("The yard of Norhaven built two.", 4, "The yard of"),  # the fourth token is "Nor"
        ("The yard of Norhaven built two.", 11, "The yard of Norhaven built two."),
        ("Norhaven built two.", 1, ""),  # the first word has three
        ("in 1,234,567 parts", 4, "in"),  # never "in 1,234"
        ("诺港的造船厂", 3, "诺港的"),
        ("कि कि", 1, "कि"),
        ("海燕号Norhaven", 4, "海燕号"),
        ("👩‍👩‍👧 waits", 3, ""),
        ("  Norhaven", 0, ""),
    ],
)
def test_a_cut_leaves_words_and_characters_whole(text: str, limit: int, expected: str) -> None:
    assert expected == first_tokens(text, limit)


def test_data_without_spaces_is_cut_inside() -> None:
    data = "0123456789abcdef" * 100

    assert 0 < len(first_tokens(data, 50)) < 400
    assert data == "".join(pieces(data, 50))
    assert ["Norh", "aven"] != list(pieces("Norhaven", 2))  # at its tokens
    assert "Norhaven" == "".join(pieces("Norhaven", 2))


@given(scripts, st.integers(0, 20))
def test_a_beginning_fits_and_begins_the_text(text: str, limit: int) -> None:
    start = first_tokens(text, limit)

    assert text.startswith(start)
    assert count_tokens(start) <= limit
    assert (start == text) == (count_tokens(text) <= limit)


@given(scripts, st.integers(4, 20))
def test_pieces_fit_and_lose_no_character(text: str, limit: int) -> None:
    found = list(pieces(text, limit))

    assert "".join(text.split()) == "".join("".join(found).split())
    assert all(0 < count_tokens(piece) <= limit for piece in found)


@given(st.lists(st.sampled_from(["किला", "नॉरहेवन", "नौकाएँ", "é", "Norhaven", "👍🏽"]), min_size=1), st.integers(1, 12))
def test_a_cut_is_never_inside_a_word_with_marks(words: list[str], limit: int) -> None:
    kept = first_tokens(" ".join(words), limit).split()

    assert words[: len(kept)] == kept


@given(st.text(alphabet="海燕号กำกิ่កក្ក", max_size=40), st.integers(1, 12))
def test_a_cut_without_spaces_is_between_characters(text: str, limit: int) -> None:
    start = first_tokens(text, limit)
    characters = regex.findall(r"\X", text)

    assert start in ["".join(characters[:number]) for number in range(len(characters) + 1)]


def test_a_graph_names_the_vocabulary_by_which_its_passages_were_split() -> None:
    assert TOKENIZER == BuildSettings().identity()["tokenizer"]
