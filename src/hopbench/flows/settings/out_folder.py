"""Refuses to overwrite other work in an --out folder, or to write beside it; the same work may be repeated there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hopbench.eval.runs.files import RESULTS_FILE as RESULTS
from hopbench.eval.runs.files import RESULTS_SCHEMA as SCHEMA
from hopbench.eval.types import Benchmark
from hopbench.flows.settings.holder import held
from hopbench.retrieval.support.errors import InputError

SWEEP = "sweep.json"
LOCK = ".run.lock"
FORCE = "Name another --out, or replace it with --force"


def refuse_other_run(out: Path, benchmark: Benchmark, remedy: str = FORCE) -> None:
    """Raise InputError where `out` holds a run on other questions or passages, a sweep, or files of another program."""
    file = out / RESULTS
    if not file.is_file():
        if (out / SWEEP).is_file():
            raise InputError(f"{out} holds a sweep, whose report.html this run would replace. {remedy}")
        return
    found = _benchmark_of(file)
    if not found:
        raise InputError(f"{file} is not of a HopBench run ({SCHEMA}), and this run would replace it. {remedy}")
    if found.get("digest") == benchmark.digest:
        return
    there = f"{found.get('name')} ({found.get('questions')} questions, digest {str(found.get('digest'))[:12]})"
    here = f"{benchmark.name} ({len(benchmark.questions)} questions, digest {benchmark.digest[:12]})"
    raise InputError(f"{out} holds a finished run on {there}, and this one is on {here}. {remedy}")


@contextmanager
def only_run(out: Path, dataset: str) -> Iterator[None]:
    """Hold the folder while a run writes there. Raises InputError, naming the process, while another one does."""

    def refused(holder: str) -> InputError:
        return InputError(
            f"{out} is in use by another run: {holder}. Wait for its end or stop it, which this command then goes on "
            "from, or name another --out"
        )

    with held(out / LOCK, dataset, refused):
        yield


def refuse_run(out: Path) -> None:
    """Raise InputError where the folder of a sweep holds a finished run, whose report it would replace."""
    if (out / RESULTS).is_file() and not (out / SWEEP).is_file():
        raise InputError(f"{out} holds a finished run, whose report.html a sweep would replace: name another --out")


def _benchmark_of(file: Path) -> dict[str, Any]:
    """The benchmark recorded in results.json; empty where the file is damaged or another program's."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return dict(content["benchmark"]) if content["schema"] == SCHEMA else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
