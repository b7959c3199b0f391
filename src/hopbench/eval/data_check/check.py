"""What a data set holds and lacks, what keeps it from being loaded, and what of HopBench works on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.beir import find_table, has_table
from hopbench.eval.benchmarks.fields import Place, Record, refuse_unknown
from hopbench.eval.benchmarks.files import as_record, first_character, parse_json, read_lines
from hopbench.eval.benchmarks.hub import parts_of
from hopbench.eval.benchmarks.loader import documents_of
from hopbench.eval.benchmarks.passages import Unique, read_passage
from hopbench.eval.benchmarks.published_sets import published_files
from hopbench.eval.benchmarks.questions import find_qrels, judgement_tables, read_qrels, read_question
from hopbench.eval.benchmarks.records import TABLES, layout_ending, read_records
from hopbench.eval.data_check.findings import Fact, contents, findings
from hopbench.eval.metrics import all_metrics, primary_metric
from hopbench.eval.metrics.base import Metric, Need
from hopbench.eval.types import Benchmark, Finding
from hopbench.retrieval.support.errors import InputError

T = TypeVar("T")
Item = TypeVar("Item")


def faults_of(folder: Path, questions: Path | None = None) -> list[str]:
    """The messages of all faults in corpus, questions and judgements, in this order; empty where none is found."""
    faults: list[str] = []
    if not has_table(folder, "corpus") and _is_read_whole(folder):
        return faults
    passages = _guarded(lambda: _passages(folder, faults), faults) or set()
    question_file = _guarded(
        lambda: questions or (find_table(folder, "queries") if has_table(folder, "queries") else None), faults
    )
    if question_file is None:
        return faults
    ids = _ids(question_file, "question", faults)
    if _guarded(lambda: judgement_tables(question_file.parent), faults):
        return faults  # the benchmark's own error names what is wrong in them
    judged = _guarded(lambda: find_qrels(question_file.parent), faults)
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


WORDS: dict[Need, str] = {
    "gold": "gold passages",
    "answers": "answers that a text can show",
    "reference": "answers",
    "reader": "--llm",
    "judge": "--judge",
}
"""What a data set or a flag must give; contexts and graphs every run makes by itself."""


class MetricUse(NamedTuple):
    """A metric: what it needs of data and flags, and for how many questions the data set has that."""

    name: str
    needs: tuple[str, ...]
    questions: int


class CommandUse(NamedTuple):
    """A command: what it needs of a data set, whether it has it, and a word on it."""

    command: str
    needs: str
    works: bool
    note: str = ""


def metric_uses(benchmark: Benchmark) -> list[MetricUse]:
    """All metrics in the order of their registry."""
    return [
        MetricUse(metric.name, _needs(metric), sum(map(metric.applies, benchmark.questions)))
        for metric in all_metrics().values()
    ]


def _needs(metric: Metric) -> tuple[str, ...]:
    return tuple(WORDS[need] for need in metric.needs if need in WORDS) or ("questions",)


def command_uses(benchmark: Benchmark) -> list[CommandUse]:
    """The commands that take a data set."""
    return list(_commands(benchmark))


def _commands(benchmark: Benchmark) -> Iterator[CommandUse]:
    asked = bool(benchmark.questions)
    gold = any(question.gold for question in benchmark.questions)
    primary = primary_metric(benchmark) if asked else None
    yield CommandUse("graph build, explain", "passages", True)
    yield CommandUse("run, nightly", "questions", asked, _ranked_by(primary) if asked else "")
    yield CommandUse("sweep", "gold passages or answers, and the role tune", primary is not None, _role(benchmark))
    yield CommandUse("train hoprank", "gold passages, and the role tune", gold, _role(benchmark))


def _ranked_by(primary: str | None) -> str:
    return f"labels are ranked by {primary}" if primary else "labels are not ranked: nothing says which is better"


def _role(benchmark: Benchmark) -> str:
    return "warns, as the role is report: --set-role tune" if benchmark.role == "report" else ""


ROLES = {
    "tune": "for tuning: sweep and train may choose numbers by it; what they choose must not be reported on it",
    "report": "for reporting: figures on it count, so nothing is tuned on it or learned from it",
    "user": "questions without gold passages: neither for tuning nor for reporting",
}


@dataclass(frozen=True)
class Checked:
    """The outcome. `faults` are messages that stop every command; then there is no benchmark and nothing else."""

    dataset: str
    benchmark: Benchmark | None
    facts: Sequence[Fact] = ()
    findings: Sequence[Finding] = ()
    metrics: Sequence[MetricUse] = ()
    commands: Sequence[CommandUse] = ()
    faults: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        known = self.benchmark
        about = {} if known is None else {"name": known.name, "role": known.role, "digest": known.digest}
        return {
            "dataset": self.dataset,
            **about,
            "faults": list(self.faults),
            "content": {fact.name: {"count": fact.count, "note": fact.note} for fact in self.facts},
            "findings": [asdict(finding) for finding in self.findings],
            "metrics": {use.name: {"needs": list(use.needs), "questions": use.questions} for use in self.metrics},
            "commands": {
                use.command: {"needs": use.needs, "works": use.works, "note": use.note} for use in self.commands
            },
        }


def check_data(dataset: str, questions: Path | None = None) -> Checked:
    """Check a data set, with or without questions; of one that cannot be loaded, all that stops it.

    Raises
    ------
    InputError
        When there is nothing to look at: an unknown name, or a path where nothing is.
    """
    try:
        benchmark = load_benchmark(dataset, questions=questions, need_questions=False)
    except InputError as error:
        folder = Path(os.path.expanduser(dataset))
        if not folder.exists():
            raise
        faults = faults_of(folder, questions) if folder.is_dir() else []
        return Checked(dataset, None, faults=faults or [str(error)])
    return Checked(
        dataset,
        benchmark,
        contents(benchmark, questions),
        findings(benchmark, questions),
        metric_uses(benchmark),
        command_uses(benchmark),
    )
