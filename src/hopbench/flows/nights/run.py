"""`hopbench nightly`: one night from lock to verdict, record and retention; failures go to the webhook."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopbench.eval.metrics import PRIMARY, ragas_metrics
from hopbench.eval.runs.evaluate import measured_calls
from hopbench.eval.types import MAX_FAILED
from hopbench.flows.nights import publish
from hopbench.flows.nights.environment import PACE, WALL, Latencies, environment_of, judge_latencies
from hopbench.flows.nights.history import (
    INTERVAL,
    STAMP,
    NightlyRecord,
    charted,
    last_good,
    match_labels,
    nights,
    remove,
    started_as,
    unfinished,
    write_night,
)
from hopbench.flows.nights.options import NightlyOptions, post
from hopbench.flows.nights.verdict import Verdict, as_dict, challenger, champion_of, crown, judge
from hopbench.flows.orchestration.pages import REPORT
from hopbench.flows.orchestration.steps import Progress
from hopbench.flows.run.evaluate import run
from hopbench.flows.run.finished import Finished, missed, refuse_missed
from hopbench.flows.settings.home import Home, open_store
from hopbench.flows.settings.locks import only_nightly
from hopbench.flows.settings.options import RunOptions
from hopbench.flows.tracking.client import TrackingError
from hopbench.flows.tracking.payload import Tag
from hopbench.retrieval.support.errors import HopBenchError, IncompleteError, RegressionError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation


LOCK_FILE = ".lock"
MISSED = "target missed by "


def retained(
    earlier: Sequence[NightlyRecord], keep: int, good_tonight: Sequence[str], champion: str | None
) -> tuple[dict[str, str], list[NightlyRecord]]:
    """Which of `earlier` (newest first) stay, with the reason, when tonight is among the `keep` newest; and the others.

    The last good night of each label stays whatever its age, unless tonight is it (`good_tonight` has its labels then);
    so does the night whose name is `champion`.
    """
    needed: dict[str, list[str]] = {}
    for label in dict.fromkeys(label for night in earlier for label in night.labels if label not in good_tonight):
        last = last_good(earlier, label)
        if last is not None:
            needed.setdefault(last.name, []).append(label)
    kept, expired = {}, []
    for place, night in enumerate(earlier, 2):
        if place <= keep:
            kept[night.name] = f"among the newest {keep}"
        elif night.name in needed:
            kept[night.name] = f"the last good night of {', '.join(needed[night.name])}"
        elif night.name == champion:
            kept[night.name] = "the champion's night"
        else:
            expired.append(night)
    return kept, expired


def remove_expired(
    expired: Sequence[NightlyRecord], home: Home, everything: Sequence[NightlyRecord], graph_now: str
) -> list[str]:
    """Remove the expired nights, and the graphs that only they used; returns what was removed, in words.

    Graphs that no night used (of runs and sweeps) are left alone, as are files outside the home.
    """

    def graph(night: NightlyRecord) -> tuple[str, str]:
        return str(night.environment.get("store", "")), str(night.content.get("namespace", ""))

    gone = {night.name for night in expired}
    used = {graph_now, *(graph(night)[1] for night in everything if night.name not in gone)}
    removed = []
    for night in expired:
        remove(night)
        removed.append(f"the night {night.name}")
    for engine, namespace in dict.fromkeys(map(graph, expired)):
        if not namespace or namespace in used:
            continue
        try:
            open_store(engine, namespace, home).drop()
            (home.graphs / f"{namespace}.{engine}.json").unlink(missing_ok=True)
            removed.append(f"the graph {namespace}")
        except HopBenchError as error:  # a server that is away tonight: its graph stays
            removed.append(f"nothing of the graph {namespace} ({error})")
    return removed


def leftovers(folder: Path, earlier: Sequence[NightlyRecord], keep: int, benchmark: str) -> list[Path]:
    """Folders of nightly runs of this benchmark without a verdict that are older than the `keep` newest."""
    oldest = earlier[keep - 1].name if len(earlier) >= keep else ""
    names = {night.name for night in earlier}
    return [
        path
        for path in folder.glob(f"{glob.escape(benchmark)}-{STAMP}")
        if path.is_dir() and path.name not in names and path.name < oldest
    ]


@dataclass
class Nightly:
    """A nightly run called `night`, whose files are in `out`: its run, its verdict once it `has_verdict`, and notes."""

    home: Home
    night: str
    out: Path
    options: RunOptions
    given: NightlyOptions
    notes: list[str] = field(default_factory=list)
    finished: Finished = field(init=False)
    verdict: Verdict = field(init=False)
    has_verdict: bool = False
    crowned: str | None = None
    _earlier: list[NightlyRecord] = field(default_factory=list)
    _reasons: dict[str, str] = field(default_factory=dict)
    _expired: list[NightlyRecord] = field(default_factory=list)
    _latency: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """The verdict in words."""
        return publish.lines(self.verdict)

    @property
    def missed(self) -> list[str]:
        """A line for each target that was missed."""
        return missed(self.finished)

    @property
    def error_has_lines(self) -> bool:
        """Whether the error that `refuse` raises includes the verdict's lines."""
        outcome = self.verdict.outcome
        return outcome == "regression" or (outcome == "incomplete" and not self.finished.incomplete)

    def refuse(self) -> None:
        """Raise RegressionError or TargetError (exit 3), or IncompleteError (exit 4) for an incomplete night."""
        if self.error_has_lines:
            kind = RegressionError if self.verdict.outcome == "regression" else IncompleteError  # labels are gone
            raise kind("\n  ".join([*self.lines, *map(MISSED.__add__, self.missed)]))
        if self.verdict.outcome == "incomplete":
            raise IncompleteError(
                f"over {MAX_FAILED:.0%} of the questions failed for {', '.join(self.finished.incomplete)}: the reasons "
                "stand in questions.parquet (column failure) and in the report"
            )
        refuse_missed(self.finished)

    def annotate(self, finished: Finished) -> None:
        """Judge the evaluation, and add facts for the report and tags for MLflow."""
        evaluation, self.finished = finished.evaluation, finished
        digest = evaluation.plan.benchmark.digest
        everything = nights(self.home.nights)
        self._earlier = [night for night in everything if night.digest == digest and night.name != self.night]
        champion, trial = champion_of(self.home, digest) or (None, None)
        specs = {label: one.parameters for label, one in evaluation.trials.items()}
        found = match_labels(specs, self._earlier, self.options.selection)
        self._latency = _latency(evaluation)
        latency = self._compared_latency(evaluation, found.before)
        verdict = judge(evaluation, found, trial, latency, finished.incomplete)
        unfinished = verdict.outcome == "incomplete" and bool(verdict.incomplete)  # not for missing labels
        accepted = self.given.accept and not unfinished
        if accepted:
            verdict = verdict.accepted()
        self.verdict, self.has_verdict = verdict, True
        # An accepted night is the new measure in every respect.
        self.crowned = challenger(evaluation, verdict, None if accepted and verdict.fell_behind else trial)
        if self.given.keep is not None:
            good = list(evaluation.trials) if verdict.outcome in ("baseline", "good") else []
            # The night that made the champion; a sweep's has none.
            owner = trial.settings.get("night") if trial and self.crowned is None else None
            self._reasons, self._expired = retained(self._earlier, self.given.keep, good, owner)
        if self.options.prefect:
            before = champion.label if champion else None
            failure = publish.to_prefect(evaluation, self.night, verdict, self._report, self.crowned, before)
            finished.warnings += [] if failure is None else [failure]
        self._tag(finished, verdict, digest)

    def _tag(self, finished: Finished, verdict: Verdict, digest: str) -> None:
        regressions, missing = ",".join(verdict.regressions), ",".join(verdict.found.missing)
        tags = {Tag.NIGHTLY: verdict.outcome, Tag.REGRESSION: regressions, Tag.MISSING: missing}
        finished.tags |= {name: text for name, text in tags.items() if text}
        labels = finished.label_tags
        for pair in verdict.comparison.pairs if verdict.comparison else ():
            labels.setdefault(pair.label, {})[Tag.NIGHTLY] = pair.verdict
        for label in verdict.regressions:
            labels.setdefault(label, {})[Tag.NIGHTLY] = "regression"
        if self.crowned is not None:
            labels.setdefault(self.crowned, {})[Tag.CHAMPION] = digest
        keys = [str(night.content["tracking_key"]) for night in self._expired]
        finished.expired += [key for key in keys if key]
        history = charted(NightlyRecord(self.home.nights / self.night, self._content()), self._earlier)
        facts = {"night": self.night, **as_dict(verdict), "lines": publish.lines(verdict)}
        finished.facts["nightly"] = {**facts, **({"history": history} if history else {})}

    def _compared_latency(self, evaluation: Evaluation, before: Mapping[str, tuple[NightlyRecord, str]]) -> Latencies:
        """Compare latencies; of two measurements the faster is recorded for later nights."""

        def again(label: str) -> Mapping[str, float]:
            second = measured_calls(evaluation.plan, label)[1]
            if second["own_ms"] < self._latency[label][PACE]["own_ms"]:
                self._latency[label][PACE] = second
            return second

        here = environment_of(evaluation)["machine"]
        return judge_latencies(self._latency, before, here, self.given.latency_factor, again)

    def record(self) -> None:
        """Record the night, name the champion, and remove what has expired, of which there is a note each."""
        evaluation, run_ids = self.finished.evaluation, self.finished.run_ids
        write_night(self.home.nights / self.night, self._content(), _rows(evaluation))
        if self.crowned is not None:
            run_id = run_ids.get(f"{self.finished.key}/{self.crowned}", "")
            crown(self.home, evaluation, self.crowned, self.night, run_id)
        keep = self.given.keep
        if keep is None:
            return
        removed = remove_expired(self._expired, self.home, nights(self.home.nights), self._namespace)
        for folder in leftovers(self.home.nights, self._earlier, keep, started_as(self.night)):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(f"the unfinished night {folder.name}")
        self.notes += [f"removed {what} (--keep {keep})" for what in removed]

    @property
    def _report(self) -> Path:
        return (self.out / REPORT).absolute()

    @property
    def _namespace(self) -> str:
        return "" if self.options.mapping is not None else self.finished.evaluation.plan.index.store.namespace

    def _content(self) -> dict[str, Any]:
        evaluation, metric = self.finished.evaluation, self.verdict.metric
        benchmark = evaluation.plan.benchmark
        labels = {}
        for label, summary in evaluation.summaries.items():
            named = (metric, *ragas_metrics(summary["metrics"]))
            labels[label] = {
                **{name: summary["metrics"].get(name) for name in named},
                **self._latency.get(label, {WALL: None}),
                INTERVAL: list(evaluation.intervals[label].get(metric, ())) or None,
            }
        return {
            "night": self.night,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "benchmark": {"name": benchmark.name, "digest": benchmark.digest, "questions": len(benchmark.questions)},
            **as_dict(self.verdict),
            "labels": labels,
            "selection": list(self.options.selection),
            "report": str(self._report),
            "circumstances": environment_of(evaluation),
            "namespace": self._namespace,
            "tracking_key": self.finished.key,
            "kept": self._reasons,
        }


def _latency(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Each label's p50 latency and pace; measured again where a trial of an interrupted night has no pace.

    An endpoint's latency has no pace: it depends neither on this machine nor on our code.
    """
    result: dict[str, dict[str, Any]] = {}
    for label, trial in evaluation.trials.items():
        if trial.latency_ms:
            p50 = round(float(np.percentile(list(trial.latency_ms.values()), 50)), 3)
            paced = evaluation.plan.strategies[label].timing == "paced"
            pace = trial.pace or (measured_calls(evaluation.plan, label)[1] if paced else {})
            result[label] = {WALL: p50, **({PACE: pace} if paced else {})}
    return result


def _rows(evaluation: Evaluation) -> pd.DataFrame:
    import pandas as pd

    tables = []
    for label, rows in evaluation.rows.items():
        wanted = (evaluation.plan.primary or PRIMARY, *ragas_metrics(rows), "failure")
        kept = rows[[name for name in wanted if name in rows.columns]]
        tables.append(kept.rename_axis("question_id").reset_index().assign(strategy=label))
    return pd.concat(tables, ignore_index=True)


def unused_name(home: Home, dataset: str, now: datetime) -> str:
    """The name of a new night: of two that begin in the same second, the second one has the next second's."""
    while (home.nights / (name := f"{Path(dataset).name}-{now:%Y-%m-%dT%H%M%SZ}")).exists():
        now += timedelta(seconds=1)
    return name


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
    begun = datetime.now(UTC)
    name = Path(options.dataset).name
    # Without --out, into an interrupted night of that benchmark, else a new folder.
    folder = out or unfinished(home.nights, name) or home.nights / unused_name(home, options.dataset, begun)
    options = options.changed(out=folder)
    called = folder.name if out is None else unused_name(home, name, begun)
    tonight = Nightly(home, called, folder, options, night, [left] if left else [])
    untracked = None
    try:
        run(options, "nightly", progress, tonight.annotate)
    except TrackingError as error:  # the night's own files are complete, and its verdict is valid
        if not tonight.has_verdict:
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
