"""Questions and their gold: a `queries` file with `qrels` beside it, or with the gold passages in its own rows."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, Rows, id_value, refuse_unknown, required
from hopbench.eval.benchmarks.qrels import Judgement, find_qrels, grade_value, read_qrels
from hopbench.eval.benchmarks.questions import attach_gold, keep_judged, read_question, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.benchmarks.splits import GOLD_SPLITS, chosen_split, rows_of, splits_of
from hopbench.eval.gold import Gold
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

GOLD_FIELD = "gold"
_FRACTION = ".0"
_log = logging.getLogger(__name__)


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


def _with_gold(
    rows: Rows, named: list[tuple[str, Place]], known: Sequence[str]
) -> Iterator[tuple[Place, BenchmarkQuestion]]:
    """The questions with their gold, whose passages are added to `named`."""
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
