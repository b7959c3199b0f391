"""Ready-made triples: relations extracted from the corpus elsewhere, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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
from hopbench.eval.benchmarks.files import read_jsonl
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Triple

MAX_TYPE_LENGTH = 80  # characters of a type, as many as a language model may write
MAX_WEIGHT = 10


def load_triples(path: str | Path, passage_ids: Iterable[str]) -> list[Triple]:
    """Read `passage_id, subject, relation, object` and optional details from JSON lines.

    Optional are `confidence` (0..1) or `weight` (1..10), either of which makes the relation's strength, `description`
    (the fact in words), `subject_type`, `object_type` (also `subj_type`, `obj_type`, as 2WikiMultihopQA's own triples
    have them), `subject_description` and `object_description`. Other fields are ignored.

    Parameters
    ----------
    path
        A JSONL file in UTF-8.
    passage_ids
        The `_id`s of the corpus that the triples were extracted from.

    Returns
    -------
    list of Triple
        In file order; `confidence` is weight/10 where the line gives a weight, and 1 where it gives neither (or null).

    Raises
    ------
    InputError
        For a file without triples, a field that is missing, empty or of the wrong type, a confidence outside 0..1 or a
        weight outside 1..10 (file, line and field are named), and for passages that are not in the corpus (with a
        count).
    """
    known = set(passage_ids)
    unknown = []
    triples = []
    for place, record in read_jsonl(Path(path)):
        triple = _triple(record, place)
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
    return Triple(
        passage_id=id_value(place, "passage_id", required(record, place, "passage_id")),
        subject=_name(record, place, "subject"),
        relation=_name(record, place, "relation"),
        object=_name(record, place, "object"),
        confidence=_strength(record, place),
        subject_type=_optional(record, place, "subject_type", "subj_type", limit=MAX_TYPE_LENGTH),
        object_type=_optional(record, place, "object_type", "obj_type", limit=MAX_TYPE_LENGTH),
        description=_optional(record, place, "description"),
        subject_description=_optional(record, place, "subject_description"),
        object_description=_optional(record, place, "object_description"),
    )


def _name(record: Record, place: Place, field: str) -> str:
    text = text_value(place, field, required(record, place, field)).strip()
    if not text:
        raise place.error(f"field {field!r} is empty: a triple needs a subject, a relation and an object")
    return text


def _optional(record: Record, place: Place, *names: str, limit: int = TEXT_LIMIT) -> str:
    """An optional text on one line, by the first of its names that the record has; "" where it has none (or null)."""
    field = next((name for name in names if record.get(name) is not None), None)
    if field is None:
        return ""
    text = " ".join(text_value(place, field, record[field]).split())
    if len(text) > limit:
        raise place.error(f"field {field!r} is {len(text):,} characters long, over the limit of {limit}: name a kind")
    return text


def _strength(record: Record, place: Place) -> float:
    """The strength, 0..1: the weight (how strong the relation is) if given, else the confidence (how certain)."""
    confidence = _number(record, place, "confidence", 0, 1)
    weight = _number(record, place, "weight", 1, MAX_WEIGHT)
    if weight is not None:
        return weight / MAX_WEIGHT
    return 1.0 if confidence is None else confidence


def _number(record: Record, place: Place, field: str, low: int, high: int) -> float | None:
    value = record.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"field {field!r} must be a number from {low} to {high}, not {kind(value)}")
    if not low <= value <= high:  # also refuses NaN
        raise place.error(f"field {field!r} is {value}, must be from {low} to {high}: rescale it or leave it out")
    return float(value)
