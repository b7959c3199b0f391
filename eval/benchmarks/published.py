"""Rankings that others made, read from their files: TREC runs and JSON rankings.

A TREC run has six columns (`qid Q0 docid rank score tag`); as in trec_eval, scores decide, and ranks only between equal
scores. JSON rankings are objects, one a line or in one array, with a question's id and its passages, best first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, id_value, kind, list_field, record_id
from hopbench.eval.benchmarks.files import first_character, read_lines
from hopbench.eval.benchmarks.passages import Unique
from hopbench.eval.benchmarks.records import read_records
from hopbench.retrieval.foreign.answer import Answer
from hopbench.retrieval.support.checksum import file_sum
from hopbench.retrieval.support.errors import InputError

TREC, JSON = "TREC run", "JSON rankings"
QUESTION_FIELDS = ("question", "question_id", "query_id", "qid")  # beside _id and id
PASSAGE_FIELDS = ("passages", "ranked_ids", "doc_ids")
_COLUMNS = ("qid", "Q0", "docid", "rank", "score", "tag")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RunFile:
    """Rankings by question id, the file's format, and the SHA-256 of its bytes."""

    rankings: Mapping[str, Answer]
    form: str
    digest: str


def load_run(path: str | Path) -> dict[str, list[str]]:
    """Question id → passage ids, best first: `load_rankings` without scores."""
    return {question: list(one.passages) for question, one in load_rankings(path).rankings.items()}


def load_rankings(path: str | Path) -> RunFile:
    """The rankings in a TREC run or in a file of JSON rankings, whatever its name.

    Raises
    ------
    InputError
        For an empty file, a question twice (JSON), a passage twice in one ranking, or a field of the wrong type; it
        names file, line and field.
    """
    path = Path(path)
    json_like = first_character(path) in {"{", "["}
    found = _json_rankings(path) if json_like else _trec_rankings(path)
    if not found:
        raise InputError(
            f"{path}: holds no rankings: each line must be an object with id and ranked_ids, or the six columns of a "
            f"TREC run ({' '.join(_COLUMNS)})"
        )
    return RunFile(found, JSON if json_like else TREC, file_sum(path))


def _json_rankings(path: Path) -> dict[str, Answer]:
    unique = Unique("question")
    found: dict[str, Answer] = {}
    for place, record in read_records(path):
        named = next((name for name in QUESTION_FIELDS if record.get(name) is not None), None)
        question_id = record_id(record, place) if named is None else id_value(place, named, record[named])
        unique.add(question_id, place)
        passages = next((name for name in PASSAGE_FIELDS if name in record), "ranked_ids")
        ranked = _ranking(record, place, passages)
        found[question_id] = Answer(ranked, _scores(record, place, passages, len(ranked)))
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
    scores = list_field(record, place, "scores")
    for value in scores:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.error(f"field 'scores' holds {kind(value)}, must hold numbers only")
    if len(scores) != count:
        raise place.error(f"field 'scores' has {len(scores)} numbers for the {count} passages of {passages!r}")
    rising = next((i for i in range(1, count) if scores[i] > scores[i - 1]), None)
    if rising is not None:
        raise place.error(
            f"field 'scores' rises from {scores[rising - 1]:g} to {scores[rising]:g}: list passages best first, a "
            "better one with a higher score, or leave 'scores' out"
        )
    return [float(value) for value in scores]


def _trec_rankings(path: Path) -> dict[str, Answer]:
    with path.open("rb") as file:
        if file.read(2) == _GZIP:
            raise InputError(f"{path}: is compressed: unpack it (gunzip) and name the result")
    rows: dict[str, dict[str, tuple[float, int, Place]]] = {}
    for place, line in read_lines(path):
        question_id, passage_id, rank, score = _trec_line(line.split(), place)
        of_question = rows.setdefault(question_id, {})
        first = of_question.setdefault(passage_id, (score, rank, place))[2]
        if first is not place:
            raise place.error(
                f"ranks {passage_id!r} for question {question_id!r} again, first in line {first.number}: a ranking "
                "names each passage once"
            )
    return {question: _ordered(found) for question, found in rows.items()}


def _ordered(found: Mapping[str, tuple[float, int, Place]]) -> Answer:
    ranked = sorted(found.items(), key=lambda item: (-item[1][0], item[1][1]))
    return Answer([passage for passage, _ in ranked], [score for _, (score, _, _) in ranked])


def _trec_line(cells: Sequence[str], place: Place) -> tuple[str, str, int, float]:
    if len(cells) != len(_COLUMNS):
        raise place.error(
            f"has {len(cells)} columns, must have the {len(_COLUMNS)} of a TREC run: {' '.join(_COLUMNS)}; JSON "
            "rankings begin with {"
        )
    question_id, _, passage_id, rank, score, _ = cells
    try:
        number = float(score)
    except ValueError as error:
        raise place.error(f"column 'score' is {score!r}, must be a number") from error
    if not isfinite(number):
        raise place.error(f"column 'score' is {score!r}, must be a finite number")
    try:
        return id_value(place, "qid", question_id), id_value(place, "docid", passage_id), int(rank), number
    except ValueError as error:
        raise place.error(f"column 'rank' is {rank!r}, must be a whole number") from error
