"""The flow `nightly`: what `hopbench nightly` does, from a schedule, Prefect's pages or another flow."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hopbench.flows.api.deployable.definition import deployable
from hopbench.flows.api.runs import Run
from hopbench.flows.nights.ending import ending, exit_code_of
from hopbench.flows.nights.options import EVERYTHING, NightlyOptions
from hopbench.flows.orchestration.artifacts import leave
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.parameters import as_flags, own, parameters_of
from hopbench.flows.settings.run_settings import RunSettings, run_options
from hopbench.flows.settings.setting import declared

OUT = own("out", str | None, None, "Folder for the files of this night (default: under home).")
PARAMETERS = [
    *parameters_of(GraphOptions, RunSettings, NightlyOptions, dataset="hopworld", strategies=EVERYTHING),
    OUT,
]
SERVED = "HOPBENCH_SERVED"
"""Set in the processes of `hopbench serve`, on whose console each night has a line."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Night:
    """A night that reached a good verdict, or the first one: its run, `outcome` (baseline, good) and the verdict."""

    run: Run
    outcome: str
    lines: tuple[str, ...]


@deployable("nightly", PARAMETERS, "nightly {dataset}")
def nightly(**values: Any) -> Night:
    """Build if needed, run all strategies, score, track, report, compare with the last good night. Returns the night.

    Fails, as `hopbench nightly` exits with 3 or 4, where there is a regression or the night is incomplete.
    """
    with _reported():
        return _night(values)


def _night(values: Mapping[str, Any]) -> Night:
    from hopbench.flows.nights.run import nightly as run_night

    own_options = {one.name: values[one.name] for one in declared(NightlyOptions)}
    night = NightlyOptions(webhook=os.environ.get("HOPBENCH_WEBHOOK") or None, **own_options)
    out = Path(values["out"]) if values["out"] else None
    options = run_options(as_flags(values, GraphOptions, RunSettings), out or Path(), "nightly (Prefect)")
    done = run_night(options, night, out=out)
    for line in [*done.lines, *(f"note: {note}" for note in done.notes)]:
        _log.info("%s", line)
    done.refuse()
    return Night(Run(done.out, done.finished.warnings), done.outcome, tuple(done.lines))


@contextmanager
def _reported() -> Iterator[None]:
    """Report how the night ended in one line, and leave an artifact with a link to its report."""
    begun, code, reason = datetime.now(UTC), 0, ""
    try:
        yield
    except BaseException as error:
        code, reason = exit_code_of(error), str(error) or type(error).__name__
        raise
    finally:
        summary = ending(begun, code, reason)
        _log.info("%s", summary.line)
        if os.environ.get(SERVED):
            sys.stdout.write(f"{summary.line}\n")
            sys.stdout.flush()
        leave(summary.markdown, "hopbench-night", "How the night ended, and its report")
