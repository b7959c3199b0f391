"""Questions and their gold: a `queries` file with `qrels` beside it, or with the gold passages in its own rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, Rows, id_value, refuse_unknown
from hopbench.eval.benchmarks.qrels import find_qrels, read_qrels
from hopbench.eval.benchmarks.questions import attach_gold, keep_judged, read_question, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.gold import Gold
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

GOLD_FIELD = "gold"
_log = logging.getLogger(__name__)


def read_question_file(path: Path, passages: Sequence[Passage]) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a file, with gold from `qrels/*.tsv` beside it, else from their own field `gold`.

    `gold` is a list of passages, or of lists: alternative sets, each of them full evidence. Where some have gold, those
    that have none are left out, as in BEIR; where none has, all are kept.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field; also for a field `gold` that names passages beyond
        `passages`.
    """
    qrels = find_qrels(path.parent)
    known = ids_of(passages)
    if qrels is not None:
        rows = list(read_records(path))
        if ignored := sum(len(_lists(_taken(record)[0])) > 1 for _, record in rows):
            _log.warning(
                "%s: field 'gold' of %s questions holds sets, which %s beside it overrules: remove one of the two",
                *(path, ignored, qrels),
            )
        questions = read_query_rows(str(path), rows)
        return attach_gold(str(qrels), questions, read_qrels(qrels), known)
    named: list[tuple[str, Place]] = []
    questions = read_questions(str(path), _with_gold(read_records(path), named))
    ids = set(known) if named else set()
    unknown = [(passage, place) for passage, place in named if passage not in ids]
    refuse_unknown(str(path), "gold id", "in the corpus", "Add the passages or remove the lines.", unknown)
    return keep_judged(str(path), questions)


def read_query_rows(source: str, rows: Rows) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a `queries` file, none with gold yet."""
    return read_questions(source, ((place, read_question(record, place)) for place, record in rows))


def gold_value(value: object, place: Place) -> Gold:
    """The gold of a field: an id, a list of ids, or a list of lists, which are alternative sets."""
    listed = list(value) if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    nested = _lists(listed)
    if not nested:
        return Gold(id_value(place, GOLD_FIELD, one) for one in listed)
    if len(nested) < len(listed):
        raise place.error(f"field {GOLD_FIELD!r} mixes ids and lists of ids: write each alternative set as a list")
    try:
        return Gold.any_of([[id_value(place, GOLD_FIELD, one) for one in passages] for passages in nested])
    except InputError as error:
        raise error if str(error).startswith(str(place)) else place.error(f"field {GOLD_FIELD!r} {error}") from error


def _lists(value: object) -> list[Sequence[object]]:
    """The lists in a list."""
    return [one for one in value if isinstance(one, list | tuple)] if isinstance(value, list | tuple) else []


def _taken(record: Record) -> tuple[object, Record]:
    """The value of `gold`, in metadata or beside it, and the record without it."""
    metadata = record.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    without = {name: value for name, value in record.items() if name != GOLD_FIELD}
    if inner:
        without["metadata"] = {name: value for name, value in inner.items() if name != GOLD_FIELD}
    return inner.get(GOLD_FIELD, record.get(GOLD_FIELD)), without


def _with_gold(rows: Rows, named: list[tuple[str, Place]]) -> Iterator[tuple[Place, BenchmarkQuestion]]:
    """The questions with their gold, whose passages are added to `named`."""
    for place, record in rows:
        given, without = _taken(record)
        gold = gold_value(given, place)
        named += [(passage, place) for passage in gold]
        yield place, replace(read_question(without, place), gold=gold)
