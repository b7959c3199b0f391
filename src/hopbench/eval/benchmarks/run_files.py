"""Rankings of other systems, read from their files: TREC runs, JSON rankings and JSON scores.

A TREC run has six columns (`qid Q0 docid rank score tag`), of which rank and tag are not read. JSON scores are one
object, `{"q1": {"p1": 0.7}}`, as ranx, pytrec_eval and BEIR write it. JSON rankings are objects, one a line or in one
array, with a question's id and its passages, best first. Where passages have scores, these alone decide, as in
trec_eval: single-precision numbers, equal ones by id, the last id first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.benchmarks.fields import Place, Record, id_value, kind, list_field, record_id
from hopbench.eval.benchmarks.files import first_character, read_lines
from hopbench.eval.benchmarks.passages import Unique
from hopbench.eval.benchmarks.records import read_records
from hopbench.retrieval.external import Answer
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular, unreadable

_SPACE = re.compile(r"\s*")


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with its names in their order; one may come twice."""


def read_scores(path: Path) -> dict[str, dict[str, float]] | None:
    """The scores of one object, or one a line, whose values are all objects of scores; None for another form."""
    objects = _objects(path)
    first = next(objects, None)
    if not isinstance(first, _Pairs) or not all(isinstance(scores, _Pairs) for _, scores in first):
        return None
    found: dict[str, dict[str, float]] = {}
    for number, (key, scores) in enumerate(_named(path, chain([first], objects)), start=1):
        place = Place(str(path), "question", number)
        question = id_value(place, "question", key)
        if question in found:
            raise place.error(f"{question!r} comes a second time: give each question's passages once")
        if not isinstance(scores, _Pairs):
            raise place.error(f"{question!r} has {kind(scores)}, must have an object of scores by passage")
        found[question] = _scores_of(scores, question, place)
    return found


def _named(path: Path, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for value in values:
        if not isinstance(value, _Pairs):
            raise InputError(f"{path}: holds {kind(value)} after an object of scores: write one object in all")
        yield from value


def _scores_of(pairs: _Pairs, question: str, place: Place) -> dict[str, float]:
    scores: dict[str, float] = {}
    for key, value in pairs:
        passage = id_value(place, "passage", key)
        if passage in scores:
            raise place.error(f"{question!r} names {passage!r} twice: a ranking names each passage once")
        scores[passage] = number_value(value, place, f"{question!r} has for {passage!r}")
    return scores


def _objects(path: Path) -> Iterator[Any]:
    """The JSON values of a file, one after another, up to what is none; its first line alone may be a value."""
    try:
        text = regular(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(str(path), error) from error
    except UnicodeDecodeError:
        return  # the reader of lines names the place
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    at = start = _after_space(text, 0)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
            if at == start and text[at:].split("\n", 1)[0].strip() != "{":
                return  # not one object over several lines; the reader of lines names the place
            raise InputError(f"{path}: not JSON that can be read ({error}): correct it") from error
        yield value
        at = _after_space(text, at)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def number_value(value: object, place: Place, what: str) -> float:
    """A finite number; `what` begins the message where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"{what} {kind(value)}, must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number):
        raise place.error(f"{what} {number}, must be a finite number")
    return number


TREC, JSON, SCORES = "TREC run", "JSON rankings", "JSON scores"
QUESTION_FIELDS = ("question", "question_id", "query_id", "qid")  # beside _id and id
PASSAGE_FIELDS = ("passages", "ranked_ids", "doc_ids")
_COLUMNS = ("qid", "Q0", "docid", "rank", "score", "tag")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RunFile:
    """Rankings by question id, the file's format, and the SHA-256 of its bytes.

    `ties` are the passages with the score of the one before them.
    """

    rankings: Mapping[str, Answer]
    form: str
    digest: str
    ties: int = 0


def load_run(path: str | Path) -> dict[str, list[str]]:
    """Question id → passage ids, best first: `load_rankings` without scores."""
    return {question: list(one.passages) for question, one in load_rankings(path).rankings.items()}


def load_rankings(path: str | Path) -> RunFile:
    """The rankings in a TREC run or in a JSON file of rankings or scores, whatever its name.

    Raises
    ------
    InputError
        For an empty file, a question or a passage of a ranking twice, or a field of the wrong type; it names file,
        line and field.
    """
    path = Path(path)
    first = first_character(path)
    if first not in {"{", "["}:
        form, found = TREC, _trec_rankings(path)
    elif first == "{" and (scores := read_scores(path)) is not None:
        form, found = SCORES, {question: _by_score(one) for question, one in scores.items()}
    else:
        form, found = JSON, _json_rankings(path)
    if not found:
        raise InputError(
            f"{path}: holds no rankings: each line must be an object with id and ranked_ids, or the six columns of a "
            f"TREC run ({' '.join(_COLUMNS)}), or the file one object of scores by question and passage"
        )
    ties = sum(len(one.scores) - len(np.unique(_single(one.scores))) for one in found.values())
    return RunFile(found, form, file_sum(path), ties)


def _by_score(scores: Mapping[str, float]) -> Answer:
    """Passages as trec_eval orders them."""
    ranked = sorted(zip(_single(list(scores.values())).tolist(), scores, strict=True), reverse=True)
    return Answer([passage for _, passage in ranked], [scores[passage] for _, passage in ranked])


def _single(scores: Sequence[float]) -> NDArray[np.float32]:
    """Scores as trec_eval reads them."""
    with np.errstate(over="ignore"):  # beyond 3e38 all are infinite, and so equal
        return np.asarray(scores, np.float64).astype(np.float32)


def _json_rankings(path: Path) -> dict[str, Answer]:
    unique = Unique("question")
    found: dict[str, Answer] = {}
    for place, record in read_records(path):
        named = next((name for name in QUESTION_FIELDS if record.get(name) is not None), None)
        question_id = record_id(record, place) if named is None else id_value(place, named, record[named])
        unique.add(question_id, place)
        passages = next((name for name in PASSAGE_FIELDS if name in record), "ranked_ids")
        ranked = _ranking(record, place, passages)
        scores = _scores(record, place, passages, len(ranked))
        found[question_id] = _by_score(dict(zip(ranked, scores, strict=True))) if scores else Answer(ranked)
    return found


def _ranking(record: Record, place: Place, field: str) -> list[str]:
    ranked = [id_value(place, field, value) for value in list_field(record, place, field)]
    seen: set[str] = set()
    for passage_id in ranked:
        if passage_id in seen:
            raise place.error(f"field {field!r} holds {passage_id!r} twice: a ranking names each passage once")
        seen.add(passage_id)
    return ranked


def _scores(record: Record, place: Place, passages: str, count: int) -> Sequence[float]:
    """A score for each passage, none above the one before it; empty where the record has none."""
    if record.get("scores") is None:
        return ()
    scores = [number_value(value, place, "field 'scores' holds") for value in list_field(record, place, "scores")]
    if len(scores) != count:
        raise place.error(f"field 'scores' has {len(scores)} numbers for the {count} passages of {passages!r}")
    rising = next((i for i in range(1, count) if scores[i] > scores[i - 1]), None)
    if rising is not None:
        raise place.error(
            f"field 'scores' rises from {scores[rising - 1]:g} to {scores[rising]:g}: list passages best first, a "
            "better one with a higher score, or leave 'scores' out"
        )
    return scores


def _trec_rankings(path: Path) -> dict[str, Answer]:
    with path.open("rb") as file:
        if file.read(2) == _GZIP:
            raise InputError(f"{path}: is compressed: unpack it (gunzip) and name the result")
    scores: dict[str, dict[str, float]] = {}
    lines: dict[tuple[str, str], int] = {}
    for place, line in read_lines(path):
        question_id, passage_id, score = _trec_line(line.split(), place)
        first = lines.setdefault((question_id, passage_id), place.number)
        if first != place.number:
            raise place.error(
                f"ranks {passage_id!r} for question {question_id!r} again, first in line {first}: a ranking names each "
                "passage once, and trec_eval refuses it too"
            )
        scores.setdefault(question_id, {})[passage_id] = score
    return {question: _by_score(found) for question, found in scores.items()}


def _trec_line(cells: Sequence[str], place: Place) -> tuple[str, str, float]:
    if len(cells) != len(_COLUMNS):
        raise place.error(
            f"has {len(cells)} columns, must have the {len(_COLUMNS)} of a TREC run: {' '.join(_COLUMNS)}; JSON "
            "rankings begin with {"
        )
    question_id, _, passage_id, _, score, _ = cells
    try:
        number = float(score)
    except ValueError as error:
        raise place.error(f"column 'score' is {score!r}, must be a number") from error
    if not isfinite(number):
        raise place.error(f"column 'score' is {score!r}, must be a finite number")
    return id_value(place, "qid", question_id), id_value(place, "docid", passage_id), number
