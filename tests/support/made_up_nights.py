"""Nights on made-up scores, and the verdict on one of them, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from hopbench.eval.trials.ledger import TrialRecord
from hopbench.flows.nights.environment import Latencies
from hopbench.flows.nights.history import match_labels, nights, strategy_of, write_night
from hopbench.flows.nights.verdict import Verdict, judge

METRIC = "all_gold@10"
DIGEST = "d" * 64


def scores(share: float, n: int = 200) -> pd.DataFrame:
    """Rows of n questions, the first `share` of them answered."""
    index = pd.Index([f"q{i:03}" for i in range(n)], name="question_id", dtype=object)
    return pd.DataFrame({METRIC: (np.arange(n) < share * n).astype(float), "failure": None}, index=index)


@dataclass
class Tonight:
    """As much of an evaluation as a verdict reads."""

    rows: Mapping[str, pd.DataFrame]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fingerprint: str = "f1"
    build_key: str = "b1"

    @property
    def plan(self) -> Any:
        record = {"fingerprint": self.fingerprint, "build_key": self.build_key, "settings": {}, "embedder": "e"}
        index = SimpleNamespace(embedder=SimpleNamespace(name="e"), store=SimpleNamespace(engine="kglite"))
        return SimpleNamespace(
            record=record, index=index, seed=0, primary=METRIC, in_sample=lambda _: None, strategies={}
        )

    @property
    def trials(self) -> Mapping[str, Any]:
        return {
            label: SimpleNamespace(strategy=strategy_of(label), parameters=self.parameters.get(label, {}))
            for label in self.rows
        }


def night(
    folder: Path,
    name: str,
    rows: Mapping[str, pd.DataFrame],
    outcome: str = "good",
    circumstances: Mapping[str, Any] | None = None,
    **content: Any,
) -> None:
    written = {
        "started": name[-5:],
        "benchmark": {"name": "made", "digest": DIGEST, "questions": 200},
        "outcome": outcome,
        "labels": {label: {METRIC: 0.5, "latency_ms_p50": 2.0} for label in rows},
        "circumstances": {"graph": {"fingerprint": "f1", "build_key": "b1"}, "specs": {}, **(circumstances or {})},
        "namespace": "",
        "tracking_key": "",
        **content,
    }
    table = pd.concat([one.rename_axis("question_id").reset_index().assign(strategy=k) for k, one in rows.items()])
    write_night(folder / name, written, table)


def judged(tonight: Tonight, folder: Path, champion: TrialRecord | None = None, **more: Any) -> Verdict:
    specs = {label: trial.parameters for label, trial in tonight.trials.items()}
    found = match_labels(specs, nights(folder), more.get("selection", ("all",)))
    latency = more.get("latency", Latencies())
    return judge(tonight, found, champion, latency, more.get("incomplete", ()))  # type: ignore[arg-type]
