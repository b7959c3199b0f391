"""The five flows: what the commands do, from Prefect's pages, a schedule, or another flow."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hopbench.eval.sweep.fields import ModelFields
from hopbench.eval.sweep.file import SweepFile
from hopbench.eval.types import MAX_FAILED
from hopbench.flows import sweeps as shipped
from hopbench.flows.api.definition import deployable, same_folder, unfinished_folder
from hopbench.flows.api.runs import Run, Sweep
from hopbench.flows.graph.commands import Built, build
from hopbench.flows.nights.options import EVERYTHING, NightlyOptions
from hopbench.flows.nights.publish import ending, exit_code_of
from hopbench.flows.orchestration.pages import artifact_key, leave, table
from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.settings.graph_options import GraphOptions
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions, WorkerOptions
from hopbench.flows.settings.parameters import fields_of, offering, parameters_of
from hopbench.flows.settings.setting import values_for
from hopbench.flows.studies.options import TrainOptions
from hopbench.flows.studies.training import Trained
from hopbench.flows.studies.training import train as run_training
from hopbench.flows.sweeps.inputs import plan_of_content
from hopbench.retrieval.support.errors import IncompleteError

if TYPE_CHECKING:
    pass

GRAPH_PARAMETERS = {
    **parameters_of(GraphOptions, dataset="hopworld"),
    "force": FieldInfo(annotation=bool, default=False, description="Build it again even if it is there."),
    "reference": FieldInfo(
        annotation=Path | None,
        default=None,
        description="Triples (JSONL) to compare the graph with: precision and recall.",
    ),
}


@deployable("build_graph", GRAPH_PARAMETERS, "build_graph {dataset}")
def build_graph(**values: Any) -> Built:
    """Build the graph of a benchmark; an interrupted build resumes where it stopped. Returns its record."""
    options = GraphOptions(**values_for(GraphOptions, values))
    built = build(options, Home.resolve(), Progress(), force=values["force"], reference=values["reference"])
    name = Path(options.dataset).name
    counts = [
        {"what": kind, "count": number} for part in ("nodes", "edges") for kind, number in built.record[part].items()
    ]
    warnings = "\n".join(f"- {warning}" for warning in built.warnings)
    content = f"# Graph of {name}\n\nFingerprint `{built.record['fingerprint']}`\n\n{table(counts)}\n\n{warnings}\n"
    leave(content, artifact_key("graph", name), f"The graph of {name}")
    return built


def _out(default: str) -> FieldInfo:
    return FieldInfo(annotation=str | None, default=None, description=f"Folder for the files (default: {default}).")


RUN_PARAMETERS = {
    **parameters_of(RunOptions, strategies="all"),
    "out": _out("one in the home, the same for the same parameters"),
}


@deployable("evaluate", RUN_PARAMETERS, "evaluate {dataset}")
def evaluate(**values: Any) -> Run:
    """Run strategies over a benchmark: rank, score, compare, track, report. Returns the run.

    Fails, as `hopbench run` exits with 3 or 4, where a target is missed or over 5% of a label's questions failed.
    """
    from hopbench.flows.run.evaluate import run
    from hopbench.flows.run.finished import refuse

    home = Home.resolve()
    name = Path(values["dataset"]).name
    out = Path(values["out"]) if values["out"] else unfinished_folder(home.runs, name, values, "report.html")
    options = RunOptions(**{**values, "out": out}, command="evaluate (Prefect)")
    finished = run(options, "evaluate")
    refuse(finished)
    return Run(out, finished.warnings)


NIGHT_PARAMETERS = {
    **parameters_of(RunOptions, NightlyOptions, dataset="hopworld", strategies=EVERYTHING),
    "out": FieldInfo(
        annotation=str | None,
        default=None,
        description="Folder for the files of this night (default: under home).",
    ),
}
SERVED = "HOPBENCH_SERVED"
"""Set in the processes of `hopbench serve`, on whose console each night has a line."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Night:
    """A night that reached a good verdict, or the first one: its run, `outcome` (baseline, good) and the verdict."""

    run: Run
    outcome: str
    lines: tuple[str, ...]


@deployable("nightly", NIGHT_PARAMETERS, "nightly {dataset}")
def nightly(**values: Any) -> Night:
    """Build if needed, run all strategies, score, track, report, compare with the last good night. Returns the night.

    Fails, as `hopbench nightly` exits with 3 or 4, where there is a regression or the night is incomplete.
    """
    from hopbench.flows.nights.run import nightly as run_night

    with _reported():
        night = NightlyOptions(**values_for(NightlyOptions, values), webhook=os.environ.get("HOPBENCH_WEBHOOK") or None)
        out = Path(values["out"]) if values["out"] else None
        given = {**values_for(RunOptions, values), "out": out or Path()}
        done = run_night(RunOptions(**given, command="nightly (Prefect)"), night, out=out)
        for line in [*done.lines, *(f"note: {note}" for note in done.notes)]:
            _log.info("%s", line)
        done.refuse()
        return Night(Run(done.out, done.finished.warnings), done.verdict.outcome, tuple(done.lines))


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
        line, page = ending(begun, code, reason)
        _log.info("%s", line)
        if os.environ.get(SERVED):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        leave(page, "hopbench-night", "How the night ended, and its report")


OFFERS = {"datasets": "datasets", "embedder": "embedders", "extractor": "extractors", "store": "stores"}
FIELDS = fields_of(SweepFile, OFFERS, datasets=[], strategy=[])
CONTENT = sorted(FIELDS, key=lambda name: name in ModelFields.model_fields)  # what most sweeps need comes first
SWEEP_PARAMETERS = {
    "file": FieldInfo(
        annotation=offering(str | None, "sweep_files"),
        default=None,
        description="A shipped sweep file's name, or a file where the flow runs; what differs from its default below "
        "takes the place of its field.",
    ),
    **{name: FIELDS[name] for name in CONTENT},
    "champion": FieldInfo(
        annotation=bool,
        default=False,
        description="Name the winner the champion of the benchmark under report_on.",
    ),
    **parameters_of(WorkerOptions),
    "out": _out("one in the home, the same for the same sweep"),
}


@deployable("sweep", SWEEP_PARAMETERS, "sweep {file}")
def sweep(**values: Any) -> Sweep:
    """Search a space of configurations (docs/sweeps.md); finished trials are kept and reused. Returns the sweep.

    Cancel it when you like: the same parameters go on where it stopped. Fails, as `hopbench sweep` exits with 4, where
    over 5% of a trial's questions failed.
    """
    from hopbench.eval.sweep.plan import read_sweep
    from hopbench.flows.sweeps.flow import sweep as run_sweep

    home, file = Home.resolve(), values["file"]
    given = {name: _plain(values[name]) for name in CONTENT if values[name] != FIELDS[name].default}
    name = Path(file).stem if file else str(given.get("strategy", [{}])[0].get("strategy", "sweep"))
    out = Path(values["out"]) if values["out"] else same_folder(home.sweeps, name, {"file": file, **given})
    spread = WorkerOptions(**values_for(WorkerOptions, values))
    opened = nullcontext(read_sweep(shipped_file(file) or Path(file), given)) if file else plan_of_content(given, out)
    with opened as plan:
        swept = run_sweep(plan, out, champion=values["champion"], spread=spread)
    if swept.incomplete:
        raise IncompleteError(
            f"over {MAX_FAILED:.0%} of the questions failed, or were not answered or judged, in "
            f"{len(swept.incomplete)} trials: these are not kept, and the same parameters do again what is missing"
        )
    return Sweep(out, swept.warnings)


def _plain(value: Any) -> Any:
    """A field of the sweep file as a file has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    return [_plain(one) for one in value] if isinstance(value, list) else value


def shipped_file(name: str) -> Path | None:
    """The shipped sweep file of that name; None for any other."""
    file = Path(shipped.__path__[0]) / f"{name}.yaml"
    return file if name.replace("-", "").replace("_", "").isalnum() and file.is_file() else None


TRAIN_PARAMETERS = parameters_of(TrainOptions)


@deployable("train", TRAIN_PARAMETERS, "train {datasets}")
def train(**values: Any) -> Trained:
    """Learn hoprank's weights from questions with gold passages. Returns their scores on held-out folds and sets."""
    options = TrainOptions(**values)
    trained = run_training(options, Progress(), prefect=True)
    rows = [
        {
            "tested on": one["setting"],
            "data set": one["dataset"],
            "embedder": one["embedder"],
            "questions": one["questions"],
            "recall@5": one["recall_at_5"],
            "all_gold@10": one["all_gold_at_10"],
        }
        for one in map(asdict, trained.figures)
    ]
    where = (
        f"{trained.numbers} numbers and {trained.trees} trees learned, written to `{options.out}`"
        if options.out
        else "Figures alone"
    )
    leave(f"# hoprank's weights\n\n{where}\n\n{table(rows)}\n", artifact_key("train"), "Scores on held-out questions")
    if trained.unwritten is not None:
        raise trained.unwritten
    return trained
