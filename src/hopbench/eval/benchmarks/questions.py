"""From records to questions and their gold, checked before anything is built on them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    kind,
    optional_text,
    record_id,
    refuse_unknown,
    required,
    text_value,
    whole,
)
from hopbench.eval.benchmarks.passages import Unique
from hopbench.eval.benchmarks.qrels import Judgement
from hopbench.eval.gold import Gold
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.support.errors import InputError

_log = logging.getLogger(__name__)
_NORMALISED = frozenset({"answer", "answer_aliases", "type"})
_QUESTION_FIELDS = frozenset({"_id", "id", "text", "question", "metadata"})


def make_question(
    place: Place, question_id: str, text: object, metadata: Mapping[str, Any], gold: Iterable[str] = ()
) -> BenchmarkQuestion:
    """A question with its metadata normalised: `answer`, `answer_aliases` and `type` get fields of their own.

    `answer` may be a string or a list of accepted strings (the first is the answer, the others are aliases). A number
    or truth value is the text that JSON writes for it: `1931`, `true`.
    """
    words = text_value(place, "text", text)
    if not words.strip():
        raise place.error("field 'text' is empty: a question needs words")
    accepted = [*_texts(place, "answer", metadata), *_texts(place, "answer_aliases", metadata)]
    unique = tuple(dict.fromkeys(accepted))
    _refuse_surrogates(place, metadata)
    return BenchmarkQuestion(
        id=question_id,
        text=words,
        type=optional_text(place, "metadata.type", metadata.get("type")),
        answer=unique[0] if unique else None,
        aliases=unique[1:],
        gold=gold if isinstance(gold, Gold) else Gold(gold),
        metadata={key: value for key, value in metadata.items() if value is not None and key not in _NORMALISED},
    )


def _refuse_surrogates(place: Place, metadata: Mapping[str, Any]) -> None:
    """Metadata is shown in reports, which are UTF-8."""
    for field, value in metadata.items():
        try:
            json.dumps([field, value], ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise place.error(f"field 'metadata.{field!a}' holds a lone surrogate: remove it") from error


def _texts(place: Place, field: str, metadata: Mapping[str, Any]) -> list[str]:
    """The field's string or strings that are not empty."""
    value = metadata.get(field)
    values = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    return [
        text for text in (text_value(place, f"metadata.{field}", _spelled(item)) for item in values) if text.strip()
    ]


def _spelled(value: object) -> object:
    """A number or truth value as JSON writes it, `2.0` in a table as the whole number; anything else as it stands."""
    return json.dumps(whole(value)) if isinstance(value, bool | int | float) else value


def read_question(record: Record, place: Place) -> BenchmarkQuestion:
    """One question of a BEIR or user's file. Fields beside `metadata` are metadata too, which `metadata` overrules."""
    given = record.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise place.error(f"field 'metadata' must be an object, not {kind(given)}")
    text = record["question"] if "question" in record and "text" not in record else required(record, place, "text")
    beside = {key: value for key, value in record.items() if key not in _QUESTION_FIELDS}
    return make_question(place, record_id(record, place), text, {**beside, **(given or {})})


def read_questions(source: str, questions: Iterable[tuple[Place, BenchmarkQuestion]]) -> tuple[BenchmarkQuestion, ...]:
    """All questions, in file order, each id once; an empty set is refused."""
    unique = Unique("question")
    unique_questions = []
    for place, question in questions:
        unique.add(question.id, place)
        unique_questions.append(question)
    if not unique_questions:
        raise InputError(f"{source}: there are no questions: it must hold at least one (_id, text)")
    return tuple(unique_questions)


def keep_judged(source: str, questions: Sequence[BenchmarkQuestion]) -> tuple[BenchmarkQuestion, ...]:
    """The questions with gold, as BEIR scores only those; all of them when none has gold (a user's own questions)."""
    judged = tuple(question for question in questions if question.gold)
    if judged and len(judged) < len(questions):
        left_out = len(questions) - len(judged)
        _log.warning("%s: %s of %s questions have no gold and are left out", source, left_out, len(questions))
    return judged or tuple(questions)


def attach_gold(
    source: str,
    questions: Sequence[BenchmarkQuestion],
    judgements: Iterable[Judgement],
    known: Iterable[str],
) -> tuple[BenchmarkQuestion, ...]:
    """Give each question its gold passages and all grades.

    Passages beyond the `known` ids stay gold, which nothing finds (`Benchmark.missing_gold`).

    Raises
    ------
    InputError
        With a count and the first few, when judgements name unknown questions, or no known passage is gold; when there
        is no gold at all.
    """
    asked = [question.id for question in questions]
    grades: dict[str, dict[str, int]] = {question.id: {} for question in questions}
    passages: dict[str, Place] = {}
    lost_questions = []
    for place, question_id, passage_id, grade in judgements:
        if question_id in grades:
            grades[question_id].setdefault(passage_id, grade)
            if grade > 0:
                passages.setdefault(passage_id, place)
        elif grade > 0:
            lost_questions.append((question_id, place))
    refuse_unknown(
        source, "question id", "among the questions", "Add the questions or remove the lines.", lost_questions, asked
    )
    if not passages:
        raise InputError(
            f"{source}: no line has a score above 0, so no question has gold: correct it or remove the file"
        )
    ids = set(known)
    if passages.keys().isdisjoint(ids):
        remedy = "None of the gold is there: name the corpus that was judged."
        refuse_unknown(source, "gold id", "in the corpus", remedy, list(passages.items()), ids)
    with_gold = [replace(question, gold=Gold.judged(grades[question.id])) for question in questions]
    return keep_judged(source, with_gold)
