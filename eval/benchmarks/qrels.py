"""BEIR's relevance judgements: tab-separated `query-id, corpus-id, score`, a header line first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hopbench.eval.benchmarks.fields import Place
from hopbench.eval.benchmarks.files import read_lines
from hopbench.retrieval.support.errors import InputError

_HEADERS = frozenset({"query-id", "query_id", "queryid", "question_id", "qid", "query"})


def find_qrels(folder: Path) -> Path | None:
    """The judgements of a folder: `qrels/test.tsv`, else the only other `qrels/*.tsv`; None without `qrels`.

    Raises
    ------
    InputError
        When `qrels` holds no TSV file, or several of which none is `test.tsv`.
    """
    place = folder / "qrels"
    if not place.exists():
        return None
    if not place.is_dir():
        raise InputError(f"{place}: must be a folder that holds test.tsv, not a file")
    files = sorted(place.glob("*.tsv"))
    test = place / "test.tsv"
    if test in files:
        return test
    if len(files) == 1:
        return files[0]
    names = ", ".join(path.name for path in files) or "none"
    raise InputError(
        f"{place}: needs test.tsv or exactly one other .tsv file (found: {names}): name one of them test.tsv"
    )


def read_qrels(path: Path) -> Iterator[tuple[Place, str, str]]:
    """The gold: (place, question id, passage id) of each line whose score is above 0.

    A pair judged twice with different scores is refused; the same line twice counts once.
    """
    scores: dict[tuple[str, str], tuple[int, Place]] = {}
    for place, line in read_lines(path):
        cells = line.split("\t")
        if place.number == 1 and cells[0].strip().lower() in _HEADERS:
            continue
        question_id, passage_id, score = _judgement(cells, place)
        first_score, first = scores.setdefault((question_id, passage_id), (score, place))
        if first_score != score:
            raise place.error(
                f"column 'score' is {score}, but line {first.number} gives the same pair {first_score}: keep one"
            )
        if score > 0 and first is place:
            yield place, question_id, passage_id


def _judgement(cells: list[str], place: Place) -> tuple[str, str, int]:
    if len(cells) != 3:
        raise place.error(f"has {len(cells)} columns, must have 3 separated by tabs: query-id, corpus-id, score")
    for name, cell in zip(("query-id", "corpus-id"), cells, strict=False):
        if not cell.strip():
            raise place.error(f"column {name!r} is empty: each judgement names a question and a passage")
    try:
        return cells[0], cells[1], int(cells[2])
    except ValueError as error:
        raise place.error(f"column 'score' is {cells[2]!r}, must be an integer (above 0 means gold)") from error
