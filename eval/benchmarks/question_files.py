"""Questions and their gold: a `queries` file with `qrels` beside it, or with the gold passages in its own rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, Rows, id_value, required
from hopbench.eval.benchmarks.qrels import find_qrels, read_qrels
from hopbench.eval.benchmarks.questions import attach_gold, read_question, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.benchmarks.splits import GOLD_SPLITS, chosen_split, rows_of, splits_of
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.types import Passage

GOLD_FIELD = "gold"
_FRACTION = ".0"


def read_question_file(path: Path, passages: Sequence[Passage]) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a file, with gold from `qrels/` beside it, else from their own field `gold`.

    Where some have gold, those that have none are left out, as in BEIR; where none has, all are kept.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field; also for gold that no passage of `passages` is.
    """
    known = ids_of(passages)
    rows = read_records(path)
    if tables := judgement_tables(path.parent):
        judgements = read_judgements(rows_of(tables))
        return attach_gold(str(tables[0].parent), read_query_rows(str(path), rows), judgements, known)
    qrels = find_qrels(path.parent)
    if qrels is not None:
        return attach_gold(str(qrels), read_query_rows(str(path), rows), read_qrels(qrels), known)
    return read_questions_with_gold(str(path), rows, known)


def judgement_tables(folder: Path) -> Sequence[Path]:
    """The files of the judgements in `qrels/` where they are other tables than TSV, as the Hub has them; else none."""
    place = folder / "qrels"
    if not place.is_dir() or any(place.glob("*.tsv")) or not (splits := splits_of(place)):
        return ()
    return chosen_split(place, splits, GOLD_SPLITS)


def read_questions_with_gold(source: str, rows: Rows, known: Sequence[str]) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a file with gold from their field `gold`; all of them where none has any."""
    judged: list[tuple[Place, str, str]] = []
    questions = read_query_rows(source, _noting_gold(rows, judged))
    if any(one.endswith(_FRACTION) for _, _, one in judged):
        ids = set(known)
        judged = [(place, question, _whole_id(one, ids)) for place, question, one in judged]
    return attach_gold(source, questions, judged, known) if judged else questions


def _whole_id(value: str, known: Container[str]) -> str:
    """The id, without the `.0` that tables write at whole numbers beside gaps where only the whole number is known."""
    whole = value.removesuffix(_FRACTION)
    return whole if value not in known and whole in known else value


def read_query_rows(source: str, rows: Rows) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a `queries` file, none with gold yet."""
    return read_questions(source, ((place, read_question(record, place)) for place, record in rows))


def read_judgements(rows: Rows) -> Iterator[tuple[Place, str, str]]:
    """The gold of a table of judgements: (place, question id, passage id) of each row whose score is above 0.

    A table without scores (NanoBEIR) lists gold alone.
    """
    for place, record in rows:
        score = record.get("score", 1)
        if isinstance(score, str):
            score = float(score) if score.strip().lstrip("-").replace(".", "", 1).isdigit() else score
        if isinstance(score, bool) or not isinstance(score, int | float) or not float(score).is_integer():
            raise place.error(f"field 'score' is {score!r}, must be an integer (above 0 means gold)")
        if score > 0:
            ids = (id_value(place, field, required(record, place, field)) for field in ("query-id", "corpus-id"))
            yield place, next(ids), next(ids)


def _noting_gold(rows: Rows, judged: list[tuple[Place, str, str]]) -> Iterator[tuple[Place, Record]]:
    """The rows without `gold`, whose passages are added to `judged` as (place, question id, passage id)."""
    for place, record in rows:
        metadata = record.get("metadata")
        inner = metadata if isinstance(metadata, dict) else {}
        given = inner.get(GOLD_FIELD, record.get(GOLD_FIELD))
        without = {name: value for name, value in record.items() if name != GOLD_FIELD}
        if inner:
            without["metadata"] = {name: value for name, value in inner.items() if name != GOLD_FIELD}
        question = read_question(without, place)
        ids = given if isinstance(given, list | tuple) else [] if given in (None, "") else [given]
        judged += [(place, question.id, id_value(place, GOLD_FIELD, one)) for one in ids if one is not None]
        yield place, without
