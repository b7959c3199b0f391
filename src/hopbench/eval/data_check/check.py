"""Check what a data set holds and lacks, what keeps it from being loaded, and what of HopBench works on it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hopbench.eval.benchmarks import load_benchmark
from hopbench.eval.benchmarks.beir import documents_of, find_table
from hopbench.eval.benchmarks.documents import read_documents
from hopbench.eval.benchmarks.evidence import REMEDY, Evidence
from hopbench.eval.benchmarks.fields import Place, Record, refuse_repeated, refuse_unknown
from hopbench.eval.benchmarks.files import as_record, first_character, parse_json, read_lines
from hopbench.eval.benchmarks.hub import parts_of
from hopbench.eval.benchmarks.passages import read_passage
from hopbench.eval.benchmarks.published_sets import published_files
from hopbench.eval.benchmarks.questions import judgement_files, read_qrels, read_question
from hopbench.eval.benchmarks.records import TABLES, layout_ending, read_records
from hopbench.eval.data_check.findings import Fact, contents, findings
from hopbench.eval.metrics import all_metrics, primary_metric
from hopbench.eval.metrics.base import Need
from hopbench.eval.types import Benchmark, BenchmarkQuestion, Finding
from hopbench.retrieval.support.errors import InputError
from hopbench.retrieval.types import Passage

Item = TypeVar("Item")
Row = TypeVar("Row", Passage, BenchmarkQuestion)
Faults = list[str]


@contextmanager
def _noting(faults: Faults) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        faults.append(str(error))


def _each(items: Iterable[Item], faults: Faults) -> Iterator[Item]:
    with _noting(faults):
        yield from items


def faults_of(folder: Path, questions: Path | None = None) -> Faults:
    """List the messages of all faults in corpus, questions and judgements, in this order."""
    faults: Faults = []
    passages: dict[str, Passage] = {}
    documents, file, judged = folder, questions, None
    with _noting(faults):
        documents, own = documents_of(folder)
        file = file or own
    with _noting(faults):
        if corpus := find_table(folder, "corpus"):
            passages = _items(corpus, "passage", read_passage, faults)
        elif _is_read_whole(folder):
            return faults
        else:
            passages = {passage.id: passage for passage in read_documents(documents).passages}
    if file is None:
        return faults
    with _noting(faults):
        judged = next(iter(judgement_files(file.parent)), None)
    evidence = Evidence(list(passages.values()) if judged is None else ())

    def read(record: Record, place: Place) -> BenchmarkQuestion:
        return read_question(evidence.resolved(record, place) if judged is None else record, place)

    ids = _items(file, "question", read, faults)
    faults += [
        f"{place}: a quote of {quote} is in no passage of the file named. {REMEDY}" for quote, place in evidence.unknown
    ]
    if judged is None or judged.suffix != ".tsv" or faults:  # ids that a fault hides would seem unknown
        return faults  # of other tables the benchmark's own error names what is wrong
    relevant = [one for one in _each(read_qrels(judged), faults) if one.grade > 0]
    unknown = [(one.question, one.place) for one in relevant if one.question not in ids]
    missing = [(one.passage, one.place) for one in relevant]
    if any(one.passage in passages for one in relevant):
        missing = []  # a finding: some of the gold is there
    for noun, where, what, found, known in (
        ("question id", "among the questions", "questions", unknown, ids),
        ("gold id", "in the corpus", "passages", missing, passages),
    ):
        with _noting(faults):
            refuse_unknown(str(judged), noun, where, f"Add the {what} or remove the lines.", found, known)
    return faults


def _is_read_whole(folder: Path) -> bool:
    """Whether one reader reads all files of the folder, up to the first fault, which its error names."""
    try:
        return bool(parts_of(folder)) or published_files(folder) is not None
    except InputError:
        return True


def _items(path: Path, what: str, read: Callable[[Record, Place], Row], faults: Faults) -> dict[str, Row]:
    seen: dict[str, Place] = {}
    items: dict[str, Row] = {}
    for place, record in _rows(path, faults):
        with _noting(faults):
            item = read(record, place)
            refuse_repeated(what, item.id, place, seen)
            items[item.id] = item
    return items


def _rows(path: Path, faults: Faults) -> Iterator[tuple[Place, Record]]:
    """Yield the records of a file; of JSON lines also those after one that is broken."""
    with _noting(faults):
        if layout_ending(path) in TABLES or first_character(path) == "[":
            yield from read_records(path)
            return
        for place, text in read_lines(path):
            record = None
            with _noting(faults):
                record = as_record(parse_json(text, place), place)
            if record is not None:
                yield place, record


WORDS: dict[Need, str] = {
    "gold": "gold passages",
    "answers": "answers that a text can show",
    "reference": "answers",
    "reader": "--llm",
    "judge": "--judge",
}
"""What a data set or a flag must give; contexts and graphs every run makes by itself."""


class Use(NamedTuple):
    """A metric or command: its needs, the count of questions that meet them (a command works with any), and a note."""

    name: str
    needs: tuple[str, ...]
    available: int
    note: str = ""


def metric_uses(benchmark: Benchmark) -> list[Use]:
    """List all metrics in the order of their registry."""
    return [
        Use(
            metric.name,
            tuple(WORDS[need] for need in metric.needs if need in WORDS) or ("questions",),
            sum(map(metric.applies, benchmark.questions)),
        )
        for metric in all_metrics().values()
    ]


def command_uses(benchmark: Benchmark) -> list[Use]:
    """List the commands that take a data set."""
    count = len(benchmark.questions)
    gold = sum(bool(question.gold) for question in benchmark.questions)
    primary = primary_metric(benchmark) if count else None
    ranked = f"ranked by {primary}" if primary else "not ranked: nothing says which is better"
    role = "warns, as the role is report: --set-role tune" if benchmark.role == "report" else ""
    return [
        Use("graph build, explain", ("passages",), len(benchmark.passages)),
        Use("run, nightly", ("questions",), count, f"labels are {ranked}" if count else ""),
        Use("sweep", ("gold passages or answers", "and the role tune"), count if primary else 0, role),
        Use("train hoprank", ("gold passages", "and the role tune"), gold, role),
    ]


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
    metrics: Sequence[Use] = ()
    commands: Sequence[Use] = ()
    faults: Sequence[str] = ()
    questions: Path | None = None

    def next_commands(self, written: Path | None = None) -> list[str]:
        """Name the commands that come next, for the folder that was `written` if there is one."""
        if self.benchmark is None:
            return []
        dataset = shlex.quote(str(written or self.dataset))
        name = shlex.quote(written.name if written else self.benchmark.name)
        if not self.benchmark.questions:
            synthesize = f"hopbench synthesize --dataset {dataset} --out {name}-questions"
            return [f"hopbench annotate {dataset}", synthesize]
        asked = f" --questions {shlex.quote(str(self.questions))}" if self.questions and not written else ""
        return [f"hopbench run --dataset {dataset}{asked} --strategies all,all:tuned --out {name}-run"]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        known = self.benchmark
        about = {} if known is None else {"name": known.name, "role": known.role, "digest": known.digest}
        return {
            "dataset": self.dataset,
            **about,
            "faults": list(self.faults),
            "content": {fact.name: {"count": fact.count, "note": fact.note} for fact in self.facts},
            "findings": [asdict(finding) for finding in self.findings],
            "metrics": {use.name: {"needs": list(use.needs), "questions": use.available} for use in self.metrics},
            "commands": {
                use.name: {"needs": ", ".join(use.needs), "works": use.available > 0, "note": use.note}
                for use in self.commands
            },
            "next": self.next_commands(),
        }


def check_data(dataset: str, questions: Path | None = None) -> Checked:
    """Check a data set, with or without questions; of one that cannot be loaded, list all that stops it."""
    try:
        benchmark = load_benchmark(dataset, questions=questions, need_questions=False)
    except InputError as error:
        folder = Path(os.path.expanduser(dataset))
        if not folder.exists():
            raise
        faults = faults_of(folder, questions) if folder.is_dir() else []
        return Checked(dataset, None, faults=faults or [str(error)])
    uses = metric_uses(benchmark), command_uses(benchmark)
    return Checked(dataset, benchmark, contents(benchmark), findings(benchmark, questions), *uses, questions=questions)
