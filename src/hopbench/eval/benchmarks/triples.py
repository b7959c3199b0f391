"""Read ready-made triples: relations extracted from the corpus elsewhere, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hopbench.eval.benchmarks.fields import (
    TEXT_LIMIT,
    Place,
    Record,
    id_value,
    kind,
    refuse_unknown,
    required,
    text_value,
)
from hopbench.eval.benchmarks.files import as_record, parse_json, read_lines
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Triple

MAX_TYPE_LENGTH = 80  # characters of a type, as many as a language model may write
MAX_WEIGHT = 10
_DETAILS = {
    "subject_type": ("subj_type", MAX_TYPE_LENGTH),
    "object_type": ("obj_type", MAX_TYPE_LENGTH),
    "description": ("", TEXT_LIMIT),
    "subject_description": ("", TEXT_LIMIT),
    "object_description": ("", TEXT_LIMIT),
}
"""Optional field → another name of it, and the limit of its length."""


def load_triples(path: str | Path, passage_ids: Iterable[str]) -> list[Triple]:
    """Read `passage_id, subject, relation, object` and optional details from JSON lines.

    Optional are `confidence` (0..1) or `weight` (1..10), either of which makes the relation's strength, `description`
    (the fact in words), `subject_type`, `object_type` (also `subj_type`, `obj_type`, as 2WikiMultihopQA's own triples
    have them), `subject_description` and `object_description`. Other fields are ignored.

    Args:
        path: A JSONL file in UTF-8.
        passage_ids: The `_id`s of the corpus that the triples were extracted from.

    Returns:
        The triples in file order; `confidence` is weight/10 where the line gives a weight, and 1 where it gives
        neither (or null).

    Raises:
        InputError: For a file without triples, a field that is missing, empty, of the wrong type or out of its range
            (file, line and field are named), and for passages that are not in the corpus (with a count).
    """
    known = set(passage_ids)
    triples, unknown = [], []
    for place, text in read_lines(Path(path)):
        triple = _triple(as_record(parse_json(text, place), place), place)
        triples.append(triple)
        if triple.passage_id not in known:
            unknown.append((triple.passage_id, place))
    if not triples:
        raise InputError(
            f"{path}: holds no triples: each line must be an object with passage_id, subject, relation, object"
        )
    where = f"in the corpus of {len(known):,} passages"
    remedy = "Use the triples of this benchmark or remove the lines."
    refuse_unknown(str(path), "passage_id", where, remedy, unknown, known)
    return triples


def _triple(record: Record, place: Place) -> Triple:
    passage_id = id_value(place, "passage_id", required(record, place, "passage_id"))
    names: dict[str, Any] = {}
    for field in ("subject", "relation", "object"):
        names[field] = text_value(place, field, required(record, place, field)).strip()
        if not names[field]:
            raise place.error(f"field {field!r} is empty: a triple needs a subject, a relation and an object")
    strengths = {}
    for field, low, high in (("confidence", 0, 1), ("weight", 1, MAX_WEIGHT)):
        value = record.get(field)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.error(f"field {field!r} must be a number from {low} to {high}, not {kind(value)}")
        if not low <= value <= high:  # also refuses NaN
            raise place.error(f"field {field!r} is {value}, must be from {low} to {high}: rescale it or leave it out")
        strengths[field] = value / high
    details: dict[str, Any] = {}
    for field, (other, limit) in _DETAILS.items():
        given = other if other and record.get(field) is None else field
        details[field] = " ".join(text_value(place, given, record.get(given), optional=True).split())
        if len(details[field]) > limit:
            raise place.error(
                f"field {given!r} is {len(details[field]):,} characters long, over the limit of {limit}: name a kind"
            )
    # How strong the relation is counts before how certain it is.
    confidence = strengths.get("weight", strengths.get("confidence", 1.0))
    return Triple(passage_id=passage_id, **names, confidence=confidence, **details)
