"""Review tonight's evaluation before it is written: latency, champion, verdict, record and retention."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopbench.eval.metrics import PRIMARY, ragas_metrics
from hopbench.eval.runs.evaluate import measured_calls
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
    write_night,
)
from hopbench.flows.nights.verdict import Verdict, as_dict, challenger, champion_of, crown, judge, night_of
from hopbench.flows.run.evaluate import Annotations
from hopbench.flows.run.finished import Finished
from hopbench.flows.settings.home import Home, open_store
from hopbench.flows.tracking.payload import Tag
from hopbench.retrieval.support.errors import HopBenchError

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation


@dataclass(frozen=True)
class Retention:
    """The nightly records of one benchmark: `kept`, with the reason of each, and `expired`."""

    kept: Mapping[str, str]
    expired: Sequence[NightlyRecord]


def plan(earlier: Sequence[NightlyRecord], keep: int, good_tonight: Sequence[str], champion: str | None) -> Retention:
    """What stays of `earlier` (newest first) when tonight is counted among the `keep` newest.

    The last good night of each label stays whatever its age, unless tonight is it (`good_tonight` has its labels then);
    so does the night whose name is `champion`.
    """
    needed = _last_good(earlier, good_tonight)
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
    return Retention(kept, expired)


def _last_good(earlier: Sequence[NightlyRecord], have: Sequence[str]) -> dict[str, list[str]]:
    needed: dict[str, list[str]] = {}
    for label in dict.fromkeys(label for night in earlier for label in night.labels if label not in have):
        night = last_good(earlier, label)
        if night is not None:
            needed.setdefault(night.name, []).append(label)
    return needed


def apply(retention: Retention, home: Home, everything: Sequence[NightlyRecord], graph_now: str) -> list[str]:
    """Remove the expired nights, and the graphs that only they used; returns what was removed, in words.

    Graphs that no night used (of runs and sweeps) are left alone, as are files outside the home.
    """
    gone = {night.name for night in retention.expired}
    used = {graph_now, *(_graph(night)[1] for night in everything if night.name not in gone)}
    removed = []
    for night in retention.expired:
        remove(night)
        removed.append(f"the night {night.name}")
    for engine, namespace in dict.fromkeys(_graph(night) for night in retention.expired):
        if namespace and namespace not in used:
            removed.append(_drop(engine, namespace, home))
    return removed


def _graph(night: NightlyRecord) -> tuple[str, str]:
    return str(night.environment.get("store", "")), str(night.content.get("namespace", ""))


def _drop(engine: str, namespace: str, home: Home) -> str:
    try:
        open_store(engine, namespace, home).drop()
        (home.graphs / f"{namespace}.{engine}.json").unlink(missing_ok=True)
    except HopBenchError as error:  # a server that is away tonight: its graph stays
        return f"nothing of the graph {namespace} ({error})"
    return f"the graph {namespace}"


def leftovers(folder: Path, earlier: Sequence[NightlyRecord], keep: int, benchmark: str) -> list[Path]:
    """Folders of nightly runs of this benchmark without a verdict that are older than the `keep` newest."""
    oldest = earlier[keep - 1].name if len(earlier) >= keep else ""
    names = {night.name for night in earlier}
    return [
        path
        for path in folder.glob(f"{glob.escape(benchmark)}-{STAMP}")
        if path.is_dir() and path.name not in names and path.name < oldest
    ]


def drop_leftover(folder: Path) -> str:
    """Remove the folder of a nightly run that never finished."""
    shutil.rmtree(folder, ignore_errors=True)
    return f"the unfinished night {folder.name}"


@dataclass
class NightReview:
    """The review of one night. `verdict` is set once the night was judged, even if recording it failed later."""

    home: Home
    night: str
    keep: int | None
    latency_factor: float
    accept: bool
    prefect: bool
    mapped: bool
    report: Path
    selection: Sequence[str] = ()
    verdict: Verdict | None = None
    crowned: str | None = None
    key: str = ""
    finished: Finished | None = None
    _plan: Retention | None = None
    _earlier: list[NightlyRecord] = field(default_factory=list)
    _latency: dict[str, dict[str, Any]] = field(default_factory=dict)

    def annotate(self, finished: Finished) -> Annotations:
        """Judge the evaluation; returns facts for the report and tags for MLflow."""
        evaluation, self.finished, self.key = finished.evaluation, finished, finished.key
        digest = evaluation.plan.benchmark.digest
        everything = nights(self.home.nights)
        self._earlier = [night for night in everything if night.digest == digest and night.name != self.night]
        known = champion_of(self.home, digest)
        trial = known[1] if known else None
        specs = {label: one.parameters for label, one in evaluation.trials.items()}
        found = match_labels(specs, self._earlier, self.selection)
        self._latency = _latency(evaluation)
        latency = self._compared_latency(evaluation, found.before)
        self.verdict = judge(evaluation, found, trial, latency, finished.incomplete)
        unfinished = self.verdict.outcome == "incomplete" and bool(self.verdict.incomplete)  # not for missing labels
        accepted = self.accept and not unfinished
        settled = self.verdict.accepted() if accepted else self.verdict
        self.verdict = settled
        # An accepted night is the new measure in every respect.
        fell_behind = accepted and settled.fell_behind
        self.crowned = challenger(evaluation, settled, None if fell_behind else trial)
        if self.keep is not None:
            good = list(evaluation.trials) if settled.outcome in ("baseline", "good") else []
            owner = night_of(trial) if trial and self.crowned is None else None
            self._plan = plan(self._earlier, self.keep, good, owner)
        failure = None
        if self.prefect:
            before = known[0].label if known else None
            failure = publish.to_prefect(evaluation, self.night, settled, self.report, self.crowned, before)
        annotations = self._annotations(evaluation, settled, digest)
        return annotations if failure is None else replace(annotations, warnings=[failure])

    def _annotations(self, evaluation: Evaluation, verdict: Verdict, digest: str) -> Annotations:
        tags: dict[str, str] = {Tag.NIGHTLY: verdict.outcome, Tag.REGRESSION: ",".join(verdict.regressions)}
        if verdict.found.missing:
            tags[Tag.MISSING] = ",".join(verdict.found.missing)
        labels: dict[str, dict[str, str]] = {}
        for pair in verdict.comparison.pairs if verdict.comparison else ():
            labels.setdefault(pair.label, {})[Tag.NIGHTLY] = pair.verdict
        for label in verdict.regressions:
            labels.setdefault(label, {})[Tag.NIGHTLY] = "regression"
        if self.crowned is not None:
            labels.setdefault(self.crowned, {})[Tag.CHAMPION] = digest
        expired = [str(night.content["tracking_key"]) for night in self._plan.expired] if self._plan else []
        tonight = NightlyRecord(self.home.nights / self.night, self._content(evaluation, verdict))
        history = charted(tonight, self._earlier)
        facts = {
            "nightly": {
                "night": self.night,
                **as_dict(verdict),
                "lines": publish.lines(verdict),
                **({"history": history} if history else {}),
            }
        }
        return Annotations(
            facts, {name: text for name, text in tags.items() if text}, labels, expired=[key for key in expired if key]
        )

    def _compared_latency(self, evaluation: Evaluation, before: Mapping[str, tuple[NightlyRecord, str]]) -> Latencies:
        """Compare latencies; of two measurements the faster is recorded for later nights."""

        def again(label: str) -> Mapping[str, float]:
            second = measured_calls(evaluation.plan, label)[1]
            if second["own_ms"] < self._latency[label][PACE]["own_ms"]:
                self._latency[label][PACE] = second
            return second

        here = environment_of(evaluation)["machine"]
        return judge_latencies(self._latency, before, here, self.latency_factor, again)

    def write_record(self, run_ids: Mapping[str, str]) -> list[str]:
        """Record the night, name the champion, remove what has expired; returns a line for each thing removed."""
        assert self.finished is not None
        assert self.verdict is not None
        evaluation = self.finished.evaluation
        write_night(self.home.nights / self.night, self._content(evaluation, self.verdict), _rows(evaluation))
        if self.crowned is not None:
            run_id = run_ids.get(f"{self.key}/{self.crowned}", "")
            crown(self.home, evaluation, self.crowned, self.night, run_id)
        if self._plan is None or self.keep is None:
            return []
        removed = apply(self._plan, self.home, nights(self.home.nights), self._namespace(evaluation))
        for folder in leftovers(self.home.nights, self._earlier, self.keep, started_as(self.night)):
            removed.append(drop_leftover(folder))
        return removed

    def _namespace(self, evaluation: Evaluation) -> str:
        return "" if self.mapped else evaluation.plan.index.store.namespace

    def _content(self, evaluation: Evaluation, verdict: Verdict) -> dict[str, Any]:
        benchmark = evaluation.plan.benchmark
        means = {
            label: {name: summary["metrics"].get(name) for name in (verdict.metric, *ragas_metrics(summary["metrics"]))}
            for label, summary in evaluation.summaries.items()
        }
        return {
            "night": self.night,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "benchmark": {"name": benchmark.name, "digest": benchmark.digest, "questions": len(benchmark.questions)},
            **as_dict(verdict),
            "labels": {
                label: {
                    **means[label],
                    **self._latency.get(label, {WALL: None}),
                    INTERVAL: list(evaluation.intervals[label].get(verdict.metric, ())) or None,
                }
                for label in evaluation.summaries
            },
            "selection": list(self.selection),
            "report": str(self.report),
            "circumstances": environment_of(evaluation),
            "namespace": self._namespace(evaluation),
            "tracking_key": self.key,
            "kept": dict(self._plan.kept) if self._plan else {},
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


def night_name(benchmark: str, now: datetime) -> str:
    """The folder of a night: benchmark and time."""
    return f"{benchmark}-{now:%Y-%m-%dT%H%M%SZ}"


def default_out(home: Home, dataset: str, resumed: Path | None, now: datetime) -> Path:
    """Where a night's files go without `--out`: into an interrupted night of that benchmark, else a new folder."""
    return resumed or home.nights / unused_name(home, dataset, now)


def unused_name(home: Home, dataset: str, now: datetime) -> str:
    """The name of a new night: of two that begin in the same second, the second one has the next second's."""
    while (home.nights / (name := night_name(Path(dataset).name, now))).exists():
        now += timedelta(seconds=1)
    return name
