"""`hopbench nightly`: one night from lock to verdict; failures and regressions go to the webhook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopbench.eval.types import MAX_FAILED
from hopbench.flows.nights.history import unfinished
from hopbench.flows.nights.options import NightlyOptions, post
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.run.evaluate import run
from hopbench.flows.run.finished import Finished, missed, refuse_missed
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import only_nightly
from hopbench.flows.settings.options import RunOptions
from hopbench.retrieval.support.errors import IncompleteError, RegressionError

if TYPE_CHECKING:
    from hopbench.flows.nights.review import NightReview
    from hopbench.flows.tracking.client import TrackingError

LOCK_FILE = ".lock"
MISSED = "target missed by "


@dataclass(frozen=True)
class Nightly:
    """A nightly run that reached its verdict: the run, its folder, the verdict's lines, missed targets, notes."""

    finished: Finished
    out: Path
    outcome: str
    lines: list[str]
    missed: list[str]
    notes: list[str]

    @property
    def error_has_lines(self) -> bool:
        """Whether the error that `refuse` raises includes the verdict's lines."""
        return self.outcome == "regression" or (self.outcome == "incomplete" and not self.finished.incomplete)

    def refuse(self) -> None:
        """Raise RegressionError or TargetError (exit 3), or IncompleteError (exit 4) for an incomplete night."""
        if self.error_has_lines:
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
            _notify(night.webhook, {"outcome": "failed", "dataset": options.dataset, "reason": reason[:2000]})
            raise


def _night(
    options: RunOptions,
    night: NightlyOptions,
    progress: Progress | None,
    home: Home,
    out: Path | None,
    left: str | None,
) -> Nightly:
    from hopbench.flows.nights.publish import lines
    from hopbench.flows.nights.review import NightReview, default_out, unused_name
    from hopbench.flows.nights.verdict import as_dict

    begun = datetime.now(UTC)
    name = Path(options.dataset).name
    resumed = unfinished(home.nights, name) if out is None else None
    folder = out or default_out(home, options.dataset, resumed, begun)
    options = options.changed(out=folder)
    called = folder.name if out is None else unused_name(home, name, begun)
    watch = NightReview(
        home,
        called,
        night.keep,
        night.latency_factor,
        night.accept,
        options.prefect,
        options.mapping is not None,
        (folder / REPORT).absolute(),
        options.selection,
    )
    notes = [left] if left else []
    untracked = _run_and_judge(options, progress, watch)
    assert watch.finished is not None
    assert watch.verdict is not None
    notes += [f"removed {what} (--keep {night.keep})" for what in watch.write_record(watch.finished.run_ids)]
    verdict, summary = watch.verdict, lines(watch.verdict)
    short = missed(watch.finished)
    if verdict.outcome in ("regression", "incomplete") or short:
        benchmark = watch.finished.evaluation.plan.benchmark.name
        content = {"night": called, "benchmark": benchmark, **as_dict(verdict), "targets_missed": short}
        failure = _notify(night.webhook, {**content, "text": "\n".join([*summary, *map(MISSED.__add__, short)])})
        notes += [failure] if failure else []
    if untracked is not None and verdict.outcome in ("baseline", "good"):
        raise untracked
    notes += [str(untracked)] if untracked else []
    return Nightly(watch.finished, folder, verdict.outcome, summary, short, notes)


def _run_and_judge(options: RunOptions, progress: Progress | None, watch: NightReview) -> TrackingError | None:
    """Run the night and judge it; returns the error of MLflow alone, which leaves the verdict valid."""
    from hopbench.flows.tracking.client import TrackingError

    try:
        run(options, "nightly", progress, watch.annotate)
    except TrackingError as error:  # the night's own files are complete
        if watch.verdict is None:
            raise
        return error
    return None


def _notify(webhook: str | None, content: Mapping[str, Any]) -> str | None:
    return None if webhook is None else post(webhook, {"source": "hopbench nightly", **content})
