"""Reviews tonight's evaluation before it is written: latency, champion, verdict, record and retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopbench.eval.metrics import PRIMARY, ragas_metrics
from hopbench.eval.runs.evaluate import measured_calls
from hopbench.flows.nights import champion, publish, retention
from hopbench.flows.nights.circumstances import circumstances
from hopbench.flows.nights.history import NightlyRecord, nights, started_as, write_night
from hopbench.flows.nights.latency import PACE, WALL, Latencies, judge_latencies
from hopbench.flows.nights.matching import match_labels
from hopbench.flows.nights.points import INTERVAL, charted
from hopbench.flows.nights.verdict import Verdict, as_dict, judge
from hopbench.flows.run.completeness import Finished
from hopbench.flows.run.session import Annotations
from hopbench.flows.settings.home import Home
from hopbench.flows.tracking.names import Tag

if TYPE_CHECKING:
    import pandas as pd

    from hopbench.eval.runs.evaluate import Evaluation


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
    _plan: retention.Retention | None = None
    _earlier: list[NightlyRecord] = field(default_factory=list)
    _latency: dict[str, dict[str, Any]] = field(default_factory=dict)

    def annotate(self, finished: Finished) -> Annotations:
        """Judge the evaluation; returns facts for the report and tags for MLflow."""
        evaluation, self.finished, self.key = finished.evaluation, finished, finished.key
        digest = evaluation.plan.benchmark.digest
        everything = nights(self.home.nights)
        self._earlier = [night for night in everything if night.digest == digest and night.name != self.night]
        known = champion.champion_of(self.home, digest)
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
        drifted = accepted and settled.drifted
        self.crowned = champion.challenger(evaluation, settled, None if drifted else trial)
        if self.keep is not None:
            good = list(evaluation.trials) if settled.outcome in ("baseline", "good") else []
            owner = champion.night_of(trial) if trial and self.crowned is None else None
            self._plan = retention.plan(self._earlier, self.keep, good, owner)
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

        here = circumstances(evaluation)["machine"]
        return judge_latencies(self._latency, before, here, self.latency_factor, again)

    def write_record(self, run_ids: Mapping[str, str]) -> list[str]:
        """Record the night, name the champion, remove what has expired; returns a line for each thing removed."""
        assert self.finished is not None
        assert self.verdict is not None
        evaluation = self.finished.evaluation
        write_night(self.home.nights / self.night, self._content(evaluation, self.verdict), _rows(evaluation))
        if self.crowned is not None:
            run_id = run_ids.get(f"{self.key}/{self.crowned}", "")
            champion.crown(self.home, evaluation, self.crowned, self.night, run_id)
        if self._plan is None or self.keep is None:
            return []
        removed = retention.apply(self._plan, self.home, nights(self.home.nights), self._namespace(evaluation))
        for folder in retention.leftovers(self.home.nights, self._earlier, self.keep, started_as(self.night)):
            removed.append(retention.drop_leftover(folder))
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
            "circumstances": circumstances(evaluation),
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
