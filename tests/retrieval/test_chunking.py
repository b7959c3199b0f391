"""Passages become chunks, and a shared budget is spent on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopbench.retrieval.context import Budget
from hopbench.retrieval.corpus import chunk_passages
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.text.model_tokens import count_tokens
from hopbench.retrieval.types import MAX_TOKENS, Chunk, Passage


def chunk(number: int, text: str) -> Chunk:
    return Chunk(f"c{number}", f"c{number}", 0, "", text)


def test_a_short_passage_is_one_chunk_with_its_own_id() -> None:
    (only,) = chunk_passages([Passage("p", "Title", "One sentence. Two.")])

    assert Chunk("p", "p", 0, "Title", "One sentence. Two.") == only
    assert "Title. One sentence. Two." == only.content


def test_a_long_passage_splits_at_sentences_within_the_limit() -> None:
    # Three sentences of 4 tokens each ("One", "two", "three", "."): two fit into 8, the third begins a chunk.
    found = chunk_passages([Passage("p", "T", "One two three. Four five six. Seven eight nine.")], max_tokens=8)

    assert [("p#0", 0, "One two three. Four five six."), ("p#1", 1, "Seven eight nine.")] == [
        (one.id, one.index, one.text) for one in found
    ]
    assert {"p"} == {one.passage_id for one in found}


@pytest.mark.parametrize("sentence", ["诺港的造船厂共建造了两百多艘渡轮", "อู่ต่อเรือของนอร์เฮเวนสร้างเรือ"])
def test_a_sentence_without_spaces_is_cut_between_characters(sentence: str) -> None:
    text = sentence * 200
    found = sorted(chunk_passages([Passage("p", "", text)]), key=lambda one: one.index)

    assert len(found) > 1
    assert text == "".join(one.text for one in found)
    assert all(count_tokens(one.text) <= MAX_TOKENS for one in found)


def test_what_stands_between_sentences_stays() -> None:
    lines = "One two three.\nFour five six.\n\n  Seven eight nine."
    found = chunk_passages([Passage("p", "", f"{lines} {lines}")], max_tokens=18)

    assert [lines, lines] == [one.text for one in found]


def test_chunks_come_sorted_whatever_the_order_of_the_corpus() -> None:
    passages = [Passage(name, "", "text") for name in ("b", "a", "10", "9")]

    assert ["10", "9", "a", "b"] == [one.id for one in chunk_passages(passages)]
    assert chunk_passages(passages) == chunk_passages(reversed(passages))


def test_an_id_that_looks_like_a_part_of_another_passage_is_refused() -> None:
    passages = [Passage("p", "", "One two. Three four."), Passage("p#0", "", "mine")]

    with pytest.raises(InputError, match=r"'p#0'"):
        chunk_passages(passages, max_tokens=3)


@given(st.lists(st.sampled_from(["One two.", "A b c d e f.", "Yes.", "Long " * 9 + "end."]), max_size=12))
def test_splitting_keeps_every_word_in_order_and_no_chunk_exceeds_the_limit(parts: list[str]) -> None:
    text = " ".join(parts)
    found = sorted(chunk_passages([Passage("p", "", text)], max_tokens=7), key=lambda one: one.index)

    assert text.split() == [word for one in found for word in one.text.split()]
    assert all(count_tokens(one.text) <= 7 for one in found)
    assert list(range(len(found))) == [one.index for one in found]


def test_the_budget_reads_at_most_five_chunks() -> None:
    ranked = [chunk(number, f"text {number}") for number in range(7)]

    read, context = Budget().fit(ranked)

    assert ranked[:5] == read
    assert "text 0\n\ntext 1\n\ntext 2\n\ntext 3\n\ntext 4" == context


def test_the_chunk_at_which_the_tokens_run_out_is_cut_and_the_last() -> None:
    ranked = [chunk(0, "a b c"), chunk(1, "d e f"), chunk(2, "g")]

    read, context = Budget(tokens=7).fit(ranked)  # 3, 2 reserved for what joins the parts, 2

    assert (ranked[:2], "a b c\n\nd e") == (read, context)


def test_the_graph_block_comes_first_and_counts() -> None:
    read, context = Budget(tokens=7).fit([chunk(0, "a b c"), chunk(1, "d")], "g h i")

    assert ([chunk(0, "a b c")], "g h i\n\na b") == (read, context)


def test_a_graph_block_beyond_the_budget_is_cut_too() -> None:
    assert ([], "g h") == Budget(tokens=2).fit([chunk(0, "a")], "g h i j")


def test_a_chunk_of_which_no_word_fits_is_not_read() -> None:
    assert ([chunk(0, "a b c")], "a b c") == Budget(tokens=6).fit([chunk(0, "a b c"), chunk(1, "Norhaven")])


@given(
    st.lists(st.text(alphabet="ab .,é/\n海। ", max_size=30), max_size=8),
    st.text(alphabet="ab .क", max_size=30),
    st.integers(0, 40),
)
def test_no_context_exceeds_the_budget(texts: list[str], block: str, limit: int) -> None:
    ranked = [chunk(number, text) for number, text in enumerate(texts)]

    read, context = Budget(tokens=limit).fit(ranked, block)

    assert count_tokens(context) <= limit
    assert read == ranked[: len(read)]
    assert len(read) <= 5
