"""The night's verdict: each label against the last good run of the same benchmark (completed, no regression)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.compare import Comparison, compare
from eval.files import write_atomically
from eval.metrics import PRIMARY
from retrieval.errors import RegressionError

if TYPE_CHECKING:
    import pandas as pd

    from eval.evaluate import Evaluation

VERDICT_FILE = "nightly.json"


@dataclass(frozen=True)
class Verdict:
    """What a night is compared with, and which labels are significantly worse than then; `changed` names suspects."""

    previous: Path | None
    comparison: Mapping[str, Comparison]
    regressions: list[str]
    changed: list[str]


def last_good(folder: Path, digest: str, present: Path) -> Path | None:
    """The newest earlier night of the same benchmark digest that ended without a regression."""
    nights = sorted(folder.glob(f"*/{VERDICT_FILE}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in nights:
        night = json.loads(file.read_text(encoding="utf-8"))
        if file.parent != present and night["benchmark_digest"] == digest and not night["regressions"]:
            return file.parent
    return None


def judge(evaluation: Evaluation, out: Path, nights: Path) -> Verdict:
    """Compare by label with the last good night, write the verdict beside the results, and return it."""
    import pandas as pd

    previous = last_good(nights, evaluation.plan.benchmark.digest, out)
    verdict = Verdict(None, {}, [], [])
    if previous is not None:
        before = json.loads((previous / "results.json").read_text(encoding="utf-8"))
        rows = pd.read_parquet(previous / "questions.parquet")
        ranked = [label for label, table in evaluation.rows.items() if PRIMARY in table]
        pairs = {label: _against(evaluation, label, rows) for label in ranked if label in before["strategies"]}
        worse = [label for label, pair in pairs.items() if pair.pairs[0].verdict == "worse"]
        verdict = Verdict(previous, pairs, worse, _changed(evaluation, before))
    content = {
        "benchmark_digest": evaluation.plan.benchmark.digest,
        "previous": verdict.previous.name if verdict.previous else None,
        "regressions": verdict.regressions,
        "changed": verdict.changed,
    }
    write_atomically(out / VERDICT_FILE, (json.dumps(content, indent=2) + "\n").encode())
    return verdict


def _against(evaluation: Evaluation, label: str, rows: pd.DataFrame) -> Comparison:
    then = rows[rows["strategy"] == label].set_index("question_id")
    return compare({"tonight": evaluation.rows[label], "then": then}, "then", seed=evaluation.plan.seed)


def _changed(evaluation: Evaluation, before: Mapping[str, Any]) -> list[str]:
    """What differs from the earlier night: the suspects of a regression."""
    changed = []
    if before["graph"]["fingerprint"] != evaluation.plan.record["fingerprint"]:
        changed.append("the graph's fingerprint")
    for label, trial in evaluation.trials.items():
        then = before["strategies"].get(label)
        if then is not None and then["params"] != dict(trial.parameters):
            names = sorted(n for n, value in trial.parameters.items() if then["params"].get(n) != value)
            changed.append(f"the spec of {label} ({', '.join(names)})")
    return changed


def refuse_regression(verdict: Verdict) -> None:
    """Raise RegressionError (exit 3) when a label is significantly worse than on the last good night."""
    if not verdict.regressions:
        return
    lines = []
    for label in verdict.regressions:
        pair = verdict.comparison[label].pairs[0]
        interval = f" [{pair.ci.low:+.3f}, {pair.ci.high:+.3f}]" if pair.ci else ""
        lines.append(f"{label}: {verdict.comparison[label].metric} {pair.difference:+.3f}{interval}")
    suspects = f" Changed since then: {'; '.join(verdict.changed)}." if verdict.changed else " Nothing else changed."
    raise RegressionError(
        f"regression against {verdict.previous.name if verdict.previous else '?'}: {'; '.join(lines)}.{suspects}"
    )
