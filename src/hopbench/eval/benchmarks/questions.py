"""From records to questions and their gold: a `queries` file with `qrels` beside it, or with gold in its own rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from hopbench.eval.benchmarks.fields import (
    Place,
    Record,
    Rows,
    id_value,
    kind,
    optional_text,
    record_id,
    refuse_unknown,
    required,
    text_value,
    whole,
)
from hopbench.eval.benchmarks.files import read_lines
from hopbench.eval.benchmarks.passages import Unique
from hopbench.eval.benchmarks.records import GOLD_SPLITS, chosen_split, read_records, rows_of, splits_of
from hopbench.eval.types import BenchmarkQuestion, Gold
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
_ITERATIONS = frozenset({"iter", "iteration", "q0"})  # in TREC's second column, beside numbers


def find_qrels(folder: Path) -> Path | None:
    """The judgements of a folder: `qrels/test.tsv`, else the only other `qrels/*.tsv`; None without `qrels`.

    Raises
    ------
    InputError
        When `qrels` holds no TSV file, or several of which none is `test.tsv`.
    """
    place = folder / "qrels"
    if not place.exists():
        return None
    if not place.is_dir():
        raise InputError(f"{place}: must be a folder that holds test.tsv, not a file")
    files = sorted(place.glob("*.tsv"))
    test = place / "test.tsv"
    if test in files:
        return test
    if len(files) == 1:
        return files[0]
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
    """The judgements of a file, each pair of question and passage once.

    A pair judged twice with different grades is refused; the same line twice counts once.
    """
    known: dict[tuple[str, str], Judgement] = {}
    for number, (place, line) in enumerate(read_lines(path)):
        cells = _cells(line)
        if number == 0 and _is_heading(cells, place):
            continue
        found = _judgement(cells, place)
        first = known.setdefault((found.question, found.passage), found)
        if first.grade != found.grade:
            raise place.error(
                f"column 'score' is {found.grade}, but line {first.place.number} gives the same pair {first.grade}: "
                "keep one"
            )
        if first is found:
            yield found


def grade_value(value: object, place: Place) -> int:
    """A grade as a whole number, also where it is written 2.0. Raises InputError, with the place, for all else."""
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


def _cells(line: str) -> list[str]:
    """A line's three columns; of TREC's four, which spaces or tabs part, all but the second (the iteration)."""
    cells = line.split("\t")
    if len(cells) == 1 and len(spaced := line.split()) == 4:
        cells = spaced
    if len(cells) == 4 and ((second := cells[1].strip().lower()) in _ITERATIONS or second.isdecimal()):
        del cells[1]
    return cells


def _is_heading(cells: list[str], place: Place) -> bool:
    if len(cells) == 1 or _is_number(cells[-1]):
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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _judgement(cells: list[str], place: Place) -> Judgement:
    if len(cells) != 3:
        raise place.error(f"has {len(cells)} columns, must have 3 separated by tabs: query-id, corpus-id, score")
    for name, cell in zip(("query-id", "corpus-id"), cells, strict=False):
        if not cell.strip():
            raise place.error(f"column {name!r} is empty: each judgement names a question and a passage")
    return Judgement(place, cells[0], cells[1], grade_value(cells[2], place))


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
    for field, value in metadata.items():
        try:
            json.dumps([field, value], ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            raise place.error(f"field 'metadata.{field!a}' holds a lone surrogate: remove it") from error


def _texts(place: Place, field: str, metadata: Mapping[str, Any]) -> list[str]:
    value = metadata.get(field)
    values = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    return [
        text for text in (text_value(place, f"metadata.{field}", _spelled(item)) for item in values) if text.strip()
    ]


def _spelled(value: object) -> object:
    return json.dumps(whole(value)) if isinstance(value, bool | int | float) else value


def read_question(record: Record, place: Place) -> BenchmarkQuestion:
    """One question of a BEIR or user's file. Fields beside `metadata` are metadata too, which `metadata` overrules."""
    given = record.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise place.error(f"field 'metadata' must be an object, not {kind(given)}")
    text = record["question"] if "question" in record and "text" not in record else required(record, place, "text")
    own = {key: value for key, value in record.items() if key not in _QUESTION_FIELDS}
    return make_question(place, record_id(record, place), text, {**own, **(given or {})})


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
    question_ids = [question.id for question in questions]
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
        source,
        "question id",
        "among the questions",
        "Add the questions or remove the lines.",
        lost_questions,
        question_ids,
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


GOLD_FIELD = "gold"
_FRACTION = ".0"


def read_question_file(path: Path, passages: Sequence[Passage]) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a file, with gold from `qrels/` beside it, else from their own field `gold`.

    `gold` is a list of passages, or of lists: alternative sets, each of them full evidence. Where some have gold, those
    that have none are left out, as in BEIR; where none has, all are kept.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field; also for a field `gold` that names passages beyond
        `passages`.
    """
    known = ids_of(passages)
    rows = read_records(path)
    if tables := judgement_tables(path.parent):
        judgements = read_judgements(rows_of(tables))
        return attach_gold(str(tables[0].parent), read_query_rows(str(path), rows), judgements, known)
    qrels = find_qrels(path.parent)
    if qrels is not None:
        rows = list(rows)
        if ignored := sum(len(_lists(_taken(record)[0])) > 1 for _, record in rows):
            _log.warning(
                "%s: field 'gold' of %s questions holds sets, which %s beside it overrules: remove one of the two",
                *(path, ignored, qrels),
            )
        questions = read_query_rows(str(path), rows)
        return attach_gold(str(qrels), questions, read_qrels(qrels), known)
    return read_questions_with_gold(str(path), rows, known)


def judgement_tables(folder: Path) -> Sequence[Path]:
    """The files of the judgements in `qrels/` where they are other tables than TSV, as the Hub has them; else none."""
    place = folder / "qrels"
    if not place.is_dir() or any(place.glob("*.tsv")) or not (splits := splits_of(place)):
        return ()
    return chosen_split(place, splits, GOLD_SPLITS)


def read_questions_with_gold(source: str, rows: Rows, known: Sequence[str]) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a file with gold from their field `gold`; all of them where none has any."""
    named: list[tuple[str, Place]] = []
    questions = read_questions(source, _with_gold(rows, named, known))
    ids = set(known) if named else set()
    unknown = [(passage, place) for passage, place in named if passage not in ids]
    refuse_unknown(source, "gold id", "in the corpus", "Add the passages or remove the lines.", unknown, ids)
    return keep_judged(source, questions)


def read_query_rows(source: str, rows: Rows) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a `queries` file, none with gold yet."""
    return read_questions(source, ((place, read_question(record, place)) for place, record in rows))


def gold_value(value: object, place: Place, known: Container[str] = ()) -> Gold:
    """The gold of a field: an id, a list of ids, or a list of lists, which are alternative sets.

    A whole number that a table writes as `2.0`, beside gaps, is an id without its fraction where only that is known.
    """
    listed = list(value) if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    nested = _lists(listed)
    if not nested:
        return Gold(_gold_ids(listed, place, known))
    if len(nested) < len(listed):
        raise place.error(f"field {GOLD_FIELD!r} mixes ids and lists of ids: write each alternative set as a list")
    sets = [_gold_ids(passages, place, known) for passages in nested]
    try:
        return Gold.any_of(sets)
    except InputError as error:
        raise place.error(f"field {GOLD_FIELD!r} {error}") from error


def _gold_ids(values: Sequence[object], place: Place, known: Container[str]) -> list[str]:
    ids = [id_value(place, GOLD_FIELD, one) for one in values if one is not None]
    return [_whole_id(one, known) if one.endswith(_FRACTION) else one for one in ids]


def _whole_id(value: str, known: Container[str]) -> str:
    whole = value.removesuffix(_FRACTION)
    return whole if value not in known and whole in known else value


def _lists(value: object) -> list[Sequence[object]]:
    return [one for one in value if isinstance(one, list | tuple)] if isinstance(value, list | tuple) else []


def _taken(record: Record) -> tuple[object, Record]:
    metadata = record.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    without = {name: value for name, value in record.items() if name != GOLD_FIELD}
    if inner:
        without["metadata"] = {name: value for name, value in inner.items() if name != GOLD_FIELD}
    return inner.get(GOLD_FIELD, record.get(GOLD_FIELD)), without


def _with_gold(
    rows: Rows, named: list[tuple[str, Place]], known: Sequence[str]
) -> Iterator[tuple[Place, BenchmarkQuestion]]:
    ids = frozenset(known)
    for place, record in rows:
        given, without = _taken(record)
        gold = gold_value(given, place, ids)
        named += [(passage, place) for passage in gold]
        yield place, replace(read_question(without, place), gold=gold)


def read_judgements(rows: Rows) -> Iterator[Judgement]:
    """The judgements of a table with `query-id`, `corpus-id` and `score`; without scores (NanoBEIR) it lists gold."""
    for place, record in rows:
        question, passage = (
            id_value(place, field, required(record, place, field)) for field in ("query-id", "corpus-id")
        )
        yield Judgement(place, question, passage, grade_value(record.get("score", 1), place))
