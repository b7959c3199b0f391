"""The files of a run: written when it ends, read again to make its report anew."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.files import write_atomically, write_table
from hopbench.eval.report.data import ReportData
from hopbench.eval.report.render import write_report
from hopbench.eval.runs.finished import FinishedRun
from hopbench.eval.runs.schema import (
    DETAILS_FILE,
    DETAILS_SCHEMA,
    JUDGEMENTS_FILE,
    QUESTIONS_FILE,
    REPORT_FILE,
    RESULTS_FILE,
    RunDetails,
)
from hopbench.eval.trials.traces import traces_table, write_traces
from hopbench.eval.types import Benchmark

if TYPE_CHECKING:
    from hopbench.eval.runs.evaluate import Evaluation


def write_run(evaluation: Evaluation, out: Path, run: Mapping[str, Any]) -> list[Path]:
    """Write all files of the run, each whole or not at all, results.json last; returns them in order of writing."""
    from hopbench.eval.report.evaluated import report_data  # loads pandas; who reads a run needs none of it

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
    """judgements.parquet: a row per label, question, metric and repeat, with the score or the reason why none."""
    if evaluation.read.judged is None:
        (out / JUDGEMENTS_FILE).unlink(missing_ok=True)  # of the run that was replaced
        return []
    write_table(out / JUDGEMENTS_FILE, evaluation.read.judged.table)
    return [out / JUDGEMENTS_FILE]


def write_details(data: ReportData, folder: Path) -> Path:
    """Write what results.json and questions.parquet do not hold, so that the report can be made again.

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
