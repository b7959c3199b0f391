"""Write a run's files when it ends, and read them to make its report again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically, write_table
from hopbench.eval.report._render import write_report
from hopbench.eval.report.data import ReportData
from hopbench.eval.runs.files import (
    DETAILS_FILE,
    DETAILS_SCHEMA,
    JUDGEMENTS_FILE,
    QUESTIONS_FILE,
    REPORT_FILE,
    RESULTS_FILE,
    FinishedRun,
    HitEntry,
    RunDetails,
    StepEntry,
)
from hopbench.eval.runs.results import traces_table, write_traces
from hopbench.eval.types import Benchmark

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation
    from hopbench.eval.trials.trial import TrialOutcome
    from hopbench.retrieval.types import Hit


def report_data(evaluation: Evaluation, run: Mapping[str, Any], traces: pd.DataFrame | None = None) -> ReportData:
    """Collect the data of the report; `run` holds the facts of the command that it prints."""
    from hopbench.eval.runs.results import comparisons, questions_table, ragas_comparisons, results

    names = _names(evaluation)
    return ReportData(
        results(evaluation),
        questions_table(evaluation),
        evaluation.plan.benchmark,
        comparisons(evaluation),
        evaluation.intervals,
        _Paths(evaluation),
        run,
        names,
        _stated(evaluation, names),
        traces,
        ragas_comparisons(evaluation),
    )


@dataclass(frozen=True, eq=False)
class _Paths(Mapping[tuple[str, str], Sequence[HitEntry]]):
    """(question id, label) → first hits, made on reading: those of 10,000 questions would take many GB."""

    evaluation: Evaluation

    def __getitem__(self, key: tuple[str, str]) -> list[HitEntry]:
        question, label = key
        hits = _hits(self.evaluation, self.evaluation.trials[label], question)
        return [_hit(passage, rank, hit) for rank, (passage, hit) in enumerate(hits.items(), 1)]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((question, label) for label, trial in self.evaluation.trials.items() for question in trial.hits)

    def __len__(self) -> int:
        return sum(len(trial.hits) for trial in self.evaluation.trials.values())


def _hits(evaluation: Evaluation, trial: TrialOutcome, question: str) -> dict[str, Hit]:
    """The first hits of a question by passage, each passage once."""
    passage_of = evaluation.plan.index.passage_of
    first: dict[str, Hit] = {}
    for hit in trial.hits[question]:
        first.setdefault(passage_of[hit.chunk_id], hit)
    return first


def _hit(passage: str, rank: int, hit: Hit) -> HitEntry:
    steps: list[StepEntry] = [
        {"edge": step.edge, "source": step.source, "target": step.target, "weight": step.weight, "score": step.score}
        for step in hit.path
    ]
    entry: HitEntry = {
        "passage_id": passage,
        "rank": rank,
        "score": hit.score,
        "origin": hit.origin,
        "components": {name: round(float(value), 6) for name, value in hit.components.items()},
        "path": steps,
    }
    if hit.source:
        entry["source"] = hit.source.facts()
    return entry


def _names(evaluation: Evaluation) -> dict[str, str]:
    """Readable names of the entities on the paths."""
    asked = ((trial, question) for trial in evaluation.trials.values() for question in trial.hits)
    hits = (hit for trial, question in asked for hit in _hits(evaluation, trial, question).values())
    shown = {end for hit in hits for step in hit.path for end in (step.source, step.target)}
    from hopbench.retrieval.question.linking import entity_names

    known = entity_names(evaluation.plan.index)
    return {node: known[node] for node in sorted(shown) if node in known}


def _stated(evaluation: Evaluation, names: Mapping[str, str]) -> Mapping[tuple[str, str], Sequence[str]]:
    """The statements about each pair of entities that the paths join."""
    from hopbench.eval.explain import pairs_of, stated

    trials = evaluation.trials.values()
    shown = (step for trial in trials for hits in trial.hits.values() for hit in hits for step in hit.path)
    return stated(evaluation.plan.index, pairs_of(shown), lambda entity: names.get(entity, entity))


def write_run(evaluation: Evaluation, out: Path, run: Mapping[str, Any]) -> list[Path]:
    """Write all files of the run atomically, results.json last; return them in order of writing."""
    traces = traces_table(evaluation.trials)
    data = report_data(evaluation, run, traces)
    table, report, summary = out / QUESTIONS_FILE, out / REPORT_FILE, out / RESULTS_FILE
    write_table(table, data.questions)
    judged = [*_write_judgements(evaluation, out), write_traces(traces, out)]
    details = write_details(data, out)
    write_report(data, report)
    text = json.dumps(data.results, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(summary, text.encode())
    return [table, *judged, details, report, summary]


def _write_judgements(evaluation: Evaluation, out: Path) -> list[Path]:
    """Write judgements.parquet: a row per label, question, metric and repeat, with the score or the reason for none."""
    if evaluation.read.judged is None:
        (out / JUDGEMENTS_FILE).unlink(missing_ok=True)  # of the run that was replaced
        return []
    write_table(out / JUDGEMENTS_FILE, evaluation.read.judged.table)
    return [out / JUDGEMENTS_FILE]


def write_details(data: ReportData, folder: Path) -> Path:
    """Write the details that results.json and questions.parquet lack, so that the report can be made again.

    Paths go into the file one by one: of 10,000 questions their text alone has some GB.
    """
    content: RunDetails = {
        "schema": DETAILS_SCHEMA,
        "run": dict(data.run),
        "comparisons": list(data.comparisons),
        "beside": list(data.beside),
        "intervals": data.intervals,
        "names": dict(data.names),
        "stated": [(*pair, list(lines)) for pair, lines in sorted(data.stated.items())],
    }
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as text:
        text.write(_json(content)[:-1] + b',"paths":[')
        for number, (question, label) in enumerate(sorted(data.paths)):
            hits = list(data.paths[question, label])
            text.write(b"," * (number > 0) + _json({"question_id": question, "strategy": label, "hits": hits}))
        text.write(b"]}")
    path = folder / DETAILS_FILE
    write_atomically(path, packed.getvalue())
    return path


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict).encode()


def read_run(folder: Path, benchmark: Benchmark) -> ReportData:
    """Read a run's folder: results.json, questions.parquet and, where there are any, traces and details.

    Raises InputError when a file is missing or damaged.
    """
    run = FinishedRun.read(folder)
    details = run.details
    return ReportData(
        results=run.results,
        questions=run.table,
        benchmark=benchmark,
        comparisons=details.get("comparisons", ()),
        intervals=details.get("intervals", {}),
        paths={(row["question_id"], row["strategy"]): row["hits"] for row in details.get("paths", ())},
        run=run.facts,
        names=details.get("names", {}),
        stated={(first, second): lines for first, second, lines in details.get("stated", ())},
        traces=run.traces,
        beside=details.get("beside", ()),
    )
