"""Ready triples: relations that someone extracted from the corpus beforehand, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eval.benchmarks.fields import id_value, kind, required, text_value
from eval.benchmarks.files import read_jsonl
from eval.benchmarks.place import Place, Record, refuse_unknown
from retrieval.errors import InputError
from retrieval.types import Triple


def load_triples(path: str | Path, passage_ids: Iterable[str]) -> list[Triple]:
    """Read `passage_id, subject, relation, object[, confidence]` from JSON lines; other fields are ignored.

    Parameters
    ----------
    path
        A JSONL file in UTF-8.
    passage_ids
        The `_id`s of the corpus that the triples were extracted from.

    Returns
    -------
    list of Triple
        In file order; `confidence` is 1 where the line gives none (or null).

    Raises
    ------
    InputError
        For a file without triples, a field that is missing, empty or of the wrong type, a confidence outside 0..1
        (file, line and field are named), and for passages that are not in the corpus (with a count).
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
    refuse_unknown(str(path), "passage_id", where, "Use the triples of this benchmark or remove the lines.", unknown)
    return triples


def _triple(record: Record, place: Place) -> Triple:
    return Triple(
        passage_id=id_value(place, "passage_id", required(record, place, "passage_id")),
        subject=_name(record, place, "subject"),
        relation=_name(record, place, "relation"),
        object=_name(record, place, "object"),
        confidence=_confidence(record.get("confidence"), place),
    )


def _name(record: Record, place: Place, field: str) -> str:
    text = text_value(place, field, required(record, place, field)).strip()
    if not text:
        raise place.error(f"field {field!r} is empty: a triple needs a subject, a relation and an object")
    return text


def _confidence(value: object, place: Place) -> float:
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"field 'confidence' must be a number from 0 to 1, not {kind(value)}")
    if not 0 <= value <= 1:  # also refuses NaN
        raise place.error(f"field 'confidence' is {value}, must be from 0 to 1: rescale it or leave it out")
    return float(value)
