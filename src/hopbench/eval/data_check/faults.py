"""Everything that keeps a folder from being loaded, not only the first of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from hopbench.eval.benchmarks.beir import find_table, has_table
from hopbench.eval.benchmarks.fields import Place, Record, refuse_unknown
from hopbench.eval.benchmarks.files import as_record, first_character, parse_json, read_lines
from hopbench.eval.benchmarks.hub_folder import parts_of
from hopbench.eval.benchmarks.loader import documents_of
from hopbench.eval.benchmarks.passages import Unique, read_passage
from hopbench.eval.benchmarks.published_sets import published_files
from hopbench.eval.benchmarks.qrels import find_qrels, read_qrels
from hopbench.eval.benchmarks.question_files import judgement_tables
from hopbench.eval.benchmarks.questions import read_question
from hopbench.eval.benchmarks.records import TABLES, layout_ending, read_records
from hopbench.retrieval.support.errors import InputError

T = TypeVar("T")
Item = TypeVar("Item")


def faults_of(folder: Path, questions: Path | None = None) -> list[str]:
    """The messages of all faults in corpus, questions and judgements, in this order; empty where none is found."""
    faults: list[str] = []
    if not has_table(folder, "corpus") and _is_read_whole(folder):
        return faults
    passages = _guarded(lambda: _passages(folder, faults), faults) or set()
    asked = _guarded(
        lambda: questions or (find_table(folder, "queries") if has_table(folder, "queries") else None), faults
    )
    if asked is None:
        return faults
    ids = _ids(asked, "question", faults)
    if _guarded(lambda: judgement_tables(asked.parent), faults):
        return faults  # the benchmark's own error names what is wrong in them
    judged = _guarded(lambda: find_qrels(asked.parent), faults)
    if judged is not None and not faults:  # ids that a fault hides would seem unknown
        relevant = [one for one in _each(read_qrels(judged), faults) if one.grade > 0]
        unknown = [(one.question, one.place) for one in relevant if one.question not in ids]
        missing = [(one.passage, one.place) for one in relevant]
        if any(one.passage in passages for one in relevant):
            missing = []  # a finding: some of the gold is there
        for noun, where, what, found, known in (
            ("question id", "among the questions", "questions", unknown, ids),
            ("gold id", "in the corpus", "passages", missing, passages),
        ):
            remedy = f"Add the {what} or remove the lines."
            refuse = partial(refuse_unknown, str(judged), noun, where, remedy, found, known)
            _guarded(refuse, faults)
    return faults


def _is_read_whole(folder: Path) -> bool:
    """Whether one reader reads all files of the folder, up to the first fault, which its error names."""
    try:
        return bool(parts_of(folder)) or published_files(folder) is not None
    except InputError:
        return True


def _passages(folder: Path, faults: list[str]) -> set[str]:
    if has_table(folder, "corpus"):
        return _ids(find_table(folder, "corpus"), "passage", faults)
    return {passage.id for passage in documents_of(folder).passages}


def _ids(path: Path, what: str, faults: list[str]) -> set[str]:
    """The ids of a table's rows, noting what is wrong with each row."""
    unique, found = Unique(what), set[str]()
    read = read_passage if what == "passage" else read_question
    for place, record in _rows(path, faults):

        def one(record: Record = record, place: Place = place) -> str:
            key = str(read(record, place).id)
            unique.add(key, place)
            return key

        if (key := _guarded(one, faults)) is not None:
            found.add(key)
    return found


def _rows(path: Path, faults: list[str]) -> Iterator[tuple[Place, Record]]:
    """The records of a file; of JSON lines also those after one that is broken."""
    start = "[" if layout_ending(path) in TABLES else _guarded(lambda: first_character(path), faults)
    if start is None:
        return
    if start == "[":
        yield from _each(iter(read_records(path)), faults)
        return
    for place, text in _each(read_lines(path), faults):

        def one(place: Place = place, text: str = text) -> Record:
            return as_record(parse_json(text, place), place)

        if (record := _guarded(one, faults)) is not None:
            yield place, record


def _each(items: Iterator[Item], faults: list[str]) -> Iterator[Item]:
    """The items up to the first fault, which is noted."""
    try:
        yield from items
    except InputError as error:
        faults.append(str(error))


def _guarded(call: Callable[[], T], faults: list[str]) -> T | None:
    try:
        return call()
    except InputError as error:
        faults.append(str(error))
        return None
