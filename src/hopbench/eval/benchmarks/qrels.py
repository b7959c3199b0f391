"""Relevance judgements: BEIR's tab-separated `query-id, corpus-id, score` below a heading, or TREC's four columns."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import NamedTuple

from hopbench.eval.benchmarks.fields import Place
from hopbench.eval.benchmarks.files import read_lines
from hopbench.retrieval.support.errors import InputError

MAX_GRADE = 1_000_000
_HEADINGS = (
    frozenset({"query-id", "queryid", "question-id", "qid", "query"}),
    frozenset({"corpus-id", "corpusid", "passage-id", "document-id", "doc-id", "docid", "docno", "pid"}),
    frozenset({"score", "relevance", "rel", "grade", "label"}),
)
"""What the columns may be called, in their order; - and _ mean the same."""
_ITERATIONS = frozenset({"iter", "iteration", "q0"})
"""What TREC's second column may hold beside numbers, in lower case; nobody reads it."""


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


class Judgement(NamedTuple):
    """A grade that a passage was given for a question; above 0 it is relevant."""

    place: Place
    question: str
    passage: str
    grade: int


def read_qrels(path: Path) -> Iterator[Judgement]:
    """The judgements of a file, each pair of question and passage once.

    A pair judged twice with different grades is refused; the same line twice counts once.
    """
    known: dict[tuple[str, str], Judgement] = {}
    for number, (place, line) in enumerate(read_lines(path)):
        cells = _cells(line)
        if number == 0 and _is_heading(cells, place):
            continue
        found = _judgement(cells, place)
        first = known.setdefault((found.question, found.passage), found)
        if first.grade != found.grade:
            raise place.error(
                f"column 'score' is {found.grade}, but line {first.place.number} gives the same pair {first.grade}: "
                "keep one"
            )
        if first is found:
            yield found


def grade_value(value: object, place: Place) -> int:
    """A grade as a whole number, also where it is written 2.0. Raises InputError, with the place, for all else."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else nan
    except (ValueError, OverflowError):
        number = nan
    if not number.is_integer() or abs(number) > MAX_GRADE:
        shown = value if isinstance(value, int | float) else repr(value)
        raise place.error(
            f"column 'score' is {shown}, must be a whole number from -{MAX_GRADE} to {MAX_GRADE}, such as 2 or 2.0 "
            "(above 0 is relevant): round or rescale the grades"
        )
    return int(number)


def _cells(line: str) -> list[str]:
    """A line's three columns; of TREC's four, which spaces or tabs part, all but the second (the iteration)."""
    cells = line.split("\t")
    if len(cells) == 1 and len(spaced := line.split()) == 4:
        cells = spaced
    if len(cells) == 4 and ((second := cells[1].strip().lower()) in _ITERATIONS or second.isdecimal()):
        del cells[1]
    return cells


def _is_heading(cells: list[str], place: Place) -> bool:
    """Whether a file's first line names its columns; an error where it names other ones, or in another order."""
    if len(cells) == 1 or _is_number(cells[-1]):
        return False
    names = [cell.strip().lower().replace("_", "-") for cell in cells]
    columns = [next((i for i, known in enumerate(_HEADINGS) if name in known), None) for name in names]
    known = columns[0] == 0 and all(column in (None, i) for i, column in enumerate(columns))
    if not known or len(cells) != len(_HEADINGS):
        shown = ", ".join(map(repr, cells))
        raise place.error(
            f"the heading {shown} is unknown: name the columns query-id, corpus-id, score, in this order and separated "
            "by tabs; if it is a judgement, its last cell must be a whole number"
        )
    return True


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _judgement(cells: list[str], place: Place) -> Judgement:
    if len(cells) != 3:
        raise place.error(f"has {len(cells)} columns, must have 3 separated by tabs: query-id, corpus-id, score")
    for name, cell in zip(("query-id", "corpus-id"), cells, strict=False):
        if not cell.strip():
            raise place.error(f"column {name!r} is empty: each judgement names a question and a passage")
    return Judgement(place, cells[0], cells[1], grade_value(cells[2], place))
