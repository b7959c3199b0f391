"""Looks at tonight's evaluation before it is written: latency, champion, verdict, and what the night leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.metrics import PRIMARY
from eval.trial import measure_latency
from flows.evaluate import Finished, Remarks
from flows.home import Home
from flows.nightly import champion, publish, retention
from flows.nightly.nights import Night, last_good, nights, started_as, write_night
from flows.nightly.suspects import circumstances
from flows.nightly.verdict import FASTEST_MS, Slower, Verdict, as_dict, judge

if TYPE_CHECKING:
    import pandas as pd

    from eval.evaluate import Evaluation


@dataclass
class Watch:
    """One night's judge. `verdict` stands once the night was judged, even if writing it down failed later."""

    home: Home
    night: str
    keep: int | None
    latency_factor: float
    accept: bool
    prefect: bool
    mapped: bool
    verdict: Verdict | None = None
    crowned: str | None = None
    key: str = ""
    finished: Finished | None = None
    _plan: retention.Retention | None = None
    _earlier: list[Night] = field(default_factory=list)
    _latency: Mapping[str, float] = field(default_factory=dict)

    def remark(self, finished: Finished) -> Remarks:
        """Judge the evaluation; what to say of it in report and MLflow."""
        evaluation, self.finished, self.key = finished.evaluation, finished, finished.key
        digest = evaluation.plan.benchmark.digest
        everything = nights(self.home.nights)
        self._earlier = [night for night in everything if night.digest == digest and night.name != self.night]
        known = champion.champion_of(self.home, digest)
        trial = known[1] if known else None
        self._latency = {label: _p50(one.latency_ms) for label, one in evaluation.trials.items() if one.latency_ms}
        slower = self._slower(evaluation)
        self.verdict = judge(evaluation, self._earlier, trial, slower, finished.incomplete)
        accepted = self.accept and self.verdict.outcome != "incomplete"
        settled = self.verdict.accepted() if accepted else self.verdict
        self.verdict = settled
        # An accepted night is the new measure in every respect.
        drifted = accepted and settled.drifted
        self.crowned = champion.challenger(evaluation, settled, None if drifted else trial)
        if self.keep is not None:
            good = list(evaluation.trials) if settled.outcome in ("baseline", "good") else []
            owner = champion.night_of(trial) if trial and self.crowned is None else None
            self._plan = retention.plan(self._earlier, self.keep, good, owner)
        if self.prefect:
            publish.to_prefect(evaluation.plan.benchmark.name, self.night, settled)
        return self._remarks(evaluation, settled, digest)

    def _remarks(self, evaluation: Evaluation, verdict: Verdict, digest: str) -> Remarks:
        tags = {"nightly": verdict.outcome, "hopbench.regression": ",".join(verdict.regressions)}
        labels: dict[str, dict[str, str]] = {}
        for pair in verdict.comparison.pairs if verdict.comparison else ():
            labels.setdefault(pair.label, {})["nightly"] = pair.verdict
        for label in verdict.regressions:
            labels.setdefault(label, {})["nightly"] = "regression"
        if self.crowned is not None:
            labels.setdefault(self.crowned, {})["hopbench.champion"] = digest
        expired = [str(night.content["tracking_key"]) for night in self._plan.expired] if self._plan else []
        facts = {"nightly": {"night": self.night, **as_dict(verdict), "lines": publish.lines(verdict)}}
        return Remarks(
            facts, {name: text for name, text in tags.items() if text}, labels, expired=[key for key in expired if key]
        )

    def _slower(self, evaluation: Evaluation) -> list[Slower]:
        """The labels beyond the factor, measured a second time before it is said."""
        here = circumstances(evaluation)["machine"]
        found = []
        for label, now in self._latency.items():
            night = last_good(self._earlier, label)
            then = night.labels[label].get("latency_ms_p50") if night else None
            if night is None or then is None or night.circumstances.get("machine") != here:
                continue  # another machine's milliseconds say nothing
            if self._beyond(now, then):
                again = self._again(evaluation, label)
                if self._beyond(again, then):
                    found.append(Slower(label, then, round(min(now, again), 3)))
        return found

    def _beyond(self, now: float, then: float) -> bool:
        return now > self.latency_factor * then and now - then > FASTEST_MS

    @staticmethod
    def _again(evaluation: Evaluation, label: str) -> float:
        plan = evaluation.plan
        questions = [question.question for question in plan.benchmark.questions]
        return _p50(measure_latency(plan.strategies[label], plan.index, questions, plan.seed))

    def keep_record(self, run_ids: Mapping[str, str]) -> list[str]:
        """Write the night down, name the champion, remove what has expired; returns what was removed, in words."""
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
        means = {label: summary["metrics"].get(verdict.metric) for label, summary in evaluation.summaries.items()}
        return {
            "night": self.night,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "benchmark": {"name": benchmark.name, "digest": benchmark.digest, "questions": len(benchmark.questions)},
            **as_dict(verdict),
            "labels": {
                label: {verdict.metric: mean, "latency_ms_p50": self._latency.get(label)}
                for label, mean in means.items()
            },
            "circumstances": circumstances(evaluation),
            "namespace": self._namespace(evaluation),
            "tracking_key": self.key,
            "kept": dict(self._plan.kept) if self._plan else {},
        }


def _p50(taken: Mapping[str, float]) -> float:
    return round(float(np.percentile(list(taken.values()), 50)), 3)


def _rows(evaluation: Evaluation) -> pd.DataFrame:
    import pandas as pd

    tables = []
    for label, rows in evaluation.rows.items():
        kept = rows[[name for name in (evaluation.plan.primary or PRIMARY, "failure") if name in rows.columns]]
        tables.append(kept.rename_axis("question_id").reset_index().assign(strategy=label))
    return pd.concat(tables, ignore_index=True)


def night_name(benchmark: str, now: datetime) -> str:
    """The folder of a night: benchmark and time."""
    return f"{benchmark}-{now:%Y-%m-%dT%H%M%SZ}"


def default_out(home: Home, dataset: str, resumed: Path | None, now: datetime) -> Path:
    """Where a night's files go without `--out`: into an interrupted night of that benchmark, else a new folder."""
    return resumed or home.nights / night_name(Path(dataset).name, now)
