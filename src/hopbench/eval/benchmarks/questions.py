"""Read questions and their gold: a `queries` file with `qrels` in the same folder, or with gold in its own rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.evidence import Evidence
from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    Rows,
    id_value,
    kind,
    record_id,
    refuse_repeated,
    refuse_unknown,
    required,
    text_value,
)
from hopbench.eval.benchmarks.files import read_lines
from hopbench.eval.benchmarks.records import GOLD_SPLITS, chosen_split, read_records, rows_of, splits_of
from hopbench.eval.types import NO_GOLD, BenchmarkQuestion, Gold
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

MAX_GRADE = 1_000_000
_HEADINGS = (
    frozenset({"query-id", "queryid", "question-id", "qid", "query"}),
    frozenset({"corpus-id", "corpusid", "passage-id", "document-id", "doc-id", "docid", "docno", "pid"}),
    frozenset({"score", "relevance", "rel", "grade", "label"}),
)
"""What the columns may be called, in their order; - and _ mean the same."""
_ITERATIONS = frozenset({"iter", "iteration", "q0"})  # in TREC's second column, as whole numbers are


def judgement_files(folder: Path) -> Sequence[Path]:
    """Find judgements: `qrels/test.tsv`, else the only other `qrels/*.tsv`, else a split of other tables, else none."""
    place = folder / "qrels"
    if not place.exists():
        return ()
    if not place.is_dir():
        raise InputError(f"{place}: must be a folder that holds test.tsv, not a file")
    files = sorted(place.glob("*.tsv"))
    test = place / "test.tsv"
    if test in files or len(files) == 1:
        return [test if test in files else files[0]]
    if not files and (splits := splits_of(place)):
        return chosen_split(place, splits, GOLD_SPLITS)
    names = ", ".join(path.name for path in files) or "none"
    raise InputError(
        f"{place}: needs test.tsv or exactly one other .tsv file (found: {names}): name one of them test.tsv"
    )


class Judgement(NamedTuple):
    """A grade that a passage was given for a question; above 0 it is relevant."""

    place: Place
    question: str
    passage: str
    grade: int


def read_qrels(path: Path) -> Iterator[Judgement]:
    """Yield the judgements of a file, each pair of question and passage once; TREC's iterations are not read."""
    known: dict[tuple[str, str], Judgement] = {}
    for number, (place, line) in enumerate(read_lines(path)):
        cells = line.split("\t")
        if len(cells) == 1 and len(spaced := line.split()) == 4:
            cells = spaced
        if len(cells) == 4 and ((second := cells[1].strip().lower()) in _ITERATIONS or second.isdecimal()):
            del cells[1]
        if number == 0 and _is_heading(cells, place):
            continue
        if len(cells) != 3:
            raise place.error(f"has {len(cells)} columns, must have 3 separated by tabs: query-id, corpus-id, score")
        for name, cell in zip(("query-id", "corpus-id"), cells, strict=False):
            if not cell.strip():
                raise place.error(f"column {name!r} is empty: each judgement names a question and a passage")
        found = Judgement(place, cells[0], cells[1], grade_value(cells[2], place))
        first = known.setdefault((found.question, found.passage), found)
        if first.grade != found.grade:
            raise place.error(
                f"column 'score' is {found.grade}, but line {first.place.number} gives the same pair {first.grade}: "
                "keep one"
            )
        if first is found:
            yield found


def _is_heading(cells: list[str], place: Place) -> bool:
    try:
        float(cells[-1])
    except ValueError:
        pass
    else:
        return False
    if len(cells) == 1:
        return False
    names = [cell.strip().lower().replace("_", "-") for cell in cells]
    columns = [next((i for i, known in enumerate(_HEADINGS) if name in known), None) for name in names]
    known = columns[0] == 0 and all(column in (None, i) for i, column in enumerate(columns))
    if not known or len(cells) != len(_HEADINGS):
        shown = ", ".join(map(repr, cells))
        raise place.error(
            f"the heading {shown} is unknown: name the columns query-id, corpus-id, score, in this order and separated "
            "by tabs; if it is a judgement, its last cell must be a whole number"
        )
    return True


def read_judgements(rows: Rows) -> Iterator[Judgement]:
    """Yield the judgements of a table with `query-id`, `corpus-id` and `score`; without scores it lists gold."""
    for place, record in rows:
        question, passage = (
            id_value(place, field, required(record, place, field)) for field in ("query-id", "corpus-id")
        )
        yield Judgement(place, question, passage, grade_value(record.get("score", 1), place))


def grade_value(value: object, place: Place) -> int:
    """Read a grade, a whole number that may be written 2.0. Raises InputError, with the place, for all else."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else nan
    except (ValueError, OverflowError):
        number = nan
    if not number.is_integer() or abs(number) > MAX_GRADE:
        shown = value if isinstance(value, int | float) else repr(value)
        raise place.error(
            f"column 'score' is {shown}, must be a whole number from -{MAX_GRADE} to {MAX_GRADE}, such as 2 or 2.0 "
            "(above 0 is relevant): round or rescale the grades"
        )
    return int(number)


_log = logging.getLogger(__name__)
GOLD_FIELD = "gold"
_NORMALISED = frozenset({"answer", "answer_aliases", "type"})
_QUESTION_FIELDS = frozenset({"_id", "id", "text", "question", "metadata"})


def make_question(
    place: Place, question_id: str, text: object, metadata: Mapping[str, Any], gold: Iterable[str] = ()
) -> BenchmarkQuestion:
    """Make a question whose metadata is normalised: `answer`, `answer_aliases` and `type` get fields of their own.

    `answer` may be a string or a list of accepted strings (the first is the answer, the others are aliases). A number
    or truth value is the text that JSON writes for it: `1931`, `true`.
    """
    words = text_value(place, "text", text)
    if not words.strip():
        raise place.error("field 'text' is empty: a question needs words")
    accepted: dict[str, None] = {}
    for field in ("answer", "answer_aliases"):
        given = metadata.get(field)
        for value in given if isinstance(given, list | tuple) else [] if given is None else [given]:
            whole = int(value) if isinstance(value, float) and value.is_integer() else value
            spelled = json.dumps(whole) if isinstance(whole, bool | int | float) else whole
            if (answer := text_value(place, f"metadata.{field}", spelled)).strip():
                accepted[answer] = None
    for name, value in metadata.items():
        try:
            json.dumps([name, value], ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise place.error(f"field 'metadata.{name!a}' holds a lone surrogate: remove it") from error
    return BenchmarkQuestion(
        id=question_id,
        text=words,
        type=text_value(place, "metadata.type", metadata.get("type"), optional=True),
        answer=next(iter(accepted), None),
        aliases=tuple(accepted)[1:],
        gold=gold if isinstance(gold, Gold) else Gold(gold),
        metadata={key: value for key, value in metadata.items() if value is not None and key not in _NORMALISED},
    )


def read_question(record: Record, place: Place, known: Container[str] | None = None) -> BenchmarkQuestion:
    """Read one question of a BEIR or user's file, with gold from its field `gold` if the `known` passages are given.

    Other fields than `metadata` are metadata too, which `metadata` overrules.
    """
    given = record.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise place.error(f"field 'metadata' must be an object, not {kind(given)}")
    metadata = {key: value for key, value in record.items() if key not in _QUESTION_FIELDS} | (given or {})
    gold = NO_GOLD if known is None else gold_value(metadata.pop(GOLD_FIELD, None), place, known)
    text = record["question"] if "question" in record and "text" not in record else required(record, place, "text")
    return make_question(place, record_id(record, place), text, metadata, gold)


def gold_value(value: object, place: Place, known: Container[str] = ()) -> Gold:
    """Read the gold of a field: an id, a list of ids, or a list of lists, which are alternative sets.

    A whole number that a table writes as `2.0` (a column with gaps) is an id without fraction where only that is known.
    """
    listed = list(value) if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    nested = [one for one in listed if isinstance(one, list | tuple)]
    if nested and len(nested) < len(listed):
        raise place.error(f"field {GOLD_FIELD!r} mixes ids and lists of ids: write each alternative set as a list")
    sets = [[id_value(place, GOLD_FIELD, one) for one in part if one is not None] for part in nested or [listed]]
    sets = [
        [short if one not in known and (short := one.removesuffix(".0")) in known else one for one in part]
        for part in sets
    ]
    try:
        return Gold.any_of(sets) if nested else Gold(sets[0])
    except InputError as error:
        raise place.error(f"field {GOLD_FIELD!r} {error}") from error


def read_questions(source: str, questions: Iterable[tuple[Place, BenchmarkQuestion]]) -> tuple[BenchmarkQuestion, ...]:
    """Collect all questions, in file order, each id once; an empty set is refused."""
    seen: dict[str, Place] = {}
    collected = []
    for place, question in questions:
        refuse_repeated("question", question.id, place, seen)
        collected.append(question)
    if not collected:
        raise InputError(f"{source}: there are no questions: it must hold at least one (_id, text)")
    return tuple(collected)


def read_query_rows(source: str, rows: Rows) -> tuple[BenchmarkQuestion, ...]:
    """Read the questions of a `queries` file, none with gold yet."""
    return read_questions(source, ((place, read_question(record, place)) for place, record in rows))


def read_questions_with_gold(source: str, rows: Rows, known: Iterable[str]) -> tuple[BenchmarkQuestion, ...]:
    """Read questions with gold from their field `gold`; those without are left out where others have some."""
    ids = frozenset(known)
    unknown: list[tuple[str, Place]] = []

    def read() -> Iterator[tuple[Place, BenchmarkQuestion]]:
        for place, record in rows:
            question = read_question(record, place, ids)
            unknown.extend((passage, place) for passage in question.gold if passage not in ids)
            yield place, question

    questions = read_questions(source, read())
    refuse_unknown(source, "gold id", "in the corpus", "Add the passages or remove the lines.", unknown, ids)
    return keep_judged(source, questions)


def read_question_file(path: Path, passages: Sequence[Passage]) -> tuple[BenchmarkQuestion, ...]:
    """Read the questions of a file, with gold from its folder's `qrels/`, else from `gold` or the evidence they quote.

    `gold` is a list of passages, or of lists: alternative sets, each of them full evidence. Where some have gold, those
    that have none are left out, as in BEIR.
    """
    known = ids_of(passages)
    files = judgement_files(path.parent)
    if not files:
        rows = Evidence(passages).rows(str(path), read_records(path))
        return read_questions_with_gold(str(path), rows, known)
    questions = read_query_rows(str(path), read_records(path))
    if len(files) > 1 or files[0].suffix != ".tsv":
        return attach_gold(str(files[0].parent), questions, read_judgements(rows_of(files)), known)
    stated = [one.metadata.get(GOLD_FIELD) for one in questions]
    if ignored := sum(isinstance(one, list) and sum(isinstance(part, list) for part in one) > 1 for one in stated):
        _log.warning(
            "%s: field 'gold' of %s questions holds sets, which %s beside it overrules: remove one of the two",
            *(path, ignored, files[0]),
        )
    return attach_gold(str(files[0]), questions, read_qrels(files[0]), known)


def attach_gold(
    source: str,
    questions: Sequence[BenchmarkQuestion],
    judgements: Iterable[Judgement],
    known: Iterable[str],
) -> tuple[BenchmarkQuestion, ...]:
    """Give each question its gold and all grades; passages beyond the `known` ids stay gold, which nothing finds."""
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
    if lost_questions:
        remedy = "Add the questions or remove the lines."
        refuse_unknown(source, "question id", "among the questions", remedy, lost_questions, grades)
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


def keep_judged(source: str, questions: Sequence[BenchmarkQuestion]) -> tuple[BenchmarkQuestion, ...]:
    """Keep the questions with gold, as BEIR scores only those; all of them when none has gold (a user's own)."""
    judged = tuple(question for question in questions if question.gold)
    if judged and len(judged) < len(questions):
        left_out = len(questions) - len(judged)
        _log.warning("%s: %s of %s questions have no gold and are left out", source, left_out, len(questions))
    return judged or tuple(questions)
