"""The run folder: what a report is made from, and the file that lets it be made again."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from hopbench.eval.files import read_table, write_atomically
from hopbench.eval.report.data import ReportData
from hopbench.eval.trials.traces import TRACES_FILE
from hopbench.eval.types import Benchmark
from hopbench.retrieval.support.errors import InputError

DETAILS_SCHEMA = "hopbench.details/1"
DETAILS_FILE = "details.json.gz"


def write_details(data: ReportData, folder: Path) -> Path:
    """Write what results.json and questions.parquet do not hold, so that the report can be made again."""
    hits = [
        {"question_id": q, "strategy": label, "hits": list(hits)} for (q, label), hits in sorted(data.paths.items())
    ]
    content = {
        "schema": DETAILS_SCHEMA,
        "run": dict(data.run),
        "comparisons": list(data.comparisons),
        "beside": list(data.beside),
        "intervals": data.intervals,
        "names": dict(data.names),
        "stated": [[*pair, list(lines)] for pair, lines in sorted(data.stated.items())],
        "paths": hits,
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=dict)
    path = folder / DETAILS_FILE
    write_atomically(path, gzip.compress(text.encode(), 6, mtime=0))
    return path


def read_run(folder: Path, benchmark: Benchmark) -> ReportData:
    """Read a run's folder: results.json, questions.parquet and, where there is one, details.json.gz.

    Raises InputError when a file is missing or cannot be read.
    """
    for name in ("results.json", "questions.parquet"):
        if not (folder / name).is_file():
            raise InputError(f"{folder / name} does not exist: name the --out folder of a finished run")
    try:
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        packed = folder / DETAILS_FILE
        details = json.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else {}
        questions = read_table(folder / "questions.parquet")
        traces = read_table(folder / TRACES_FILE) if (folder / TRACES_FILE).is_file() else None
    except (ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
        raise InputError(f"{folder}: a file of the run is damaged ({error}): run the benchmark again") from error
    if not isinstance(results, dict) or not isinstance(details, dict):
        raise InputError(f"{folder}: a file of the run is damaged (it holds no object): run the benchmark again")
    shared = {name: details[name] for name in ("run", "comparisons", "beside", "intervals", "names") if name in details}
    paths = {(row["question_id"], row["strategy"]): row["hits"] for row in details.get("paths", [])}
    told = {(first, second): lines for first, second, lines in details.get("stated", [])}
    return ReportData(
        results=results,
        questions=questions,
        benchmark=benchmark,
        paths=paths,
        stated=told,
        traces=traces,
        **shared,
    )
