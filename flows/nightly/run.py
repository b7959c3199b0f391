"""`hopbench nightly`: one night from lock to verdict. A night that fails says so to whoever watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hopbench.flows.nightly.lock import only_nightly
from hopbench.flows.nightly.nights import unfinished
from hopbench.flows.nightly.notify import post
from hopbench.flows.nightly.options import NightlyOptions
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.orchestration.progress import Progress
from hopbench.flows.run.completeness import MAX_FAILED, Finished, missed, refuse_missed
from hopbench.flows.run.evaluate import run
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.support.errors import IncompleteError, RegressionError

LOCK_FILE = ".lock"
MISSED = "target missed by "


@dataclass(frozen=True)
class Nightly:
    """A night that came to its verdict: the run, its folder, the verdict's lines, missed targets, notes."""

    finished: Finished
    out: Path
    outcome: str
    lines: list[str]
    missed: list[str]
    notes: list[str]

    @property
    def told_by_error(self) -> bool:
        """Whether the error that `refuse` raises holds the verdict's lines."""
        return self.outcome == "regression" or (self.outcome == "incomplete" and not self.finished.incomplete)

    def refuse(self) -> None:
        """Raise RegressionError or TargetError (exit 3), or IncompleteError (exit 4) for an incomplete night."""
        if self.told_by_error:
            kind = RegressionError if self.outcome == "regression" else IncompleteError  # labels are gone
            raise kind("\n  ".join([*self.lines, *map(MISSED.__add__, self.missed)]))
        if self.outcome == "incomplete":
            raise IncompleteError(
                f"over {MAX_FAILED:.0%} of the questions failed for {', '.join(self.finished.incomplete)}: the reasons "
                "stand in questions.parquet (column failure) and in the report"
            )
        refuse_missed(self.finished)


def nightly(
    options: RunOptions, night: NightlyOptions, progress: Progress | None = None, out: Path | None = None
) -> Nightly:
    """Run, judge and record one night; `out` is where its files go (default: its folder in the home).

    Raises IncompleteError while another nightly runs in this home, and whatever stops a run.
    """
    home = Home.resolve().prepare()
    with only_nightly(home.nights / LOCK_FILE, options.dataset) as left:
        try:
            return _night(options, night, progress, home, out, left)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            _tell(night.webhook, {"outcome": "failed", "dataset": options.dataset, "reason": reason[:2000]})
            raise


def _night(
    options: RunOptions,
    night: NightlyOptions,
    progress: Progress | None,
    home: Home,
    out: Path | None,
    left: str | None,
) -> Nightly:
    from hopbench.flows.nightly.publish import lines
    from hopbench.flows.nightly.verdict import as_dict
    from hopbench.flows.nightly.watch import Watch, default_out, night_name
    from hopbench.flows.tracking.client import TrackingError

    begun = datetime.now(UTC)
    name = Path(options.dataset).name
    resumed = unfinished(home.nights, name) if out is None else None
    folder = out or default_out(home, options.dataset, resumed, begun)
    options = replace(options, out=folder)
    called = folder.name if out is None else night_name(name, begun)
    watch = Watch(
        home,
        called,
        night.keep,
        night.latency_factor,
        night.accept,
        options.prefect,
        options.mapping is not None,
        (folder / REPORT).absolute(),
        (options.strategies, *options.changes),
    )
    notes = [left] if left else []
    unwritten: TrackingError | None = None
    try:
        run(options, "nightly", progress, watch.remark)
    except TrackingError as error:  # the night's own files are complete: its verdict stands
        if watch.verdict is None:
            raise
        unwritten = error
    assert watch.finished is not None
    assert watch.verdict is not None
    notes += [f"removed {what} (--keep {night.keep})" for what in watch.keep_record(watch.finished.run_ids)]
    verdict, told = watch.verdict, lines(watch.verdict)
    short = missed(watch.finished)
    if verdict.outcome in ("regression", "incomplete") or short:
        benchmark = watch.finished.evaluation.plan.benchmark.name
        content = {"night": called, "benchmark": benchmark, **as_dict(verdict), "targets_missed": short}
        failure = _tell(night.webhook, {**content, "text": "\n".join([*told, *map(MISSED.__add__, short)])})
        notes += [failure] if failure else []
    if unwritten is not None and verdict.outcome in ("baseline", "good"):
        raise unwritten
    notes += [str(unwritten)] if unwritten else []
    return Nightly(watch.finished, folder, verdict.outcome, told, short, notes)


def _tell(webhook: str | None, content: Mapping[str, Any]) -> str | None:
    return None if webhook is None else post(webhook, {"source": "hopbench nightly", **content})
