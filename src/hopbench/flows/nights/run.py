"""`hopbench nightly`: one night from lock to verdict; failures and regressions go to the webhook."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hopbench.flows.nights.history import unfinished
from hopbench.flows.nights.options import NightlyOptions, post
from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.run.evaluate import run
from hopbench.flows.settings.home import Home
from hopbench.flows.settings.locks import only_nightly
from hopbench.flows.settings.options import RunOptions

if TYPE_CHECKING:
    from hopbench.flows.nights.review import Nightly

LOCK_FILE = ".lock"


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
            if night.webhook is not None:
                reason = f"{type(error).__name__}: {error}"[:2000]
                failed = {"outcome": "failed", "dataset": options.dataset, "reason": reason}
                post(night.webhook, {"source": "hopbench nightly", **failed})
            raise


def _night(
    options: RunOptions,
    night: NightlyOptions,
    progress: Progress | None,
    home: Home,
    out: Path | None,
    left: str | None,
) -> Nightly:
    from hopbench.flows.nights.review import MISSED, Nightly, default_out, unused_name
    from hopbench.flows.nights.verdict import as_dict
    from hopbench.flows.tracking.client import TrackingError

    begun = datetime.now(UTC)
    name = Path(options.dataset).name
    resumed = unfinished(home.nights, name) if out is None else None
    folder = out or default_out(home, options.dataset, resumed, begun)
    options = replace(options, out=folder)
    called = folder.name if out is None else unused_name(home, name, begun)
    tonight = Nightly(home, called, folder, options, night, [left] if left else [])
    untracked = None
    try:
        run(options, "nightly", progress, tonight.annotate)
    except TrackingError as error:  # the night's own files are complete, and its verdict is valid
        if not tonight.judged:
            raise
        untracked = error
    tonight.record()
    outcome, missed = tonight.verdict.outcome, tonight.missed
    if night.webhook is not None and (outcome in ("regression", "incomplete") or missed):
        content = {
            "source": "hopbench nightly",
            "night": called,
            "benchmark": tonight.finished.evaluation.plan.benchmark.name,
            **as_dict(tonight.verdict),
            "targets_missed": missed,
            "text": "\n".join([*tonight.lines, *map(MISSED.__add__, missed)]),
        }
        failure = post(night.webhook, content)
        tonight.notes += [failure] if failure else []
    if untracked is not None and outcome in ("baseline", "good"):
        raise untracked
    tonight.notes += [str(untracked)] if untracked else []
    return tonight
