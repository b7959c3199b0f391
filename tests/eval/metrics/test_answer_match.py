"""EM and F1 of a reader's answer, as hotpot_evaluate_v1.py has them; every number by its derivation."""

from __future__ import annotations

import math

import pytest

from hopbench.eval.answering.answers import (
    CLOSED_BOOK,
    MAX_TOKENS,
    SCHEMA,
    Answer,
    answer_columns,
    closed_book,
    messages,
)
from hopbench.eval.metrics.built_in import answer_f1, exact_match
from hopbench.eval.types import Benchmark, BenchmarkQuestion
from hopbench.retrieval.llm.endpoint import wire_schema
from hopbench.retrieval.types import Passage


@pytest.mark.parametrize(
    ("prediction", "answers", "em", "f1"),
    [
        ("The Porto Vell.", ["Porto Vell"], 1.0, 1.0),  # articles and punctuation do not count
        ("Porto Vell harbour", ["Porto Vell"], 0.0, 2 * (2 / 3) * 1 / (2 / 3 + 1)),  # 2 of 3 said, 2 of 2 wanted: .8
        ("Vell", ["Porto Vell", "Vell"], 1.0, 1.0),  # an alias
        ("yes", ["yes"], 1.0, 1.0),
        ("Yes.", ["yes"], 1.0, 1.0),
        ("yes it is", ["yes"], 0.0, 0.0),  # yes matches only itself, though a token is shared
        ("no", ["no one"], 0.0, 0.0),
        ("noanswer", ["Vell"], 0.0, 0.0),
        ("", ["Vell"], 0.0, 0.0),
        ("a b b", ["b b c"], 0.0, 2 * 1 * (2 / 3) / (1 + 2 / 3)),  # "a" is an article: b b of b b, 2 of 3: .8
    ],
)
def test_em_and_f1(prediction: str, answers: list[str], em: float, f1: float) -> None:
    assert em == exact_match(prediction, answers)
    assert f1 == pytest.approx(answer_f1(prediction, answers))


BENCHMARK = Benchmark(
    "two",
    (Passage("p", "A", "text"),),
    (
        BenchmarkQuestion("q1", "Is it?", answer="yes"),
        BenchmarkQuestion("q2", "Where?", answer="Porto Vell", aliases=("Vell",)),
        BenchmarkQuestion("q3", "Who knows?"),
        BenchmarkQuestion("q4", "When?", answer="1911"),
    ),
)


def test_a_failed_answer_is_a_row_with_its_reason_and_no_score() -> None:
    answers = {
        "q1": Answer("Yes", "Yes, it is.", calls=1),
        "q2": Answer("vell", "It is in Vell.", calls=1),
        "q3": Answer("Nobody", "Nobody knows.", calls=1),
        "q4": Answer(failure="timeout: no answer in 300 s", calls=1),
    }

    table = answer_columns(BENCHMARK, answers)

    assert [1.0, 1.0] == table["answer_em"].iloc[:2].tolist()
    assert table["answer_em"].iloc[2:].isna().all()  # no gold answer; no answer
    assert [None, None, None, "timeout: no answer in 300 s"] == table["answer_failure"].tolist()
    assert ["Yes", "vell", "Nobody", None] == table["answer"].tolist()


def test_closed_book_reads_the_same_prompt_without_context() -> None:
    empty = closed_book(BENCHMARK)

    assert {"q1", "q2", "q3", "q4"} == set(empty)
    assert all(ranking.context == "" and ranking.failure is None for ranking in empty.values())
    with_context, without = messages("Where?", "Porto Vell is a harbour."), messages("Where?", "")
    assert with_context[0] == without[0]
    assert "Context:\nPorto Vell is a harbour.\n\nQuestion: Where?" == with_context[1]["content"]
    assert "Context: none\n\nQuestion: Where?" == without[1]["content"]
    assert CLOSED_BOOK == "closed_book"


def test_the_longest_answer_that_the_schema_allows_ends_before_max_tokens() -> None:
    longest = sum(part["maxLength"] for part in SCHEMA["properties"].values())

    assert math.ceil(longest / 3) + 30 < MAX_TOKENS  # three characters a token, and the JSON around


def test_schemas_are_closed_and_keep_to_what_the_endpoint_knows() -> None:
    schema = {
        "type": "object",
        "properties": {"maxLength": {"type": "string", "maxLength": 3}, "of": {"$ref": "#/$defs/Part"}},
        "$defs": {"Part": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }

    local, openai = (wire_schema(schema, url) for url in ("http://localhost:1/v1", "https://api.openai.com/v1"))

    assert local["additionalProperties"] is openai["additionalProperties"] is False
    assert openai["$defs"]["Part"]["additionalProperties"] is False
    assert {"type": "string", "maxLength": 3} == local["properties"]["maxLength"]
    assert {"type": "string"} == openai["properties"]["maxLength"]  # the property of that name stays


def test_lists_and_texts_get_bounds_where_the_schema_has_none() -> None:
    schema = {
        "type": "object",
        "properties": {
            "free": {"type": "array", "items": {"type": "string"}},
            "bound": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["a"]}},
        },
    }

    wired = wire_schema(schema, "http://localhost:1/v1", items=5, chars=9)["properties"]

    assert {"maxItems": 5, "type": "array", "items": {"maxLength": 9, "type": "string"}} == wired["free"]
    assert {"maxItems": 2, "type": "array", "items": {"type": "string", "enum": ["a"]}} == wired["bound"]
