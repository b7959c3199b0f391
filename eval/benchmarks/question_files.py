"""Questions and their gold: a `queries` file with `qrels` beside it, or with the gold passages in its own rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place, Record, Rows, id_value
from hopbench.eval.benchmarks.qrels import find_qrels, read_qrels
from hopbench.eval.benchmarks.questions import attach_gold, read_question, read_questions
from hopbench.eval.benchmarks.records import read_records
from hopbench.eval.types import BenchmarkQuestion
from hopbench.retrieval.corpus import ids_of
from hopbench.retrieval.types import Passage

GOLD_FIELD = "gold"


def read_question_file(path: Path, passages: Sequence[Passage]) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a file, with gold from `qrels/*.tsv` beside it, else from their own field `gold`.

    Where some have gold, those that have none are left out, as in BEIR; where none has, all are kept.

    Raises
    ------
    InputError
        For the first thing that is wrong, with file, line and field; also for gold that no passage of `passages` is.
    """
    qrels = find_qrels(path.parent)
    known = ids_of(passages)
    if qrels is not None:
        questions = read_query_rows(str(path), read_records(path))
        return attach_gold(str(qrels), questions, read_qrels(qrels), known)
    judged: list[tuple[Place, str, str]] = []
    questions = read_query_rows(str(path), _noting_gold(read_records(path), judged))
    return attach_gold(str(path), questions, judged, known) if judged else questions


def read_query_rows(source: str, rows: Rows) -> tuple[BenchmarkQuestion, ...]:
    """The questions of a `queries` file, none with gold yet."""
    return read_questions(source, ((place, read_question(record, place)) for place, record in rows))


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
        judged += [(place, question.id, id_value(place, GOLD_FIELD, one)) for one in ids]
        yield place, without
