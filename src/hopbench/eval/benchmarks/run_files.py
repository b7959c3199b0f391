"""Read rankings of other systems from their files: TREC runs, JSON rankings and JSON scores.

A TREC run has six columns (`qid Q0 docid rank score tag`), of which rank and tag are not read. JSON scores are one
object, `{"q1": {"p1": 0.7}}`, as ranx, pytrec_eval and BEIR write it. JSON rankings are objects, one a line or in one
array, with a question's id and its passages, best first. Where passages have scores, these alone decide, as in
trec_eval: single-precision numbers, equal ones by id, the last id first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopbench.eval.benchmarks.fields import Place, id_value, kind, list_field, record_id, refuse_repeated
from hopbench.eval.benchmarks.files import Pairs, first_character, read_lines
from hopbench.eval.benchmarks.records import read_records
from hopbench.retrieval.external import Answer
from hopbench.retrieval.support.cached_files import file_sum
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.support.input_files import regular, unreadable

TREC, JSON, SCORES = "TREC run", "JSON rankings", "JSON scores"
QUESTION_FIELDS = ("question", "question_id", "query_id", "qid")  # and _id and id
PASSAGE_FIELDS = ("passages", "ranked_ids", "doc_ids")
_COLUMNS = ("qid", "Q0", "docid", "rank", "score", "tag")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RunFile:
    """Rankings by question id, the file's format and SHA-256; `ties` are passages scored as the one before them."""

    rankings: Mapping[str, Answer]
    form: str
    digest: str
    ties: int = 0


def load_run(path: str | Path) -> dict[str, list[str]]:
    """Map question ids to passage ids, best first: `load_rankings` without scores."""
    return {question: list(one.passages) for question, one in load_rankings(path).rankings.items()}


def load_rankings(path: str | Path) -> RunFile:
    """Read the rankings of a TREC run or of a JSON file of rankings or scores, whatever its name."""
    path = Path(path)
    first = first_character(path)
    if first not in {"{", "["}:
        form, found = TREC, _trec_rankings(path)
    elif first == "{" and (scores := _json_scores(path)) is not None:
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
    """Order passages as trec_eval does."""
    ranked = sorted(zip(_single(list(scores.values())).tolist(), scores, strict=True), reverse=True)
    return Answer([passage for _, passage in ranked], [scores[passage] for _, passage in ranked])


def _single(scores: Sequence[float]) -> NDArray[np.float32]:
    """Round scores to single precision, as trec_eval reads them."""
    with np.errstate(over="ignore"):  # beyond 3e38 all are infinite, and so equal
        return np.asarray(scores, np.float64).astype(np.float32)


def _number(value: object, place: Place, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"{what} {kind(value)}, must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number):
        raise place.error(f"{what} {number}, must be a finite number")
    return number


def _json_scores(path: Path) -> dict[str, dict[str, float]] | None:
    """Read one object, or one a line, whose values are all objects of scores; None for another form."""
    objects = _objects(path)
    first = next(objects, None)
    if not isinstance(first, Pairs) or not all(isinstance(scores, Pairs) for _, scores in first):
        return None
    found: dict[str, dict[str, float]] = {}
    number = 0
    for value in chain([first], objects):
        if not isinstance(value, Pairs):
            raise InputError(f"{path}: holds {kind(value)} after an object of scores: write one object in all")
        for key, pairs in value:
            number += 1
            place = Place(str(path), "question", number)
            question = id_value(place, "question", key)
            if question in found:
                raise place.error(f"{question!r} comes a second time: give each question's passages once")
            if not isinstance(pairs, Pairs):
                raise place.error(f"{question!r} has {kind(pairs)}, must have an object of scores by passage")
            scores = found[question] = {}
            for name, score in pairs:
                passage = id_value(place, "passage", name)
                if passage in scores:
                    raise place.error(f"{question!r} names {passage!r} twice: a ranking names each passage once")
                scores[passage] = _number(score, place, f"{question!r} has for {passage!r}")
    return found


def _objects(path: Path) -> Iterator[Any]:
    """Yield the JSON values of a file up to what is none; nothing where the reader of lines names the fault better."""
    try:
        text = regular(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(str(path), error) from error
    except UnicodeDecodeError:
        return
    decoder = json.JSONDecoder(object_pairs_hook=Pairs)
    at = start = len(text) - len(text.lstrip())
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
            if at == start and text[at:].split("\n", 1)[0].strip() != "{":
                return  # not one object over several lines
            raise InputError(f"{path}: not JSON that can be read ({error}): correct it") from error
        yield value
        while at < len(text) and text[at].isspace():
            at += 1


def _json_rankings(path: Path) -> dict[str, Answer]:
    seen: dict[str, Place] = {}
    found: dict[str, Answer] = {}
    for place, record in read_records(path):
        named = next((name for name in QUESTION_FIELDS if record.get(name) is not None), None)
        question_id = record_id(record, place) if named is None else id_value(place, named, record[named])
        refuse_repeated("question", question_id, place, seen)
        field = next((name for name in PASSAGE_FIELDS if name in record), "ranked_ids")
        ranked: dict[str, None] = {}
        for value in list_field(record, place, field):
            passage = id_value(place, field, value)
            if passage in ranked:
                raise place.error(f"field {field!r} holds {passage!r} twice: a ranking names each passage once")
            ranked[passage] = None
        if record.get("scores") is None:
            found[question_id] = Answer(list(ranked))
            continue
        scores = [_number(value, place, "field 'scores' holds") for value in list_field(record, place, "scores")]
        if len(scores) != len(ranked):
            raise place.error(f"field 'scores' has {len(scores)} numbers for the {len(ranked)} passages of {field!r}")
        for before, after in pairwise(scores):
            if after > before:
                raise place.error(
                    f"field 'scores' rises from {before:g} to {after:g}: list passages best first, a better one with a "
                    "higher score, or leave 'scores' out"
                )
        found[question_id] = _by_score(dict(zip(ranked, scores, strict=True))) if scores else Answer([])
    return found


def _trec_rankings(path: Path) -> dict[str, Answer]:
    with path.open("rb") as file:
        if file.read(2) == _GZIP:
            raise InputError(f"{path}: is compressed: unpack it (gunzip) and name the result")
    scores: dict[str, dict[str, float]] = {}
    lines: dict[tuple[str, str], int] = {}
    for place, line in read_lines(path):
        cells = line.split()
        if len(cells) != len(_COLUMNS):
            raise place.error(
                f"has {len(cells)} columns, must have the {len(_COLUMNS)} of a TREC run: {' '.join(_COLUMNS)}; JSON "
                "rankings begin with {"
            )
        try:
            score = float(cells[4])
        except ValueError as error:
            raise place.error(f"column 'score' is {cells[4]!r}, must be a number") from error
        if not isfinite(score):
            raise place.error(f"column 'score' is {cells[4]!r}, must be a finite number")
        question_id, passage_id = id_value(place, "qid", cells[0]), id_value(place, "docid", cells[2])
        first = lines.setdefault((question_id, passage_id), place.number)
        if first != place.number:
            raise place.error(
                f"ranks {passage_id!r} for question {question_id!r} again, first in line {first}: a ranking names each "
                "passage once, and trec_eval refuses it too"
            )
        scores.setdefault(question_id, {})[passage_id] = score
    return {question: _by_score(found) for question, found in scores.items()}
