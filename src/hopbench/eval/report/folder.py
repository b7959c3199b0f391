"""Write a run's files when it ends, and read them to make its report again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

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
    from hopbench.retrieval.types import Hit


STEP_KEYS = ("edge", "source", "target", "weight", "score")


def report_data(evaluation: Evaluation, run: Mapping[str, Any], traces: pd.DataFrame | None = None) -> ReportData:
    """Collect the data of the report; `run` holds the facts of the command that it prints."""
    from hopbench.eval.explain import pairs_of, stated
    from hopbench.eval.runs.results import comparisons, questions_table, ragas_comparisons, results
    from hopbench.retrieval.question.linking import entity_names

    index, trials = evaluation.plan.index, evaluation.trials.values()
    paths, known = _Paths(evaluation), entity_names(index)
    shown = (step for key in paths for hit in paths.hits(key).values() for step in hit.path)
    ends = sorted({end for step in shown for end in (step.source, step.target)})
    names = {node: known[node] for node in ends if node in known}
    steps = (step for trial in trials for hits in trial.hits.values() for hit in hits for step in hit.path)
    return ReportData(
        results(evaluation),
        questions_table(evaluation),
        evaluation.plan.benchmark,
        comparisons(evaluation),
        evaluation.intervals,
        paths,
        run,
        names,
        stated(index, pairs_of(steps), lambda entity: names.get(entity, entity)),
        traces,
        ragas_comparisons(evaluation),
    )


@dataclass(frozen=True, eq=False)
class _Paths(Mapping[tuple[str, str], Sequence[HitEntry]]):
    """(question id, label) → first hits, each passage once; made on reading: those of 10,000 questions take many GB."""

    evaluation: Evaluation

    def hits(self, key: tuple[str, str]) -> dict[str, Hit]:
        question, label = key
        passage_of = self.evaluation.plan.index.passage_of
        first: dict[str, Hit] = {}
        for hit in self.evaluation.trials[label].hits[question]:
            first.setdefault(passage_of[hit.chunk_id], hit)
        return first

    def __getitem__(self, key: tuple[str, str]) -> list[HitEntry]:
        entries: list[HitEntry] = []
        for rank, (passage, hit) in enumerate(self.hits(key).items(), 1):
            entry: HitEntry = {
                "passage_id": passage,
                "rank": rank,
                "score": hit.score,
                "origin": hit.origin,
                "components": {name: round(float(value), 6) for name, value in hit.components.items()},
                "path": [cast("StepEntry", {name: getattr(step, name) for name in STEP_KEYS}) for step in hit.path],
            }
            if hit.source:
                entry["source"] = hit.source.facts()
            entries.append(entry)
        return entries

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((question, label) for label, trial in self.evaluation.trials.items() for question in trial.hits)

    def __len__(self) -> int:
        return sum(len(trial.hits) for trial in self.evaluation.trials.values())


def write_run(evaluation: Evaluation, out: Path, run: Mapping[str, Any]) -> list[Path]:
    """Write all files of the run atomically, results.json last; return them in order of writing."""
    traces = traces_table(evaluation.trials)
    data = report_data(evaluation, run, traces)
    table, judgements, report, summary = (
        out / name for name in (QUESTIONS_FILE, JUDGEMENTS_FILE, REPORT_FILE, RESULTS_FILE)
    )
    write_table(table, data.questions)
    judged = evaluation.read.judged
    if judged is None:
        judgements.unlink(missing_ok=True)  # of the run that was replaced
    else:  # a row per label, question, metric and repeat, with the score or the reason for none
        write_table(judgements, judged.table)
    files = [table, *([] if judged is None else [judgements]), write_traces(traces, out), write_details(data, out)]
    write_report(data, report)
    text = json.dumps(data.results, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(summary, text.encode())
    return [*files, report, summary]


def write_details(data: ReportData, folder: Path) -> Path:
    """Write the details that results.json and questions.parquet lack, so that the report can be made again.

    Paths go into the file one by one: of 10,000 questions their text alone has some GB.
    """
    content: RunDetails = {
        "schema": DETAILS_SCHEMA,
        "run": dict(data.run),
        "comparisons": list(data.comparisons),
        "beside": list(data.ragas_comparisons),
        "intervals": data.intervals,
        "names": dict(data.names),
        "stated": [(*pair, list(lines)) for pair, lines in sorted(data.stated.items())],
    }
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict).encode
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as text:
        text.write(f'{encode(content)[:-1]},"paths":['.encode())
        for number, (question, label) in enumerate(sorted(data.paths)):
            row = {"question_id": question, "strategy": label, "hits": list(data.paths[question, label])}
            text.write(f"{',' * (number > 0)}{encode(row)}".encode())
        text.write(b"]}")
    path = folder / DETAILS_FILE
    write_atomically(path, packed.getvalue())
    return path


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
        ragas_comparisons=details.get("beside", ()),
    )
